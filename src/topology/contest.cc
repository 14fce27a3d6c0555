#include "topology/contest.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace hopwise::topology {
namespace {

// Each further round needs a parent that newly lost; deeper chains of such are cut off here.
constexpr int kRounds = 16;

class Contest {
 public:
  Contest(const std::vector<Claimant>& claimants, const std::vector<std::vector<uint32_t>>& items,
          const std::function<bool(uint32_t, uint32_t)>& compatible)
      : claimants_(claimants),
        compatible_(compatible),
        items_(items.size()),
        claims_(claimants.size()),
        discounted_(claimants.size(), 0) {
    for (uint32_t i = 0; i < items.size(); ++i) {
      for (const uint32_t c : items[i]) {
        if (claims_[c].empty()) participants_.push_back(c);
        claims_[c].push_back(i);
      }
    }
  }

  std::vector<Loss> Run() {
    std::vector<Loss> losses;
    for (int round = 0; round < kRounds; ++round) {
      losses = Round();
      bool grew = false;
      for (const Loss& loss : losses) {
        grew = grew || discounted_[loss.loser] == 0;
        discounted_[loss.loser] = 1;
      }
      if (!grew) break;
    }
    std::sort(losses.begin(), losses.end(),
              [](const Loss& a, const Loss& b) { return a.loser < b.loser; });
    return losses;
  }

 private:
  bool Linked(uint32_t c) const {
    return std::any_of(claimants_[c].parents.begin(), claimants_[c].parents.end(),
                       [&](uint32_t parent) { return discounted_[parent] == 0; });
  }

  // An object without a creation time shows no sign of age.
  int64_t Birth(uint32_t c) const {
    const Time creation = claimants_[c].creation;
    return creation.set() ? creation.ns : std::numeric_limits<int64_t>::max();
  }

  Merit MeritOver(uint32_t winner, uint32_t loser) const {
    if (Linked(winner) != Linked(loser)) return Merit::kLinked;
    if (Birth(winner) != Birth(loser)) return Merit::kOlder;
    return Merit::kLesserName;
  }

  bool Before(uint32_t a, uint32_t b) const {
    if (Linked(a) != Linked(b)) return Linked(a);
    if (Birth(a) != Birth(b)) return Birth(a) < Birth(b);
    return claimants_[a].name < claimants_[b].name;
  }

  // The best first; each stands unless it clashes with one that stands already.
  std::vector<Loss> Round() {
    std::vector<uint32_t> ranking = participants_;
    std::sort(ranking.begin(), ranking.end(), [&](uint32_t a, uint32_t b) { return Before(a, b); });
    for (std::vector<uint32_t>& holders : items_) holders.clear();
    std::vector<Loss> losses;
    for (const uint32_t c : ranking) {
      const Loss loss = TryToStand(c);
      if (loss.items > 0) losses.push_back(loss);
    }
    return losses;
  }

  Loss TryToStand(uint32_t c) {
    Loss loss;
    for (const uint32_t item : claims_[c]) {
      const std::vector<uint32_t>& holders = items_[item];
      const auto clash = std::find_if(holders.begin(), holders.end(),
                                      [&](uint32_t holder) { return !compatible_(c, holder); });
      if (clash == holders.end()) continue;
      if (loss.items == 0) loss = {c, *clash, MeritOver(*clash, c), item, 0};
      ++loss.items;
    }
    if (loss.items == 0) {
      for (const uint32_t item : claims_[c]) items_[item].push_back(c);
    }
    return loss;
  }

  const std::vector<Claimant>& claimants_;
  const std::function<bool(uint32_t, uint32_t)>& compatible_;
  std::vector<std::vector<uint32_t>> items_;   // who holds it so far
  std::vector<std::vector<uint32_t>> claims_;  // items by claimant, ascending
  std::vector<uint32_t> participants_;
  std::vector<char> discounted_;
};

}  // namespace

std::string_view TextOf(Merit merit) {
  switch (merit) {
    case Merit::kLinked:
      return "is linked to a parent";
    case Merit::kOlder:
      return "is older";
    case Merit::kLesserName:
      break;
  }
  return "has the lesser name";
}

std::vector<Loss> Decide(const std::vector<Claimant>& claimants,
                         const std::vector<std::vector<uint32_t>>& items,
                         const std::function<bool(uint32_t, uint32_t)>& compatible) {
  return Contest(claimants, items, compatible).Run();
}

}  // namespace hopwise::topology
