// Which queue goes next, and which gang of it.
#include "sched/order.h"

#include <string>

#include <gtest/gtest.h>

#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::Ask;
using testing::Group;
using testing::TestCluster;

class OrderTest : public ::testing::Test {
 protected:
  std::string Order(const std::vector<std::string>& gangs) {
    std::vector<GangId> ids;
    for (const std::string& gang : gangs) {
      ids.push_back(cluster_.Gang(gang));
    }
    Agenda agenda(cluster_.state, ids);
    std::string text;
    for (GangId id = agenda.Next(); id.valid(); id = agenda.Next()) {
      text += (text.empty() ? "" : " ") + cluster_.state.gang(id).name;
    }
    return text;
  }
  void Queue(const std::string& name, int32_t weight, int32_t priority) {
    api::Queue queue;
    queue.meta.name = name;
    queue.weight = weight;
    queue.priority = priority;
    cluster_.state.Apply(queue);
  }
  TestCluster cluster_{"l1@1(a:8 b:8)"};
};

TEST_F(OrderTest, GangsGoByPriorityThenAge) {
  cluster_.Add(Group("young", 1).Created(30)).Pods("young", 1);
  cluster_.Add(Group("old", 1).Created(10)).Pods("old", 1);
  cluster_.Add(Group("urgent", 1).Created(40)).Pods("urgent", 1, Ask{.priority = 5});
  EXPECT_EQ(Order({"young", "old", "urgent"}), "urgent old young");
}

TEST_F(OrderTest, AGangThatRanAndMissesAMemberGoesBeforeItsEquals) {
  cluster_.Add(Group("old", 1).Created(10)).Pods("old", 1);
  cluster_.Add(Group("mended", 2).Created(20))
      .Pods("mended", 1, Ask{.node = "a"})
      .Pods("mended", 1);
  EXPECT_EQ(Order({"old", "mended"}), "mended old");
}

TEST_F(OrderTest, OrderOfArrivalDecidesBetweenTwins) {
  cluster_.Add(Group("b", 1)).Pods("b", 1).Add(Group("a", 1)).Pods("a", 1);
  EXPECT_EQ(Order({"a", "b"}), "b a");
}

TEST_F(OrderTest, QueuesGoByPriority) {
  Queue("low", 1, 0);
  Queue("top", 1, 9);
  cluster_.Add(Group("x", 1).In("low").Created(1)).Pods("x", 1, Ask{.priority = 100});
  cluster_.Add(Group("y", 1).In("top").Created(2)).Pods("y", 1);
  EXPECT_EQ(Order({"x", "y"}), "y x");
}

TEST_F(OrderTest, TheQueueWithTheLeastSharePerWeightGoesFirst) {
  Queue("q1", 1, 0);
  Queue("q2", 4, 0);
  cluster_.Add(Group("r1", 1).In("q1")).Pods("r1", 2, Ask{.node = "a"});
  cluster_.Add(Group("r2", 1).In("q2")).Pods("r2", 4, Ask{.node = "b"});
  cluster_.Add(Group("x", 1).In("q1")).Pods("x", 1).Add(Group("y", 1).In("q2")).Pods("y", 1);
  EXPECT_EQ(Order({"x", "y"}), "y x");  // 4/16/4 < 2/16/1
}

TEST_F(OrderTest, SharesAreReadAfreshForEachGang) {
  Queue("q1", 1, 0);
  Queue("q2", 1, 0);
  for (const char* gang : {"a1", "a2"}) {
    cluster_.Add(Group(gang, 1).In("q1")).Pods(gang, 1, Ask{.gpu = 4});
  }
  for (const char* gang : {"b1", "b2"}) {
    cluster_.Add(Group(gang, 1).In("q2")).Pods(gang, 1, Ask{.gpu = 4});
  }
  std::string order;
  for (const GangReport& report : cluster_.Run().gangs) {
    order += cluster_.state.gang(report.gang).name + " ";
  }
  EXPECT_EQ(order, "a1 b1 a2 b2 ");
}

TEST_F(OrderTest, EqualQueuesGoByName) {
  Queue("qb", 1, 0);
  Queue("qa", 1, 0);
  cluster_.Add(Group("x", 1).In("qb")).Pods("x", 1).Add(Group("y", 1).In("qa")).Pods("y", 1);
  EXPECT_EQ(Order({"x", "y"}), "y x");
}

}  // namespace
}  // namespace hopwise::sched
