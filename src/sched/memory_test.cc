// Who sleeps, and what wakes them: nobody sleeps through a change that would place it.
#include "sched/memory.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::Group;
using testing::HardTier;
using testing::TestCluster;

//      s1           s2
//    /    \         |
//   l1     l2      l3
//  a:4    b:4     c:4
constexpr const char* kPicture = "s1@2(l1@1(a:4) l2@1(b:4)) s2@2(l3@1(c:4))";

std::optional<Question> QuestionOf(TestCluster& cluster, const std::string& gang) {
  const GangId id = cluster.Gang(gang);
  const Demand demand = BuildDemand(cluster.state, id);
  return AskedBy(cluster.state, id, demand, GangScope(cluster.state, id, demand.placed));
}

TEST(Question, IsTheSameForGangsThatDifferInSizeOnly) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("x", 2).Hard(1)).Pods("x", 2).Add(Group("y", 5).Hard(1)).Pods("y", 5);
  EXPECT_EQ(QuestionOf(cluster, "x")->key, QuestionOf(cluster, "y")->key);
  EXPECT_EQ(QuestionOf(cluster, "x")->amount, 2);
  EXPECT_EQ(QuestionOf(cluster, "y")->amount, 5);
}

TEST(Question, DiffersByRuleClassAndGroupSize) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("leaf", 2).Hard(1)).Pods("leaf", 2);
  cluster.Add(Group("spine", 2).Hard(2)).Pods("spine", 2);
  cluster.Add(Group("free", 2)).Pods("free", 2);
  cluster.Add(Group("big", 2).Hard(1)).Pods("big", 2, {.gpu = 2});
  cluster.Add(Group("pair", 2).Hard(1).Parts("w", 2, 1, HardTier(1)))
      .Pods("pair", 2, {.role = "w", .part = "0"});
  std::map<std::string, int> keys;
  for (const char* gang : {"leaf", "spine", "free", "big", "pair"}) {
    ++keys[QuestionOf(cluster, gang)->key];
  }
  EXPECT_EQ(keys.size(), 5U);
}

TEST(Question, IsNotSharedByGangsWithMembersPlacedOrSeveralClasses) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("ran", 2).Hard(1)).Pods("ran", 1, {.node = "a"}).Pods("ran", 1);
  cluster.Add(Group("two", 2).Hard(1)).Pods("two", 1).Pods("two", 1, {.gpu = 2});
  EXPECT_FALSE(QuestionOf(cluster, "ran").has_value());
  EXPECT_FALSE(QuestionOf(cluster, "two").has_value());
}

TEST(Memory, ARefusalAnswersForLargerGangsOfTheQuestion) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("five", 5).Hard(1)).Pods("five", 5);
  Memory memory;
  Question question = *QuestionOf(cluster, "five");
  memory.Remember(cluster.state, question, cluster.Gang("five"), {Verdict::kNotNow, "r", "m"});
  bool exact = false;
  EXPECT_NE(memory.Recall(question, exact), nullptr);
  EXPECT_TRUE(exact);
  question.amount = 6;
  EXPECT_NE(memory.Recall(question, exact), nullptr);
  EXPECT_FALSE(exact);
  question.amount = 4;
  EXPECT_EQ(memory.Recall(question, exact), nullptr);
}

TEST(Memory, ASearchThatGaveUpProvesNothing) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("g", 5).Hard(1)).Pods("g", 5);
  Memory memory;
  const Question question = *QuestionOf(cluster, "g");
  memory.Remember(cluster.state, question, cluster.Gang("g"), {Verdict::kUndecided, "r", "m"});
  bool exact = false;
  EXPECT_EQ(memory.Recall(question, exact), nullptr);
  EXPECT_EQ(memory.sleeping(), 1U);
}

TEST(Memory, SleepersAreWokenOnlyByTheAmountTheyNeed) {
  TestCluster cluster(kPicture);
  for (const char* node : {"a", "b", "c"}) {
    cluster.Fill(node, 2);
    cluster.Fill(node, 1);
  }
  cluster.Add(Group("three", 3).Hard(1))
      .Pods("three", 3)
      .Add(Group("four", 4).Hard(1))
      .Pods("four", 4);
  cluster.Run();
  EXPECT_EQ(cluster.scheduler->sleeping(), 2U);
  cluster.Remove("fill-1");  // two free on a
  const uint64_t before = cluster.scheduler->counters().woken;
  cluster.Run();
  EXPECT_EQ(cluster.scheduler->counters().woken, before);
  cluster.Remove("fill-0");  // four free on a: either may go, the older does
  cluster.Run();
  EXPECT_EQ(cluster.Where("three"), "a:3");
  EXPECT_EQ(cluster.scheduler->sleeping(), 1U);
}

