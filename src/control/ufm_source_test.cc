// What the cables of an InfiniBand fabric tell, from the answer's text on.
#include "control/ufm_source.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hopwise::control {
namespace {

using Lines = std::vector<std::string>;

// An answer of UFM, cable by cable. Machines have one adapter for each port.
class Ufm {
 public:
  // A cable between a machine's adapter and a switch, told at both ends.
  void Plug(const std::string& machine, const std::string& leaf, bool up = true) {
    const std::string own = fmt::format("host-{}-{}", machine, ++ports_[machine]);
    const std::string number = std::to_string(++ports_[leaf]);
    Tell("Computer IB Port", own, "1", machine, leaf, number, leaf, up);
    Tell("Switch IB Port", leaf, number, leaf, own, "1", machine, up);
  }
  void PlugAll(const Lines& machines, const Lines& leaves) {
    for (const std::string& machine : machines) {
      for (const std::string& leaf : leaves) {
        Plug(machine, leaf);
      }
    }
  }
  void Link(const std::string& lower, const std::string& upper) {
    const std::string a = std::to_string(++ports_[lower]);
    const std::string b = std::to_string(++ports_[upper]);
    Tell("Switch IB Port", lower, a, lower, upper, b, upper, true);
    Tell("Switch IB Port", upper, b, upper, lower, a, lower, true);
  }
  void LinkAll(const Lines& lower, const Lines& upper) {
    for (const std::string& one : lower) {
      for (const std::string& other : upper) {
        Link(one, other);
      }
    }
  }
  // A port without a cable that UFM knows of.
  void Loose(const std::string& machine) {
    const std::string own = fmt::format("host-{}-{}", machine, ++ports_[machine]);
    Tell("Computer IB Port", own, "1", machine, "", "", "", false);
  }

  [[nodiscard]] std::string text() const { return fmt::format("[{}]", fmt::join(entries_, ",\n")); }
  [[nodiscard]] size_t size() const { return entries_.size(); }

 private:
  void Tell(const std::string& description, const std::string& guid, const std::string& number,
            const std::string& system, const std::string& peer_guid, const std::string& peer_number,
            const std::string& peer_name, bool up) {
    entries_.push_back(fmt::format(
        R"({{"description":"{}","guid":"{}","name":"{}_{}","system_name":"{}","tier":4,)"
        R"("logical_state":"{}","peer":"{}","peer_guid":"{}","peer_node_name":"{}"}})",
        description, guid, guid, number, system, up ? "Active" : "Down",
        peer_guid.empty() ? "N/A" : peer_guid + "_" + peer_number, peer_guid, peer_name));
  }

  std::map<std::string, int> ports_;
  Lines entries_;
};

class UfmSource : public ::testing::Test {
 protected:
  Result<Discovery> Discover(const Ufm& ufm, int most_lost_percent = 50) {
    std::string text = ufm.text();
    const Result<api::UfmPorts> ports = api::ReadUfmPorts(text);
    EXPECT_TRUE(ports) << ports.error().message;
    std::ranges::sort(nodes_);
    const std::vector<std::string_view> names(nodes_.begin(), nodes_.end());
    return DiscoverByUfm(*ports, names, Existing(), most_lost_percent);
  }
  // "1 {a b}", "2 {{a b} {c d}}" of all domains, sorted.
  Lines Words(const Ufm& ufm) {
    const Result<Discovery> found = Discover(ufm);
    if (!found) {
      return {"error: " + found.error().message};
    }
    warnings_ = found->warnings;
    Lines insides;
    Lines words;
    for (const Domain& domain : found->domains) {
      Lines members = domain.nodes;
      for (const size_t child : domain.children) {
        members.push_back(insides[child]);
      }
      std::ranges::sort(members);
      insides.push_back(fmt::format("{{{}}}", fmt::join(members, " ")));
      words.push_back(fmt::format("{} {}", domain.tier, insides.back()));
    }
    std::ranges::sort(words);
    return words;
  }
  // Carries out what was found.
  void Reach(const Ufm& ufm) {
    const Result<Discovery> found = Discover(ufm);
    ASSERT_TRUE(found) << found.error().message;
    for (const HyperNodeWrite& write : PlanHyperNodes(kUfmSource, *found, Existing()).writes) {
      const std::string& name = write.object.meta.name;
      if (write.kind == HyperNodeWrite::Kind::kDelete) {
        objects_.erase(name);
      } else {
        objects_[name] = write.object;
      }
    }
  }
  [[nodiscard]] std::vector<const api::HyperNode*> Existing() const {
    std::vector<const api::HyperNode*> existing;
    for (const auto& [name, object] : objects_) {
      existing.push_back(&object);
    }
    return existing;
  }
  [[nodiscard]] Lines Names() const {
    Lines names;
    for (const auto& [name, object] : objects_) {
      names.push_back(name);
    }
    return names;
  }

