// Verdict memory: what was proved not to fit, and who must be woken when that may have changed.
//
// Gangs that ask the same question (class, rule, groups) share a bucket. A bucket remembers the
// least amount that was proved not to fit; larger ones of the same question need no search. A node
// with more room wakes a bucket only when a domain it lies in now holds an amount that was refused,
// and of the bucket only the first gang of each queue: the next one is called when that one was
// decided, and nobody after one that was refused.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/state.h"
#include "sched/demand.h"
#include "sched/order.h"
#include "sched/reasons.h"
#include "sched/scope.h"

namespace hopwise::sched {

// The question a gang asks, if it is one that others ask too.
struct Question {
  std::string key;  // equal keys, equal answers for equal amounts
  ShapeId shape;
  std::vector<TreeScope> trees;  // anchors empty
  int32_t unit = 1;              // pods that must go together (group size)
  int64_t amount = 0;            // pods
};

// nullopt: too particular to be shared (several classes, members placed already, several group
// sets).
std::optional<Question> AskedBy(cluster::State& state, GangId gang, const Demand& demand,
                                const Scope& scope);

class Memory {
 public:
  // The refusal of a question proved before, when it still stands; nullptr when it must be
  // searched. `exact` tells whether it was for this very amount (else its text has other numbers).
  const Refusal* Recall(const Question& question, bool& exact) const;
  // The gang waits with this refusal.
  void Remember(const cluster::State& state, const Question& question, GangId gang,
                const Refusal& refusal);
  // A gang with a demand of its own waits until any of its classes has more room somewhere.
  void RememberAlone(GangId gang, const std::vector<ShapeId>& classes);
  // It waits for its queue (or what it names) to change.
  void RememberQueue(GangId gang);
  // The same, besides what it was remembered for already: either change may help.
  void RememberQueueToo(GangId gang) { queued_[gang] = true; }
  void Forget(GangId gang);
  void ForgetAll();

  // Nodes may have more room: appends the gangs that it may help, and drops proofs that no longer
  // stand. Gangs that changed or are gone must have been forgotten.
  void Wake(cluster::State& state, const std::vector<NodeId>& roomier, std::vector<GangId>& woken);
  void WakeQueue(const cluster::State& state, const std::vector<QueueId>& queues,
                 std::vector<GangId>& woken);
  void WakeAll(std::vector<GangId>& woken);
  // Whether a gang named by Wake or Next can be left asleep after all, as what was placed since
  // took the room that it was called for.
  bool LeftAsleep(cluster::State& state, GangId gang);
  // A gang named by Wake or Next was decided or left asleep: the one of its question and queue that
  // comes after it and may still be helped; none when there is none.
  GangId Next(GangId decided);

  [[nodiscard]] size_t sleeping() const { return sleeping_; }

 private:
  using Turns = std::map<QueueId, std::set<Turn>>;
  struct Bucket {
    Question question;
    int64_t refused = INT64_MAX;          // least amount proved not to fit
    int64_t room = 0;                     // most that the nodes last freed may take
    std::map<int64_t, Refusal> refusals;  // by amount; bounded
    std::map<int64_t, Turns> gangs;       // by amount

    // The first gang of the queue after `last` that may be helped.
    [[nodiscard]] const Turn* FirstAfter(QueueId queue, const Turn* last) const;
  };
  enum class Place : uint8_t { kAwake, kBucket, kAlone, kQueue };
  struct Entry {
    Place place = Place::kAwake;
    size_t bucket = 0;
    int64_t amount = 0;
    QueueId queue;
    Turn turn;
  };
  struct Call {
    size_t bucket = 0;
    QueueId queue;
    Turn turn;
  };

  Entry& EntryOf(GangId gang);

  std::map<std::string, size_t> index_;
  std::vector<Bucket> buckets_;
  std::vector<Entry> entries_;  // by gang
  std::map<GangId, std::vector<ShapeId>> alone_;
  std::map<GangId, bool> queued_;
  std::map<GangId, Call> called_;  // named since the last Wake and not decided yet
  std::vector<NodeId> roomier_;    // of the last Wake
  size_t sleeping_ = 0;
};

}  // namespace hopwise::sched
