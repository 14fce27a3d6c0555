// Queues: opened and closed, with those below them.
#include "control/queue_controller.h"

#include <gmock/gmock.h>

#include "control/testing.h"

namespace hopwise::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

//   root
//   |-- dept
//   |   |-- team-a
//   |   `-- team-b
//   `-- other
constexpr std::string_view kTree =
    "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: root}}\n"
    "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: dept}, spec: "
    "{parent: root}}\n"
    "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: team-a}, spec: "
    "{parent: dept}}\n"
    "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: team-b}, spec: "
    "{parent: dept}}\n"
    "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: other}, spec: "
    "{parent: root}}\n";

class QueuePlane : public Plane {
 public:
  QueuePlane() {
    Apply(kTree);
    Settle();
  }
  void Settle() {
    for (int round = 0; round < 20; ++round) {
      const size_t before = writes.size();
      for (const std::string& name : Names(kVolcanoScheduling, "Queue")) {
        CarryOut(ReconcileQueue({store, QueueKey(name), CommandsFor(store, QueueKey(name))}));
      }
      if (writes.size() == before) {
        return;
      }
    }
    ADD_FAILURE() << "it does not come to rest";
  }
  void Command(std::string_view action, std::string_view queue) {
    Apply("{apiVersion: bus.volcano.sh/v1alpha1, kind: Command, metadata: {name: c}, action: " +
          std::string(action) +
          ", target: {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, name: " +
          std::string(queue) + "}}");
    events.clear();
    Settle();
  }
  void Group(std::string_view name, std::string_view queue) {
    Apply("{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: " +
          std::string(name) + "}, spec: {queue: " + std::string(queue) + "}}");
  }
  std::string State(std::string_view queue) {
    return Text(Object(QueueKey(queue)), {"status", "state"});
  }
  bool Marked(std::string_view queue) {
    return Annotation(Object(QueueKey(queue)), kClosedByParent) == "true";
  }
};

TEST(Queues, AreOpenedWhenTheyCome) {
  QueuePlane plane;
  for (const char* name : {"root", "dept", "team-a", "team-b", "other"}) {
    EXPECT_EQ(plane.State(name), "Open") << name;
  }
  plane.writes.clear();
  plane.Settle();
  EXPECT_THAT(plane.writes, IsEmpty());
}

TEST(Queues, GetTheRootAsParentWhereTheyNameNone) {
  QueuePlane plane;
  plane.Apply("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: new}}");
  plane.Settle();
  EXPECT_EQ(Text(plane.Object(QueueKey("new")), {"spec", "parent"}), "root");
  EXPECT_EQ(Text(plane.Object(QueueKey("root")), {"spec", "parent"}), "");
}

TEST(Queues, CloseWhenTheLastPodGroupIsGone) {
  QueuePlane plane;
  plane.Group("g", "other");
  plane.Command("CloseQueue", "other");
  EXPECT_EQ(plane.State("other"), "Closing");
  plane.store.Erase(PodGroupKey("default", "g"));
  plane.Settle();
  EXPECT_EQ(plane.State("other"), "Closed");
  plane.Group("h", "other");
  plane.Settle();
  EXPECT_EQ(plane.State("other"), "Closed") << "what comes later does not open it";
}

TEST(Queues, CommandsAreDeletedAndToldOf) {
  QueuePlane plane;
  plane.Command("CloseQueue", "other");
  EXPECT_THAT(plane.Names(kVolcanoBus, "Command"), IsEmpty());
  EXPECT_THAT(plane.events, ElementsAre("CommandIssued: command CloseQueue is carried out"));
  plane.Command("Dance", "other");
  EXPECT_THAT(plane.events, ElementsAre(HasSubstr("command Dance is not known")));
}

TEST(Queues, AParentClosesThoseBelowItAndOpensThemAgain) {
  QueuePlane plane;
  plane.Command("CloseQueue", "dept");
  EXPECT_EQ(plane.State("team-a"), "Closed");
  EXPECT_TRUE(plane.Marked("team-a"));
  EXPECT_FALSE(plane.Marked("dept"));
  EXPECT_EQ(plane.State("other"), "Open");
  plane.Command("OpenQueue", "dept");
  EXPECT_EQ(plane.State("team-a"), "Open");
  EXPECT_FALSE(plane.Marked("team-a"));
}

TEST(Queues, OneClosedByHandStaysClosedWhenItsParentOpens) {
  QueuePlane plane;
  plane.Command("CloseQueue", "team-b");
  plane.Command("CloseQueue", "dept");
  plane.Command("OpenQueue", "dept");
  EXPECT_EQ(plane.State("team-a"), "Open");
  EXPECT_EQ(plane.State("team-b"), "Closed");
}

TEST(Queues, OneClosedByHandAfterItsParentStaysClosedToo) {
  QueuePlane plane;
  plane.Command("CloseQueue", "dept");
  plane.Command("CloseQueue", "team-b");
  plane.Command("OpenQueue", "dept");
  EXPECT_EQ(plane.State("team-b"), "Closed");
}

TEST(Queues, NoneIsOpenedUnderAClosedParent) {
  QueuePlane plane;
  plane.Command("CloseQueue", "dept");
  plane.Command("OpenQueue", "team-a");
  EXPECT_EQ(plane.State("team-a"), "Closed");
  EXPECT_THAT(plane.events, ElementsAre(HasSubstr("while its parent dept is closed")));
}

TEST(Queues, TheRootIsNeverClosed) {
  QueuePlane plane;
  plane.Command("CloseQueue", "root");
  EXPECT_EQ(plane.State("root"), "Open");
  EXPECT_THAT(plane.events, ElementsAre("CommandIssued: queue root cannot be closed"));
}

TEST(Queues, AStateThatIsUnknownIsSetRight) {
  QueuePlane plane;
  plane.store.Edit(QueueKey("other"))["status"]["state"] = "Odd";
  plane.Settle();
  EXPECT_EQ(plane.State("other"), "Open");
}

TEST(Queues, AControllerThatStartsAnewFinishesTheCascade) {
  QueuePlane plane;
  plane.store.Edit(QueueKey("dept"))["status"]["state"] = "Closed";
  plane.Settle();
  EXPECT_EQ(plane.State("team-a"), "Closed");
  plane.store.Edit(QueueKey("dept"))["status"]["state"] = "Open";
  plane.Settle();
  EXPECT_EQ(plane.State("team-a"), "Open");
}

}  // namespace
}  // namespace hopwise::control
