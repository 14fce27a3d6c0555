#include "sched/split_mixed.h"

#include <algorithm>

#include "base/check.h"
#include "base/int128.h"
#include "base/quantity.h"

namespace hopwise::sched {
namespace {

// Cells opened per rank, 16 bits each, the highest rank most significant; a 17th bit is never
// needed since a domain has fewer than 65,536 cells here.
using Cost = Uint128;
constexpr Cost kUnreachable = ~Cost{0};
constexpr int kMostRanks = 7;
constexpr int kRankBits = 16;
constexpr int64_t kMostNodes = 4096;

// One step of the walk over the domain's subtree.
struct Event {
  enum class Kind : uint8_t { kEnter, kNode, kExit };
  Kind kind = Kind::kNode;
  DomainId domain;
  NodeId node;
  Cost price = 0;                             // of opening this domain or node
  size_t partner = 0;                         // kExit: index of the kEnter
  std::vector<std::vector<int32_t>> options;  // kNode: counts per class, the empty one first
  std::vector<size_t> strides;                // kNode: state offset of each option
};

class Mixed {
 public:
  Mixed(cluster::State& state, const Trial& trial, const Anchors& anchors, DomainId domain,
        const std::vector<int32_t>& wanted, int64_t budget)
      : state_(state),
        trial_(trial),
        tree_(trial.tree()),
        anchors_(anchors),
        domain_(domain),
        wanted_(wanted),
        budget_(budget) {
    states_ = 1;
    for (const int32_t w : wanted) {
      stride_.push_back(states_);
      states_ *= static_cast<size_t>(w) + 1;
    }
  }

  MixedAnswer Run();

 private:
  void Walk(DomainId d);
  void AddNode(NodeId node, uint16_t parent_rank);
  void Enumerate(NodeId node, size_t k, std::vector<int64_t>& free, std::vector<int32_t>& counts,
                 Event& event);
  [[nodiscard]] Cost Price(uint16_t low, uint16_t high) const;
  [[nodiscard]] int32_t CountAt(size_t state, size_t k) const {
    return static_cast<int32_t>(state / stride_[k] % (static_cast<size_t>(wanted_[k]) + 1));
  }
  [[nodiscard]] bool Solve();
  void StepNode(const Event& event, std::vector<Cost>& costs, std::vector<uint16_t>& choice) const;
  [[nodiscard]] bool Fits(size_t state, const std::vector<int32_t>& option) const;
  std::vector<Slot> Trace() const;

