#include "sched/trial.h"

#include <algorithm>

#include "base/check.h"
#include "base/quantity.h"

namespace hopwise::sched {

Trial::Trial(cluster::State& state, size_t tree, const std::vector<ShapeId>& classes)
    : state_(state), tree_(state.trees()[tree]) {
  const auto& trees = state.trees();
  const uint64_t version = state.trees_version();
  // All shapes are brought up to date first: a view is good only until the next Get makes room for
  // another shape.
  for (const ShapeId shape : classes) {
    state.fits().Get(shape, trees, version);
  }
  for (const ShapeId shape : classes) {
    const cluster::ShapeFit& data = state.fits().Get(shape, trees, version);
    const std::vector<int64_t>& sums = state.fits().Sums(shape, trees, tree);
    Class c;
    c.shape = shape;
    c.view = {data.fit.data(), sums.data(), data.max_fit};
    classes_.push_back(std::move(c));
  }
}

void Trial::Place(size_t k, NodeId node, int32_t count) {
  HOPWISE_CHECK(count > 0 && count <= classes_[k].view.fit[node.index()]);
  const auto [at, fresh] = last_step_.try_emplace(node.value, -1);
  log_.push_back({k, node, count, at->second});
  at->second = static_cast<int32_t>(log_.size()) - 1;
  Refresh(node);
}

void Trial::Rollback(size_t mark) {
  while (log_.size() > mark) {
    const NodeId node = log_.back().node;
    last_step_[node.value] = log_.back().previous;
    log_.pop_back();
    Refresh(node);
  }
}

// The node's fit for every class, from the columns and what the log puts there.
void Trial::Refresh(NodeId node) {
  for (Class& c : classes_) {
    CopyOnWrite(c);
    const auto now =
        static_cast<uint16_t>(std::min<int64_t>(FitNow(c, node), cluster::kMaxFitPerNode));
    const int64_t delta = int64_t{now} - c.fit[node.index()];
    if (delta == 0) {
      continue;
    }
    c.fit[node.index()] = now;
    for (DomainId d = tree_->leaf_of[node.index()]; d.valid(); d = tree_->at(d).parent) {
      c.sums[d.index()] += delta;
    }
  }
}

void Trial::CopyOnWrite(Class& c) {
  if (c.copied) {
    return;
  }
  c.fit.assign(c.view.fit, c.view.fit + state_.node_slots());
  c.sums.assign(c.view.sums, c.view.sums + tree_->domains.size());
  c.view.fit = c.fit.data();
  c.view.sums = c.sums.data();
  c.copied = true;
}

int64_t Trial::FitNow(const Class& c, NodeId node) const {
  std::vector<int64_t> extra(state_.columns().resource_count(), 0);
  const auto& ports = state_.fits().ShapePredicates(c.shape).ports;
  const auto last = last_step_.find(node.value);
  for (int32_t i = last == last_step_.end() ? -1 : last->second; i >= 0;
       i = log_[static_cast<size_t>(i)].previous) {
    const Step& step = log_[static_cast<size_t>(i)];
    const ShapeId placed = classes_[step.k].shape;
    for (const auto& [r, amount] : state_.fits().ShapeRequest(placed)) {
      extra[r.index()] = SaturatingAdd(extra[r.index()], SaturatingMul(amount, step.count));
    }
    const bool clash =
        std::ranges::any_of(state_.fits().ShapePredicates(placed).ports, [&](const auto& a) {
          return std::ranges::any_of(
              ports, [&](const auto& b) { return a.port == b.port && a.protocol == b.protocol; });
        });
    if (clash) {
      return 0;
    }
  }
  return state_.fits().FitWith(node, c.shape, &extra);
}

void Trial::AddPlaced(NodeId node, std::vector<int64_t>& used) const {
  const auto last = last_step_.find(node.value);
  for (int32_t i = last == last_step_.end() ? -1 : last->second; i >= 0;
       i = log_[static_cast<size_t>(i)].previous) {
    const Step& step = log_[static_cast<size_t>(i)];
    for (const auto& [r, amount] : state_.fits().ShapeRequest(classes_[step.k].shape)) {
      used[r.index()] = SaturatingAdd(used[r.index()], SaturatingMul(amount, step.count));
    }
  }
}

}  // namespace hopwise::sched
