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
    c.before = c.view.fit;
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

namespace {

bool PortsClash(const cluster::PredicateSet& a, const cluster::PredicateSet& b) {
  return std::ranges::any_of(a.ports, [&](const api::HostPort& x) {
    return std::ranges::any_of(b.ports, [&](const api::HostPort& y) {
      return x.port == y.port && x.protocol == y.protocol;
    });
  });
}

}  // namespace

// Predicates do not change in a trial, so a node that took none before takes none now.
int64_t Trial::FitNow(const Class& c, NodeId node) const {
  const int64_t before = c.before[node.index()];
  const auto last = last_step_.find(node.value);
  if (before == 0 || last == last_step_.end() || last->second < 0) {
    return before;
  }
  const auto& fits = state_.fits();
  const cluster::Columns& columns = state_.columns();
  int64_t fit = before;
  for (const auto& [r, amount] : fits.ShapeRequest(c.shape)) {
    int64_t free = columns.free(r)[node.index()];
    for (int32_t i = last->second; i >= 0; i = log_[static_cast<size_t>(i)].previous) {
      const Step& step = log_[static_cast<size_t>(i)];
      const int64_t each = cluster::AmountOf(fits.ShapeRequest(classes_[step.k].shape), r);
      free = SaturatingSub(free, SaturatingMul(each, step.count));
    }
    fit = std::min(fit, free < amount ? 0 : free / amount);
  }
  const cluster::PredicateSet& mine = fits.ShapePredicates(c.shape);
  for (int32_t i = last->second; i >= 0 && !mine.ports.empty();
       i = log_[static_cast<size_t>(i)].previous) {
    const size_t k = log_[static_cast<size_t>(i)].k;
    if (PortsClash(fits.ShapePredicates(classes_[k].shape), mine)) {
      return 0;
    }
  }
  return fit;
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