TEST(Memory, TwinsOfARefusedGangNeedNoSearch) {
  TestCluster cluster(kPicture);
  for (const char* node : {"a", "b", "c"}) {
    cluster.Fill(node, 1);
  }
  for (int i = 0; i < 5; ++i) {
    const std::string name = "g" + std::to_string(i);
    cluster.Add(Group(name, 4).Hard(1)).Pods(name, 4);
  }
  cluster.Run();
  EXPECT_EQ(cluster.scheduler->counters().splits, 1U);
  EXPECT_EQ(cluster.scheduler->counters().from_memory, 4U);
}

TEST(Memory, WhatIsLargerThanAnyDomainNeedsNoSearchAtAll) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("g", 5).Hard(1)).Pods("g", 5);
  cluster.Run();
  EXPECT_EQ(cluster.scheduler->counters().splits, 0U);
  EXPECT_EQ(cluster.scheduler->sleeping(), 1U);
}

TEST(Memory, OfTwinsNoMoreAreWokenThanTheRoomHelps) {
  TestCluster cluster(kPicture);
  for (const char* node : {"a", "b", "c"}) {
    cluster.Fill(node, 4);
  }
  for (int i = 0; i < 50; ++i) {
    const std::string name = "g" + std::to_string(i);
    cluster.Add(Group(name, 4).Hard(1).Created(i + 1)).Pods(name, 4);
  }
  cluster.Run();
  const uint64_t before = cluster.scheduler->counters().decisions;
  cluster.Remove("fill-0");
  cluster.Remove("fill-2");
  cluster.Run();
  EXPECT_EQ(cluster.scheduler->counters().decisions - before, 2U);
  EXPECT_EQ(cluster.Where("g0"), "a:4");
  EXPECT_EQ(cluster.Where("g1"), "c:4");
  EXPECT_EQ(cluster.scheduler->sleeping(), 48U);
}

TEST(Memory, OfOneQuestionEachQueueIsCalledInItsOrder) {
  TestCluster cluster(kPicture);
  for (const char* node : {"a", "b", "c"}) {
    cluster.Fill(node, 4);
  }
  for (const char* name : {"low", "top"}) {
    api::Queue queue;
    queue.meta.name = name;
    queue.priority = std::string(name) == "top" ? 9 : 0;
    cluster.state.Apply(queue);
  }
  cluster.Add(Group("old", 4).Hard(1).In("low").Created(1)).Pods("old", 4);
  cluster.Add(Group("next", 4).Hard(1).In("top").Created(2)).Pods("next", 4);
  cluster.Add(Group("last", 4).Hard(1).In("top").Created(3)).Pods("last", 4);
  cluster.Run();
  cluster.Remove("fill-0");
  cluster.Remove("fill-1");
  cluster.Run();
  EXPECT_EQ(cluster.Where("next"), "a:4");
  EXPECT_EQ(cluster.Where("last"), "b:4");
  EXPECT_EQ(cluster.Where("old"), "");
}

TEST(Memory, AGangThatIsGoneSleepsNoMore) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("g", 5).Hard(1)).Pods("g", 5);
  cluster.Run();
  EXPECT_EQ(cluster.scheduler->sleeping(), 1U);
  for (int i = 0; i < 5; ++i) {
    cluster.Remove("g-" + std::to_string(i));
  }
  cluster.state.RemovePodGroup("ml", "g", false);
  cluster.Run();
  EXPECT_EQ(cluster.scheduler->sleeping(), 0U);
}

// What exists, by kind and name, and random changes to it. Gangs wait, room comes and goes.
class World {
 public:
  // Without `limited` the queue has no limit that matters.
  World(uint64_t seed, bool limited)
      : prng_(seed), state_(std::make_unique<cluster::State>()), limited_(limited) {
    scheduler_ = std::make_unique<Scheduler>(*state_, DefaultConfig());
    for (size_t n = 0; n < 6; ++n) {
      Put("node/" + std::to_string(n), Node(n, false));
    }
    for (size_t leaf = 0; leaf < 3; ++leaf) {
      Put("leaf/" + std::to_string(leaf),
          Hyper("l" + std::to_string(leaf), 1,
                {"n" + std::to_string(2 * leaf), "n" + std::to_string(2 * leaf + 1)}));
    }
    Put("spine/0", Hyper("s0", 2, {"/l0", "/l1"}));
    Put("spine/1", Hyper("s1", 2, {"/l2"}));
    Put("queue/q", Queue(limited ? 12 : 1000));
  }

