#include "sched/memory.h"

#include <algorithm>

namespace hopwise::sched {
namespace {

// Texts kept per question; gangs of one question rarely ask for more different amounts.
constexpr size_t kMostTexts = 64;

// The most pods (in whole units) that a domain on the node's path allows.
int64_t RoomAround(cluster::State& state, const Question& question, NodeId node) {
  const auto& trees = state.trees();
  const cluster::ShapeFit& fit = state.fits().Get(question.shape, trees, state.trees_version());
  if (fit.fit[node.index()] == 0) {
    return 0;
  }
  int64_t most = 0;
  for (const TreeScope& scope : question.trees) {
    const topology::Tree& tree = *trees[scope.tree];
    const std::vector<int64_t>& sums = state.fits().Sums(question.shape, trees, scope.tree);
    for (DomainId d = tree.leaf_of[node.index()]; d.valid() && tree.at(d).rank <= scope.limit;
         d = tree.at(d).parent) {
      most = std::max(most, sums[d.index()] / question.unit * question.unit);
    }
  }
  return most;
}

}  // namespace

std::optional<Question> AskedBy(cluster::State& state, GangId id, const Demand& demand,
                                const Scope& scope) {
  const cluster::Gang& gang = state.gang(id);
  const Batch& batch = demand.required;
  const size_t parts = batch.uniform.size() + (batch.loose.empty() ? 0 : 1);
  if (demand.classes.size() != 1 || parts != 1 || !batch.singles.empty() ||
      !demand.placed.empty()) {
    return std::nullopt;
  }
  Question question;
  question.shape = demand.classes.front();
  question.amount = demand.required_counts.front();
  question.key = std::to_string(question.shape.value);
  if (scope.kind == Scope::Kind::kRuled) {
    for (const TreeScope& tree : scope.trees) {
      question.key += " " + std::to_string(tree.tree) + ":" + std::to_string(tree.limit);
      question.trees.push_back(tree);
    }
  } else {
    TreeScope all;
    all.limit = state.trees()[0]->root_rank();
    all.anchors.Finish();
    question.trees.push_back(std::move(all));
    question.key += " free";
  }
  if (!batch.uniform.empty()) {
    const UniformGroups& u = batch.uniform.front();
    question.unit = u.size;
    question.key += " groups " + std::to_string(u.size);
    for (const TreeScope& tree : question.trees) {
      question.key +=
          ":" + std::to_string(LimitRank(*state.trees()[tree.tree], gang.policies[u.policy].rule));
    }
  }
  return question;
}

const Refusal* Memory::Recall(const Question& question, bool& exact) const {
  const auto at = index_.find(question.key);
  if (at == index_.end() || buckets_[at->second].refused > question.amount) {
    return nullptr;
  }
  const Bucket& bucket = buckets_[at->second];
  const auto text = bucket.refusals.find(question.amount);
  exact = text != bucket.refusals.end();
  return exact                     ? &text->second
         : bucket.refusals.empty() ? nullptr
                                   : &bucket.refusals.begin()->second;
}

Memory::Entry& Memory::EntryOf(GangId gang) {
  if (entries_.size() <= gang.index()) {
    entries_.resize(gang.index() + 1);
  }
  return entries_[gang.index()];
}

void Memory::Remember(const cluster::State& state, const Question& question, GangId gang,
                      const Refusal& refusal) {
  Forget(gang);
  const auto [at, fresh] = index_.try_emplace(question.key, buckets_.size());
  if (fresh) {
    buckets_.emplace_back();
    buckets_.back().question = question;
  }
  Bucket& bucket = buckets_[at->second];
  bucket.question.trees = question.trees;
  // A bounded search that gave up proves nothing.
  if (refusal.verdict != Verdict::kUndecided) {
    bucket.refused = std::min(bucket.refused, question.amount);
    if (bucket.refusals.size() < kMostTexts) {
      bucket.refusals.insert_or_assign(question.amount, refusal);
    }
  }
  const QueueId queue = state.gang(gang).queue;
  const Turn turn = TurnOf(state, gang);
  bucket.gangs[question.amount][queue].insert(turn);
  EntryOf(gang) = {Place::kBucket, at->second, question.amount, queue, turn};
  ++sleeping_;
}

void Memory::RememberAlone(GangId gang, const std::vector<ShapeId>& classes) {
  Forget(gang);
  alone_[gang] = classes;
  EntryOf(gang).place = Place::kAlone;
  ++sleeping_;
}

void Memory::RememberQueue(GangId gang) {
  Forget(gang);
  queued_[gang] = true;
  EntryOf(gang).place = Place::kQueue;
  ++sleeping_;
}

void Memory::Forget(GangId gang) {
  Entry& entry = EntryOf(gang);
  if (entry.place == Place::kAwake) {
    return;
  }
  if (entry.place == Place::kBucket) {
    auto& gangs = buckets_[entry.bucket].gangs;
    Turns& turns = gangs[entry.amount];
    turns[entry.queue].erase(entry.turn);
    if (turns[entry.queue].empty()) {
      turns.erase(entry.queue);
    }
    if (turns.empty()) {
      gangs.erase(entry.amount);
    }
  } else if (entry.place == Place::kAlone) {
    alone_.erase(gang);
  }
  queued_.erase(gang);
  entry = Entry();
  --sleeping_;
}

void Memory::WakeAll(std::vector<GangId>& woken) {
  for (size_t g = 0; g < entries_.size(); ++g) {
    if (entries_[g].place != Place::kAwake) {
      woken.emplace_back(g);
    }
  }
}

void Memory::ForgetAll() {
  index_.clear();
  buckets_.clear();
  alone_.clear();
  queued_.clear();
  called_.clear();
  entries_.clear();
  sleeping_ = 0;
}

const Turn* Memory::Bucket::FirstAfter(QueueId queue, const Turn* last) const {
  const Turn* first = nullptr;
  for (const auto& [amount, turns] : gangs) {
    if (amount > room || amount >= refused) {
      break;
    }
    const auto mine = turns.find(queue);
    if (mine == turns.end()) {
      continue;
    }
    const auto at = last == nullptr ? mine->second.begin() : mine->second.upper_bound(*last);
    if (at != mine->second.end() && (first == nullptr || *at < *first)) {
      first = &*at;
    }
  }
  return first;
}

bool Memory::LeftAsleep(cluster::State& state, GangId gang) {
  const auto at = called_.find(gang);
  if (at == called_.end() || queued_.contains(gang)) {
    return false;
  }
  Bucket& bucket = buckets_[at->second.bucket];
  const int64_t amount = EntryOf(gang).amount;
  int64_t room = 0;
  for (size_t i = 0; i < roomier_.size() && room < amount; ++i) {
    room = std::max(room, RoomAround(state, bucket.question, roomier_[i]));
  }
  if (room >= amount) {
    return false;
  }
  bucket.room = room;
  return true;
}

GangId Memory::Next(GangId decided) {
  const auto at = called_.find(decided);
  if (at == called_.end()) {
    return {};
  }
  Call call = at->second;
  called_.erase(at);
  const Turn* next = buckets_[call.bucket].FirstAfter(call.queue, &call.turn);
  if (next == nullptr) {
    return {};
  }
  call.turn = *next;
  called_[next->gang] = call;
  return next->gang;
}

void Memory::Wake(cluster::State& state, const std::vector<NodeId>& roomier,
                  std::vector<GangId>& woken) {
  called_.clear();
  roomier_ = roomier;
  for (size_t b = 0; b < buckets_.size(); ++b) {
    Bucket& bucket = buckets_[b];
    bucket.room = 0;
    if (bucket.gangs.empty()) {
      if (!roomier.empty()) {
        bucket.refused = INT64_MAX;  // nobody waits: not worth following
        bucket.refusals.clear();
      }
      continue;
    }
    for (const NodeId node : roomier) {
      bucket.room = std::max(bucket.room, RoomAround(state, bucket.question, node));
    }
    if (bucket.room >= bucket.refused) {
      // Larger amounts stay refused: no domain that they could be in has the room.
      bucket.refused = bucket.room + 1;
      bucket.refusals.erase(bucket.refusals.begin(), bucket.refusals.lower_bound(bucket.refused));
    }
    std::set<QueueId> queues;
    for (auto at = bucket.gangs.begin(); at != bucket.gangs.end() && at->first <= bucket.room;
         ++at) {
      for (const auto& [queue, turns] : at->second) {
        queues.insert(queue);
      }
    }
    for (const QueueId queue : queues) {
      if (const Turn* first = bucket.FirstAfter(queue, nullptr); first != nullptr) {
        called_[first->gang] = {b, queue, *first};
        woken.push_back(first->gang);
      }
    }
  }
  for (const auto& [gang, classes] : alone_) {
    const bool helps = std::ranges::any_of(classes, [&](ShapeId shape) {
      const cluster::ShapeFit& fit = state.fits().Get(shape, state.trees(), state.trees_version());
      return std::ranges::any_of(roomier, [&](NodeId n) { return fit.fit[n.index()] > 0; });
    });
    if (helps) {
      woken.push_back(gang);
    }
  }
}

void Memory::WakeQueue(const cluster::State& state, const std::vector<QueueId>& queues,
                       std::vector<GangId>& woken) {
  if (queues.empty()) {
    return;
  }
  // The change may be in the gang's queue, in one above it, or its queue may just have come to be.
  for (const auto& [gang, unused] : queued_) {
    bool touched = !state.gang(gang).queue.valid();
    for (QueueId q = state.gang(gang).queue; q.valid() && !touched; q = state.queue(q).parent) {
      touched = std::ranges::find(queues, q) != queues.end();
    }
    if (touched) {
      woken.push_back(gang);
    }
  }
}

}  // namespace hopwise::sched