  cluster::State& state_;
  const Trial& trial_;
  const topology::Tree& tree_;
  const Anchors& anchors_;
  DomainId domain_;
  const std::vector<int32_t>& wanted_;
  int64_t budget_;
  size_t states_ = 0;
  std::vector<size_t> stride_;
  std::vector<Event> events_;
  std::vector<std::vector<uint16_t>>
      choices_;  // by event, by state: option taken (kNode), whether the domain was used (kExit)
  Cost best_ = kUnreachable;
};

Cost Mixed::Price(uint16_t low, uint16_t high) const {
  Cost price = 0;
  const int top = tree_.at(domain_).rank;
  for (int rank = low; rank < high; ++rank) {
    const int field =
        rank -
        std::max(0,
                 top - kMostRanks);  // ranks that do not fit are the lowest, the least significant
    if (field >= 0) {
      price += Cost{1} << (field * kRankBits);
    }
  }
  return price;
}

void Mixed::Walk(DomainId d) {
  const topology::Domain& domain = tree_.at(d);
  const size_t enter = events_.size();
  if (d != domain_) {
    Event event;
    event.kind = Event::Kind::kEnter;
    event.domain = d;
    event.price = anchors_.Holds(d) ? 0 : Price(domain.rank, tree_.at(domain.parent).rank);
    events_.push_back(std::move(event));
  }
  for (uint32_t at = domain.lo; at < domain.direct; ++at) {
    AddNode(tree_.order[at], domain.rank);
  }
  for (uint32_t child = d.value + 1; child < domain.end; child = tree_.domains[child].end) {
    Walk(DomainId(child));
  }
  if (d == domain_) {
    return;
  }
  if (events_.size() == enter + 1) {
    events_.pop_back();  // nothing fits inside
    return;
  }
  Event event;
  event.kind = Event::Kind::kExit;
  event.domain = d;
  event.partner = enter;
  events_.push_back(std::move(event));
}

void Mixed::AddNode(NodeId node, uint16_t parent_rank) {
  Event event;
  event.node = node;
  event.price = anchors_.Holds(node) ? 0 : Price(0, parent_rank);
  std::vector<int32_t> counts(wanted_.size(), 0);
  const cluster::Columns& columns = state_.columns();
  std::vector<int64_t> placed(columns.resource_count(), 0);
  trial_.AddPlaced(node, placed);
  std::vector<int64_t> free(columns.resource_count(), 0);
  for (size_t r = 0; r < free.size(); ++r) {
    const ResourceId id(r);
    free[r] = SaturatingSub(columns.free(id)[node.index()], placed[r]);
  }
  event.options.push_back(counts);
  Enumerate(node, 0, free, counts, event);
  if (event.options.size() == 1) {
    return;
  }
  for (const auto& option : event.options) {
    size_t offset = 0;
    for (size_t k = 0; k < option.size(); ++k) {
      offset += stride_[k] * static_cast<size_t>(option[k]);
    }
    event.strides.push_back(offset);
  }
  events_.push_back(std::move(event));
}

// All non-empty counts that fit the node together.
void Mixed::Enumerate(NodeId node, size_t k, std::vector<int64_t>& free,
                      std::vector<int32_t>& counts, Event& event) {
  if (k == wanted_.size()) {
    if (std::ranges::any_of(counts, [](int32_t c) { return c > 0; })) {
      event.options.push_back(counts);
      budget_ -= static_cast<int64_t>(states_);
    }
    return;
  }
  const cluster::Request& request = state_.fits().ShapeRequest(trial_.shape(k));
  const int64_t most = std::min<int64_t>(wanted_[k], trial_.View(k).fit[node.index()]);
  int64_t taken = 0;
  for (; budget_ >= 0; ++taken) {
    counts[k] = static_cast<int32_t>(taken);
    Enumerate(node, k + 1, free, counts, event);
    const bool more =
        taken < most &&
        std::ranges::all_of(
            request, [&](const auto& pair) { return free[pair.first.index()] >= pair.second; });
    if (!more) {
      break;
    }
    for (const auto& [r, amount] : request) {
      free[r.index()] -= amount;
    }
  }
  for (const auto& [r, amount] : request) {
    free[r.index()] += amount * taken;
  }
  counts[k] = 0;
}

bool Mixed::Fits(size_t state, const std::vector<int32_t>& option) const {
  for (size_t k = 0; k < option.size(); ++k) {
    if (CountAt(state, k) + option[k] > wanted_[k]) {
      return false;
    }
  }
  return true;
}

void Mixed::StepNode(const Event& event, std::vector<Cost>& costs,
                     std::vector<uint16_t>& choice) const {
  std::vector<Cost> next = costs;  // option 0: nothing here
  for (size_t o = 1; o < event.options.size(); ++o) {
    for (size_t s = 0; s < states_; ++s) {
      if (costs[s] == kUnreachable || !Fits(s, event.options[o])) {
        continue;
      }
      const size_t to = s + event.strides[o];
      const Cost cost = costs[s] + event.price;
      if (cost < next[to]) {
        next[to] = cost;
        choice[to] = static_cast<uint16_t>(o);
      }
    }
  }
  costs.swap(next);
}

bool Mixed::Solve() {
  std::vector<Cost> costs(states_, kUnreachable);
  costs[0] = 0;
  std::vector<std::vector<Cost>> outside;  // costs before each domain that is open now
  choices_.resize(events_.size());
  for (size_t e = 0; e < events_.size(); ++e) {
    const Event& event = events_[e];
    choices_[e].assign(states_, 0);
    switch (event.kind) {
      case Event::Kind::kEnter:
        outside.push_back(costs);
        for (Cost& cost : costs) {
          cost = cost == kUnreachable ? cost : cost + event.price;
        }
        break;
      case Event::Kind::kNode:
        StepNode(event, costs, choices_[e]);
        break;
      case Event::Kind::kExit:
        // Left unused the domain costs nothing; ties go to not entering.
        for (size_t s = 0; s < states_; ++s) {
          choices_[e][s] = costs[s] < outside.back()[s] ? 1 : 0;
          costs[s] = std::min(costs[s], outside.back()[s]);
        }
        outside.pop_back();
        break;
    }
  }
  best_ = costs[states_ - 1];
  return best_ != kUnreachable;
}

std::vector<Slot> Mixed::Trace() const {
  std::vector<Slot> slots;
  size_t state = states_ - 1;
  for (size_t e = events_.size(); e-- > 0;) {
    const Event& event = events_[e];
    if (event.kind == Event::Kind::kExit && choices_[e][state] == 0) {
      e = event.partner;
    } else if (event.kind == Event::Kind::kNode && choices_[e][state] != 0) {
      const size_t option = choices_[e][state];
      for (size_t k = 0; k < wanted_.size(); ++k) {
        if (event.options[option][k] > 0) {
          slots.push_back({event.node, event.options[option][k], static_cast<uint16_t>(k), kLoose});
        }
      }
      state -= event.strides[option];
    }
  }
  HOPWISE_CHECK(state == 0);
  std::ranges::reverse(slots);
  return slots;
}

MixedAnswer Mixed::Run() {
  MixedAnswer answer;
  const bool ports = [&] {
    for (size_t k = 0; k < trial_.class_count(); ++k) {
      if (!state_.fits().ShapePredicates(trial_.shape(k)).ports.empty()) {
        return true;
      }
    }
    return false;
  }();
  // Host ports couple the classes in a way that the enumeration does not see.
  if (ports || tree_.at(domain_).node_count() > kMostNodes ||
      static_cast<int64_t>(states_) > budget_) {
    answer.outcome = SplitOutcome::kTooLarge;
    return answer;
  }
  Walk(domain_);
  if (budget_ < 0) {
    answer.outcome = SplitOutcome::kTooLarge;
    return answer;
  }
  if (Solve()) {
    answer.outcome = SplitOutcome::kFound;
    answer.slots = Trace();
  }
  return answer;
}

}  // namespace

MixedAnswer SplitMixed(cluster::State& state, const Trial& trial, const Anchors& anchors,
                       DomainId domain, const std::vector<int32_t>& wanted, int64_t budget) {
  return Mixed(state, trial, anchors, domain, wanted, budget).Run();
}

}  // namespace hopwise::sched