  void Step() {
    switch (prng_.Below(10)) {
      case 0:
      case 1:
        return AddGang();
      case 2:
        return RemoveGang();
      case 3:
      case 4:
        return AddFiller();
      case 5:
      case 6:
        return RemoveFiller();
      case 7:
        return ChangeNode();
      case 8:
        return Put("queue/q", Queue(limited_ ? prng_.Between(2, 20) : 1000));
      default:
        return ChangeRule();
    }
  }

  // Decides and confirms the binds.
  void Run() {
    for (const GangReport& report : scheduler_->Run(Time{1}).gangs) {
      for (const Bind& bind : report.binds) {
        const std::string key = "pod/" + state_->pod(bind.pod).name;
        auto pod = std::get<api::Pod>(objects_.at(key));
        pod.node_name = state_->node(bind.node).name;
        pod.phase = api::PodPhase::kRunning;
        bound_.push_back({key, pod});
      }
    }
    for (auto& [key, pod] : bound_) {
      Put(key, pod);
    }
    bound_.clear();
  }

  // What a scheduler that knows nothing would place now: "" or the gangs.
  std::string Missed() const {
    cluster::State state;
    for (const auto& [key, object] : objects_) {
      state.Apply(object);
    }
    Scheduler fresh(state, DefaultConfig());
    std::string text;
    for (const GangReport& report : fresh.Run(Time{1}).gangs) {
      if (!report.binds.empty()) {
        text += state.gang(report.gang).name + "(" + std::to_string(report.binds.size()) + ") ";
      }
    }
    return text;
  }
  std::string Sleeper(const std::string& gang) const {
    const GangReport* report = scheduler_->LastReport(state_->FindGang("ml", gang));
    return report == nullptr ? "no report" : report->reason + ": " + report->message;
  }
  [[nodiscard]] const std::string& last() const { return last_; }

 private:
  template <class T>
  void Put(const std::string& key, const T& object) {
    objects_.insert_or_assign(key, api::Object(object));
    state_->Apply(objects_.at(key));
    last_ = "put " + key;
  }
  void Drop(const std::string& key) {
    objects_.erase(key);
    state_->RemovePod("ml", key.substr(4));
    last_ = "drop " + key;
  }