  Lines nodes_ = {"a", "b", "c", "d"};
  std::map<std::string, api::HyperNode> objects_;
  Lines warnings_;
};

//    s1
//  l1  l2
// a b  c d
Ufm TwoLeaves() {
  Ufm ufm;
  ufm.PlugAll({"a", "b"}, {"l1"});
  ufm.PlugAll({"c", "d"}, {"l2"});
  ufm.LinkAll({"l1", "l2"}, {"s1"});
  return ufm;
}

TEST_F(UfmSource, LeavesAndTheirSpine) {
  EXPECT_EQ(Words(TwoLeaves()), (Lines{"1 {a b}", "1 {c d}", "2 {{a b} {c d}}"}));
  EXPECT_TRUE(warnings_.empty());
}

// Units of two rails under their spines, two of them to a pod, pods under cores.
TEST_F(UfmSource, RailsAreOneUnitAndEveryTierIsToldOf) {
  Ufm ufm;
  nodes_.clear();
  for (const std::string unit : {"u1", "u2", "u3", "u4"}) {
    const std::string pod = unit < "u3" ? "p1" : "p2";
    const Lines machines = {unit + "-a", unit + "-b"};
    nodes_.insert(nodes_.end(), machines.begin(), machines.end());
    for (const std::string rail : {"r1", "r2"}) {
      ufm.PlugAll(machines, {unit + rail});
      ufm.Link(unit + rail, pod + rail);
    }
  }
  ufm.LinkAll({"p1r1", "p1r2", "p2r1", "p2r2"}, {"core1", "core2"});
  EXPECT_EQ(Words(ufm), (Lines{"1 {u1-a u1-b}", "1 {u2-a u2-b}", "1 {u3-a u3-b}", "1 {u4-a u4-b}",
                               "2 {{u1-a u1-b} {u2-a u2-b}}", "2 {{u3-a u3-b} {u4-a u4-b}}",
                               "3 {{{u1-a u1-b} {u2-a u2-b}} {{u3-a u3-b} {u4-a u4-b}}}"}));
}

TEST_F(UfmSource, OneCableInTheWrongUnitMeltsNothing) {
  Ufm ufm;
  nodes_.clear();
  for (const std::string unit : {"u1", "u2"}) {
    for (int i = 0; i < 4; ++i) {
      nodes_.push_back(fmt::format("{}-{}", unit, i));
      ufm.PlugAll({nodes_.back()}, {unit + "r1", unit + "r2", unit + "r3"});
    }
  }
  ufm.Plug("u1-0", "u2r1");
  ufm.LinkAll({"u1r1", "u1r2", "u1r3", "u2r1", "u2r2", "u2r3"}, {"s"});
  EXPECT_EQ(Words(ufm), (Lines{"1 {u1-0 u1-1 u1-2 u1-3}", "1 {u2-0 u2-1 u2-2 u2-3}",
                               "2 {{u1-0 u1-1 u1-2 u1-3} {u2-0 u2-1 u2-2 u2-3}}"}));
  EXPECT_EQ(
      warnings_,
      (Lines{"node u1-0 is cabled to 2 units; it counts for the one with most of its cables"}));
}

TEST_F(UfmSource, IslandsHaveNoTierInCommon) {
  Ufm ufm;
  ufm.PlugAll({"a", "b"}, {"l1"});
  ufm.PlugAll({"c", "d"}, {"l2"});
  EXPECT_EQ(Words(ufm), (Lines{"1 {a b}", "1 {c d}"}));
}

TEST_F(UfmSource, APortThatIsDownTakesNoNodeOut) {
  Ufm ufm = TwoLeaves();
  ufm.Loose("a");
  EXPECT_EQ(Words(ufm), (Lines{"1 {a b}", "1 {c d}", "2 {{a b} {c d}}"}));
  EXPECT_EQ(warnings_, (Lines{"node a: 1 of its ports are down"}));
}

TEST_F(UfmSource, ANodeThatFallsSilentStaysWhereItWas) {
  Reach(TwoLeaves());
  const Lines names = Names();
  Ufm ufm;
  ufm.PlugAll({"a", "b"}, {"l1"});
  ufm.PlugAll({"c"}, {"l2"});
  ufm.Loose("d");
  ufm.LinkAll({"l1", "l2"}, {"s1"});
  EXPECT_EQ(Words(ufm), (Lines{"1 {a b}", "1 {c d}", "2 {{a b} {c d}}"}));
  EXPECT_EQ(warnings_, (Lines{"node d: UFM tells no cable of it; it stays where it was"}));
  Reach(ufm);
  EXPECT_EQ(Names(), names);
}

TEST_F(UfmSource, AUnitThatFallsSilentAsAWholeStaysInItsPlace) {
  Reach(TwoLeaves());
  const Lines names = Names();
  Ufm ufm;
  ufm.PlugAll({"a", "b"}, {"l1"});
  ufm.LinkAll({"l1"}, {"s1"});
  ufm.Loose("c");
  ufm.Loose("d");
  nodes_ = {"a", "b", "c", "d"};
  Reach(ufm);
  EXPECT_EQ(std::ranges::count_if(
                Names(), [&](const auto& name) { return std::ranges::count(names, name) > 0; }),
            2)
      << "both leaves, whatever becomes of the spine that joins one alone";
}

TEST_F(UfmSource, AUnitThatFallsSilentStaysUnderThePodOfItsNeighbours) {
  const auto fabric = [](bool third) {
    Ufm ufm;
    ufm.PlugAll({"a"}, {"l1"});
    ufm.PlugAll({"b"}, {"l2"});
    if (third) {
      ufm.PlugAll({"c"}, {"l3"});
    }
    ufm.PlugAll({"d"}, {"l4"});
    ufm.PlugAll({"e"}, {"l5"});
    ufm.LinkAll({"l1", "l2", "l3"}, {"s1"});
    ufm.LinkAll({"l4", "l5"}, {"s2"});
    ufm.LinkAll({"s1", "s2"}, {"core"});
    return ufm;
  };
  nodes_ = {"a", "b", "c", "d", "e"};
  Reach(fabric(true));
  const Lines names = Names();
  const Lines whole = {"1 {a}", "1 {b}",           "1 {c}",       "1 {d}",
                       "1 {e}", "2 {{a} {b} {c}}", "2 {{d} {e}}", "3 {{{a} {b} {c}} {{d} {e}}}"};
  EXPECT_EQ(Words(fabric(false)), whole);
  Reach(fabric(false));
  EXPECT_EQ(Names(), names);
}

TEST_F(UfmSource, ANodeThatIsNoNodeAnyMoreIsOut) {
  Reach(TwoLeaves());
  nodes_ = {"a", "b", "c"};
  EXPECT_EQ(Words(TwoLeaves()), (Lines{"1 {a b}", "1 {c}", "2 {{a b} {c}}"}));
}

TEST_F(UfmSource, HalfAnAnswerIsAnError) {
  Reach(TwoLeaves());
  Ufm ufm;
  ufm.PlugAll({"a"}, {"l1"});
  EXPECT_EQ(Words(ufm), (Lines{"error: 3 of 4 nodes have vanished from the answer, more than 50 % "
                               "at once"}));
  EXPECT_EQ(Words(Ufm()), (Lines{"error: none of its 0 ports is cabled to one of the 4 nodes"}));
}

TEST_F(UfmSource, NamesStayWhenASwitchIsExchanged) {
  Reach(TwoLeaves());
  const Lines names = Names();
  Ufm ufm;
  ufm.PlugAll({"a", "b"}, {"a-new-leaf"});
  ufm.PlugAll({"c", "d"}, {"l2"});
  ufm.LinkAll({"a-new-leaf", "l2"}, {"s1"});
  Reach(ufm);
  EXPECT_EQ(Names(), names);
}

TEST_F(UfmSource, WhatVolcanoFoundIsAdopted) {
  for (const auto& [name, tier, members] : std::vector<std::tuple<std::string, int, Lines>>{
           {"leaf-hn-0", 1, {"a", "b"}},
           {"leaf-hn-1", 1, {"c", "d"}},
           {"spine-hn", 2, {"leaf-hn-0", "leaf-hn-1"}}}) {
    api::HyperNode& object = objects_[name];
    object.meta.name = name;
    object.meta.labels = {{std::string(kSourceLabel), std::string(kUfmSource)}};
    object.tier = tier;
    for (const std::string& member : members) {
      object.members.push_back(
          {tier == 1 ? api::MemberType::kNode : api::MemberType::kHyperNode, member, {}, {}});
    }
  }
  Reach(TwoLeaves());
  EXPECT_EQ(Names(), (Lines{"leaf-hn-0", "leaf-hn-1", "spine-hn"}));
}

TEST_F(UfmSource, MachinesMayGoByTheirFullOrShortName) {
  nodes_ = {"a.example.com", "b"};
  Ufm ufm;
  ufm.PlugAll({"a", "b.example.com"}, {"l1"});
  EXPECT_EQ(Words(ufm), (Lines{"1 {a.example.com b}"}));
}

TEST_F(UfmSource, TheOrderOfTheAnswerIsNoMatter) {
  Ufm ufm;
  ufm.LinkAll({"l2", "l1"}, {"s1"});
  ufm.PlugAll({"d", "c"}, {"l2"});
  ufm.PlugAll({"b", "a"}, {"l1"});
  const Result<Discovery> one = Discover(ufm);
  const Result<Discovery> other = Discover(TwoLeaves());
  ASSERT_EQ(one->domains.size(), other->domains.size());
  for (size_t d = 0; d < one->domains.size(); ++d) {
    EXPECT_EQ(one->domains[d].identity, other->domains[d].identity);
    EXPECT_EQ(one->domains[d].nodes, other->domains[d].nodes);
  }
}

struct BadAnswer {
  const char* what;
  std::string text;
  const char* error;
};

TEST(UfmPorts, WhatIsNoWholeListIsAnError) {
  const BadAnswer cases[] = {
      {"no JSON", "<html>", "no list of ports"},
      {"an object", R"({"error":"x"})", "no list of ports"},
      {"cut off", R"([{"guid":"1","system_name":"a"},{"guid":"2")", "cut off"},
      {"no objects", "[1]", "cut off or malformed at port 0"},
      {"more behind it", "[] []", "malformed"}};
  for (const BadAnswer& one : cases) {
    std::string text = one.text;
    const auto read = api::ReadUfmPorts(text);
    ASSERT_FALSE(read) << one.what;
    EXPECT_NE(read.error().message.find(one.error), std::string::npos)
        << one.what << ": " << read.error().message;
  }
}

TEST(UfmPorts, EntriesThatNameNothingAreCounted) {
  std::string text = R"([{"guid":"1","system_name":"a"},{"guid":"2"},{"system_name":"b"}])";
  const auto read = api::ReadUfmPorts(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->ports.size(), 1U);
  EXPECT_EQ(read->unusable, 2U);
}

}  // namespace
}  // namespace hopwise::control