  static api::Node Node(size_t n, bool cordoned) {
    api::Node node;
    node.meta.name = "n" + std::to_string(n);
    node.meta.labels = {{"zone", n % 2 == 0 ? "even" : "odd"}};
    node.allocatable = {{"cpu", 100'000}, {"gpu", 4}, {"pods", 110}};
    node.unschedulable = cordoned;
    return node;
  }
  static api::HyperNode Hyper(const std::string& name, int32_t tier,
                              const std::vector<std::string>& members) {
    api::HyperNode hypernode;
    hypernode.meta.name = name;
    hypernode.tier = tier;
    for (const std::string& member : members) {
      api::HyperNodeMember& added = hypernode.members.emplace_back();
      added.type = member[0] == '/' ? api::MemberType::kHyperNode : api::MemberType::kNode;
      added.exact = member[0] == '/' ? member.substr(1) : member;
    }
    return hypernode;
  }
  static api::Queue Queue(int64_t gpus) {
    api::Queue queue;
    queue.meta.name = "q";
    queue.capability = {{"gpu", gpus}};
    return queue;
  }
  Group RandomRule(Group group) {
    if (prng_.Chance(1, 3)) {
      return group;
    }
    return prng_.Chance(1, 3) ? group.Soft()
                              : group.Hard(static_cast<int32_t>(prng_.Between(1, 2)));
  }

  void AddGang() {
    const std::string name = "g" + std::to_string(next_++);
    const auto size = static_cast<int32_t>(prng_.Between(1, 4));
    const auto groups = static_cast<int32_t>(prng_.Between(1, 3));
    const bool parted = prng_.Chance(1, 2);
    Group group(name, prng_.Chance(1, 3) ? size : size * groups);
    if (parted) {
      group.Parts("w", size, 1, prng_.Chance(1, 2) ? std::optional(HardTier(1)) : std::nullopt);
    }
    if (prng_.Chance(1, 2)) {
      group.In("q");
    }
    const int64_t gpus = prng_.Between(1, 3);
    const int64_t others = prng_.Chance(1, 4) ? prng_.Between(1, 3) : gpus;
    const std::string zone = prng_.Chance(1, 5) ? "even" : "";
    for (int32_t i = 0; i < size * groups; ++i) {
      api::Pod pod;
      pod.meta.ns = "ml";
      pod.meta.name = name + "-" + std::to_string(i);
      pod.scheduler_name = "volcano";
      pod.request = {{"gpu", i % 2 == 0 ? gpus : others}};
      pod.meta.annotations = {{"scheduling.k8s.io/group-name", name}};
      pod.phase = api::PodPhase::kPending;
      if (parted) {
        pod.meta.labels = {{"part", std::to_string(i / size)}, {"role", "w"}};
      }
      if (!zone.empty()) {
        pod.node_selector = {{"zone", zone}};
      }
      Put("pod/" + pod.meta.name, pod);
    }
    Put("group/" + name, static_cast<const api::PodGroup&>(RandomRule(group)));
  }
  std::string Any(const std::string& prefix) {
    std::vector<std::string> keys;
    for (const auto& [key, object] : objects_) {
      if (key.starts_with(prefix)) {
        keys.push_back(key);
      }
    }
    return keys.empty() ? "" : keys[prng_.Below(keys.size())];
  }
  void RemoveGang() {
    const std::string key = Any("group/");
    if (key.empty()) {
      return;
    }
    const std::string name = key.substr(6);
    for (std::string pod = Any("pod/" + name + "-"); !pod.empty(); pod = Any("pod/" + name + "-")) {
      Drop(pod);
    }
    objects_.erase(key);
    state_->RemovePodGroup("ml", name, false);
    last_ = "drop " + key;
  }
  void ChangeRule() {
    const std::string key = Any("group/");
    if (!key.empty()) {
      auto group = std::get<api::PodGroup>(objects_.at(key));
      group.topology.reset();
      if (prng_.Chance(2, 3)) {
        group.topology = HardTier(static_cast<int32_t>(prng_.Between(1, 2)));
      }
      Put(key, group);
    }
  }
  void AddFiller() {
    api::Pod pod;
    pod.meta.ns = "ml";
    pod.meta.name = "fill" + std::to_string(next_++);
    pod.scheduler_name = "default-scheduler";
    pod.request = {{"gpu", prng_.Between(1, 4)}};
    pod.node_name = "n" + std::to_string(prng_.Below(6));
    pod.phase = api::PodPhase::kRunning;
    Put("pod/" + pod.meta.name, pod);
  }
  void RemoveFiller() {
    const std::string key = Any("pod/fill");
    if (!key.empty()) {
      Drop(key);
    }
  }
  void ChangeNode() {
    const size_t n = prng_.Below(6);
    const std::string key = "node/" + std::to_string(n);
    if (prng_.Chance(1, 4) && objects_.contains(key)) {
      objects_.erase(key);
      state_->RemoveNode("n" + std::to_string(n));
      last_ = "drop " + key;
    } else {
      Put(key, Node(n, prng_.Chance(1, 3)));
    }
  }

  Prng prng_;
  std::unique_ptr<cluster::State> state_;
  std::unique_ptr<Scheduler> scheduler_;
  std::map<std::string, api::Object> objects_;
  std::vector<std::pair<std::string, api::Pod>> bound_;
  std::string last_;
  int next_ = 0;
  bool limited_;
};

void Walk(uint64_t seed, bool limited) {
  World world(seed, limited);
  world.Run();
  for (int step = 0; step < 60; ++step) {
    world.Step();
    world.Run();
    const std::string missed = world.Missed();
    ASSERT_EQ(missed, "") << "seed " << seed << " step " << step << " after " << world.last()
                          << "; said " << world.Sleeper(missed.substr(0, missed.find('(')));
  }
}

TEST(Memory, NobodySleepsThroughAChangeThatWouldPlaceIt) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    ASSERT_NO_FATAL_FAILURE(Walk(seed, false));
  }
}

TEST(Memory, NobodySleepsThroughAChangeUnderQueueLimits) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    ASSERT_NO_FATAL_FAILURE(Walk(seed, true));
  }
}

// Its surplus is beyond the share, its minimum waits for room: both may change its lot.
TEST(Memory, AGangWhoseSurplusIsTrimmedWakesForRoomToo) {
  TestCluster cluster(kPicture);
  api::Queue queue;
  queue.meta.name = "q";
  queue.capability = {{"gpu", 3}};
  cluster.state.Apply(queue);
  for (const char* node : {"a", "b", "c"}) {
    cluster.Fill(node, 4);
  }
  cluster.Add(Group("g", 2).In("q").Hard(1)).Pods("g", 4);
  cluster.Run();
  EXPECT_EQ(cluster.Where("g"), "");
  cluster.Remove("fill-0");  // all of a; another scheduler's, so no queue changes
  cluster.Run();
  EXPECT_EQ(cluster.Where("g"), "a:3");
}

}  // namespace
}  // namespace hopwise::sched
