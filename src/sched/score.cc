#include "sched/score.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "base/check.h"

namespace hopwise::sched {
namespace {

// A whole, for shares between 0 and 1: fine enough that rounding them down never shows in a point.
constexpr int64_t kWhole = 1'000'000'000'000;
// The best score of one term, as kube-scheduler's MaxNodeScore.
constexpr int64_t kMaxScore = 100;

// What kube-scheduler assumes of a pod that requests none, so that such pods are spread too
// (pkg/scheduler/util/pod_resources.go: DefaultMilliCPURequest, DefaultMemoryRequest).
constexpr int64_t kDefaultMilliCpu = 100;
constexpr int64_t kDefaultMemory = 200LL * 1024 * 1024;

int64_t Clamp(Int128 value) {
  constexpr Int128 kLowest = std::numeric_limits<int64_t>::min();
  constexpr Int128 kHighest = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp(value, kLowest, kHighest));
}

// 100 · weight · share in kPoint parts, to the nearest. share <= kWhole, weight <= kMaxWeight.
int64_t Points(Int128 share, int64_t weight) {
  return Clamp((share * kMaxScore * weight * kPoint + kWhole / 2) / kWhole);
}

// used/allocatable within 0..kWhole.
Int128 Fraction(Int128 used, Int128 allocatable) {
  const Int128 within = std::clamp<Int128>(used, 0, allocatable);
  return within * kWhole / allocatable;
}

// Σ w·(U+R)/A / Σ w, the packing score shared by binpack and network-topology-aware; 0 for all as
// soon as one resource overflows, which includes a resource that is not there (binpack.go,
// BinPackingScore).
class Packing {
 public:
  void Put(int64_t weight, Int128 used, Int128 allocatable) {
    if (weight <= 0) return;
    weights_ += weight;
    if (used > allocatable || allocatable <= 0) {
      overflow_ = true;
    } else {
      sum_ += Fraction(used, allocatable) * weight;
    }
  }
  [[nodiscard]] Int128 Share() const { return overflow_ || weights_ == 0 ? 0 : sum_ / weights_; }

 private:
  Int128 sum_ = 0, weights_ = 0;
  bool overflow_ = false;
};

Int128 DomainShare(const DomainTotals& totals, DomainId d, const cluster::Request& request) {
  Packing packing;
  for (size_t i = 0; i < totals.resource_count(); ++i) {
    const auto& [resource, weight] = totals.weights()[i];
    const int64_t amount = cluster::AmountOf(request, resource);
    if (amount <= 0) continue;
    packing.Put(weight, Int128{totals.used(i, d)} + amount, totals.allocatable(i, d));
  }
  return packing.Share();
}

// Largest root with root² <= value, by Newton's method from above.
Int128 SquareRoot(Int128 value) {
  if (value <= 0) return 0;
  Int128 root = 1;
  while (root * root < value) root *= 2;
  for (Int128 next = (root + value / root) / 2; next < root; next = (root + value / root) / 2) {
    root = next;
  }
  return root;
}

// Standard deviation of fractions f_1..f_n: √(n·Σf² − (Σf)²)/n.
Int128 StandardDeviation(std::span<const Int128> fractions) {
  if (fractions.empty()) return 0;
  const Int128 count = static_cast<int64_t>(fractions.size());
  Int128 sum = 0, squares = 0;
  for (const Int128 fraction : fractions) {
    sum += fraction;
    squares += fraction * fraction;
  }
  return SquareRoot(count * squares - sum * sum) / count;
}

// A factor of at most 1 in parts of kOne, to a power.
constexpr int64_t kOne = 1'000'000'000'000'000'000;
Int128 Power(Int128 base, int64_t exponent) {
  Int128 power = kOne;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) power = power * base / kOne;
    base = base * base / kOne;
  }
  return power;
}

int64_t LowestTier(const topology::Tree& tree) {
  return tree.tiers.empty() ? tree.domains[0].tier : tree.tiers.front();
}

bool IsLive(const topology::Tree& tree, NodeId node) {
  return node.index() < tree.leaf_of.size() &&
         tree.position[node.index()] != topology::Tree::kNoPosition;
}

}  // namespace

// ---- DomainTotals

void DomainTotals::Configure(const cluster::Columns& columns, const ResourceWeights& weights) {
  names_ = weights;
  tree_ = nullptr;
  Resolve(columns);
}

void DomainTotals::Resolve(const cluster::Columns& columns) {
  resources_.clear();
  for (const auto& [name, weight] : names_) {
    const ResourceId r = columns.FindResource(name);
    if (r.valid()) resources_.emplace_back(r, weight);
  }
  columns_seen_ = columns.resource_count();
}

void DomainTotals::Update(const cluster::Columns& columns, const topology::Tree& tree,
                          uint64_t trees_version) {
  const cluster::Journal& journal = columns.room_journal();
  const bool same = tree_ == &tree && trees_version_ == trees_version &&
                    columns_seen_ == columns.resource_count();
  // Another tree may come with other columns, whose journal has not reached seen_.
  const auto tail = same ? journal.Since(seen_) : cluster::Journal::Tail{{}, false};
  if (tail.complete) {
    DropAdded();
    for (const NodeId node : tail.nodes) Follow(columns, tree, node);
  } else {
    Resolve(columns);
    StartOver(columns, tree);
    tree_ = &tree;
    trees_version_ = trees_version;
  }
  seen_ = journal.end();
}

void DomainTotals::StartOver(const cluster::Columns& columns, const topology::Tree& tree) {
  has_added_ = false;
  sums_.assign(resources_.size(), std::vector<Sum>(tree.domains.size()));
  parts_.assign(resources_.size(), std::vector<Part>(columns.node_slots()));
  for (size_t i = 0; i < resources_.size(); ++i) {
    const auto& allocatable = columns.allocatable(resources_[i].first);
    const auto& used = columns.used(resources_[i].first);
    for (const NodeId node : tree.order) {
      if (node.index() >= columns.node_slots()) continue;
      parts_[i][node.index()] = {allocatable[node.index()], used[node.index()]};
      Sum& sum = sums_[i][tree.leaf_of[node.index()].index()];
      sum.allocatable += allocatable[node.index()];
      sum.used += used[node.index()];
    }
    // Children come after their parents, so backwards each is complete when it is passed on.
    for (size_t d = tree.domains.size() - 1; d > 0; --d) {
      Sum& parent = sums_[i][tree.domains[d].parent.index()];
      parent.allocatable += sums_[i][d].allocatable;
      parent.used += sums_[i][d].used;
    }
  }
}

void DomainTotals::Follow(const cluster::Columns& columns, const topology::Tree& tree,
                          NodeId node) {
  // A node that joins or leaves the tree changes the tree's version.
  if (!IsLive(tree, node)) return;
  for (size_t i = 0; i < resources_.size(); ++i) {
    if (parts_[i].size() < columns.node_slots()) parts_[i].resize(columns.node_slots());
    const Part now = {columns.allocatable(resources_[i].first)[node.index()],
                      columns.used(resources_[i].first)[node.index()]};
    Part& before = parts_[i][node.index()];
    for (DomainId d = tree.leaf_of[node.index()]; d.valid(); d = tree.at(d).parent) {
      Sum& sum = sums_[i][d.index()];
      sum.allocatable += Int128{now.allocatable} - before.allocatable;
      sum.used += Int128{now.used} - before.used;
    }
    before = now;
  }
}

void DomainTotals::DropAdded() {
  if (!has_added_) return;
  for (auto& sums : sums_) {
    for (Sum& sum : sums) sum.added = 0;
  }
  has_added_ = false;
}

void DomainTotals::Add(const topology::Tree& tree, DomainId leaf, const cluster::Request& request,
                       int64_t count) {
  HOPWISE_CHECK(tree_ == &tree);  // Update comes first
  has_added_ = true;
  for (size_t i = 0; i < resources_.size(); ++i) {
    const Int128 amount = Int128{cluster::AmountOf(request, resources_[i].first)} * count;
    if (amount == 0) continue;
    for (DomainId d = leaf; d.valid(); d = tree.at(d).parent) sums_[i][d.index()].added += amount;
  }
}

int64_t DomainTotals::allocatable(size_t i, DomainId d) const {
  return Clamp(sums_[i][d.index()].allocatable);
}

int64_t DomainTotals::used(size_t i, DomainId d) const {
  return Clamp(sums_[i][d.index()].used + sums_[i][d.index()].added);
}

// ---- Scorer: nodes

Scorer::Scorer(const Config& config, const cluster::Columns& columns)
    : config_(config), columns_(columns) {}

const Scorer::Ids& Scorer::CurrentIds() const {
  if (ids_.columns_seen == columns_.resource_count()) return ids_;
  ids_.columns_seen = columns_.resource_count();
  ids_.cpu = columns_.FindResource("cpu");
  ids_.memory = columns_.FindResource("memory");
  ids_.gpu = columns_.FindResource("nvidia.com/gpu");
  ids_.binpack_weights.assign(columns_.resource_count(), 0);
  for (const auto& [name, weight] : config_.binpack.resources) {
    const ResourceId r = columns_.FindResource(name);
    if (r.valid()) ids_.binpack_weights[r.index()] = weight;
  }
  return ids_;
}

Scorer::Load Scorer::LoadOf(NodeId node, ResourceId r, int64_t requested,
                            const std::vector<int64_t>* extra) const {
  Load load;
  if (!r.valid()) return load;
  load.allocatable = columns_.allocatable(r)[node.index()];
  load.used = Int128{columns_.used(r)[node.index()]} + requested;
  if (extra != nullptr && r.index() < extra->size()) load.used += (*extra)[r.index()];
  return load;
}

int64_t Scorer::NodeScore(NodeId node, const cluster::Request& request,
                          const std::vector<int64_t>* extra) const {
  int64_t score = 0;
  if (config_.binpack.enabled) score += BinpackScore(node, request, extra);
  if (config_.node_order.enabled) {
    score += LeastAndMost(node, request, extra) + Balanced(node, request, extra);
  }
  return score;
}

bool Scorer::SameLoad(NodeId a, NodeId b) const {
  for (size_t r = 0; r < columns_.resource_count(); ++r) {
    const auto& allocatable = columns_.allocatable(ResourceId(r));
    const auto& used = columns_.used(ResourceId(r));
    if (allocatable[a.index()] != allocatable[b.index()] || used[a.index()] != used[b.index()]) {
      return false;
    }
  }
  return true;
}

int64_t Scorer::BinpackScore(NodeId node, const cluster::Request& request,
                             const std::vector<int64_t>* extra) const {
  if (config_.binpack.weight == 0) return 0;
  const Ids& ids = CurrentIds();
  Packing packing;
  for (const auto& [resource, amount] : request) {
    const int64_t weight = ids.binpack_weights[resource.index()];
    if (weight == 0 || amount <= 0) continue;
    const Load load = LoadOf(node, resource, amount, extra);
    packing.Put(weight, load.used, load.allocatable);
  }
  return Points(packing.Share(), config_.binpack.weight);
}

// leastRequestedScore and mostRequestedScore of kube-scheduler's noderesources
// ({least,most}_allocated.go), over cpu and memory with equal weights as nodeorder.go asks for:
// (A−U)/A, 0 when U > A, and U/A, 1 when U > A; a resource that the node lacks is left out. U takes
// the assumed amounts for a pod that requests none; placed pods count with what they requested,
// where kube-scheduler assumes amounts for them too.
int64_t Scorer::LeastAndMost(NodeId node, const cluster::Request& request,
                             const std::vector<int64_t>* extra) const {
  const NodeOrder& order = config_.node_order;
  if (order.least_requested == 0 && order.most_requested == 0) return 0;
  const Ids& ids = CurrentIds();
  Int128 least = 0, most = 0, resources = 0;
  for (const auto& [r, assumed] :
       {std::pair{ids.cpu, kDefaultMilliCpu}, std::pair{ids.memory, kDefaultMemory}}) {
    const int64_t amount = cluster::AmountOf(request, r);
    const Load load = LoadOf(node, r, amount > 0 ? amount : assumed, extra);
    if (load.allocatable <= 0) continue;
    const Int128 fraction = Fraction(load.used, load.allocatable);
    resources += 1;
    least += kWhole - fraction;  // 0 when it overflows, as the fraction stops at 1
    most += fraction;
  }
  if (resources == 0) return 0;
  return Points(least / resources, order.least_requested) +
         Points(most / resources, order.most_requested);
}

// balancedResourceScorer of kube-scheduler's noderesources (balanced_allocation.go): (1 − standard
// deviation of U/A), U/A at most 1, with requests as they are. Resources as nodeorder.go asks for:
// cpu, memory, nvidia.com/gpu; the last, an extended resource, only where the pod requests it, and
// each only where the node has it. A pod that requests none of them gets 0
// (kubernetes issue 129138).
int64_t Scorer::Balanced(NodeId node, const cluster::Request& request,
                         const std::vector<int64_t>* extra) const {
  if (config_.node_order.balanced == 0) return 0;
  const Ids& ids = CurrentIds();
  std::array<Int128, 3> fractions{};
  size_t count = 0;
  bool requests_any = false;
  for (const ResourceId r : {ids.cpu, ids.memory, ids.gpu}) {
    const int64_t amount = cluster::AmountOf(request, r);
    requests_any = requests_any || amount > 0;
    const Load load = LoadOf(node, r, amount, extra);
    if (load.allocatable <= 0 || (r == ids.gpu && amount == 0)) continue;
    fractions[count++] = Fraction(load.used, load.allocatable);
  }
  if (!requests_any) return 0;
  const Int128 deviation = StandardDeviation(std::span(fractions.data(), count));
  return Points(kWhole - deviation, config_.node_order.balanced);
}

// ---- Scorer: domains

int64_t Scorer::HyperNodeOrder(const DomainTotals& totals, DomainId d,
                               const cluster::Request& request) const {
  const NetworkTopologyAware& plugin = config_.network_topology_aware;
  if (!plugin.enabled || !plugin.hyper_node_order) return 0;
  return Points(DomainShare(totals, d, request), plugin.weight);
}

int64_t Scorer::TieBonus(int64_t there, int64_t all) const {
  const NetworkTopologyAware& plugin = config_.network_topology_aware;
  if (!plugin.enabled || all <= 0) return 0;
  return Points(Fraction(there, all), plugin.weight);
}

bool Scorer::scores_normal_pods() const {
  const NetworkTopologyAware& plugin = config_.network_topology_aware;
  return plugin.enabled && plugin.scores_nodes && plugin.normal_pod && plugin.weight > 0;
}

// tierWeight(tier)/Σ tierWeight in parts of kWhole. The documented weight fading^(t−1) and ours,
// fading^(t−minTier), differ by a factor that the division by the sum takes out again; ours has a
// value also where the documented one divides by zero (fading 0 with a lowest tier other than 1):
// the lowest tier alone counts.
//
// Tier numbers may lie far apart, so the sum is the closed form of the geometric series. Its factor
// must be below 1: a fading above 1 is read from the top down with the factor 1/fading.
Int128 Scorer::TierShare(const topology::Tree& tree, int64_t tier) const {
  const int64_t fading = config_.network_topology_aware.fading_milli;
  const int64_t lowest = LowestTier(tree);
  const int64_t steps = tree.domains[0].tier - lowest;
  if (fading == 1000) return kWhole / (steps + 1);
  const bool falls = fading < 1000;
  const Int128 factor = falls ? Int128{kOne} * fading / 1000 : Int128{kOne} * 1000 / fading;
  const int64_t exponent = falls ? tier - lowest : steps - (tier - lowest);
  const Int128 share =
      Power(factor, exponent) * (kOne - factor) / (kOne - Power(factor, steps + 1));
  return share / (kOne / kWhole);
}

int64_t Scorer::TierTerm(const topology::Tree& tree, const DomainTotals& totals, DomainId d,
                         const cluster::Request& request) const {
  if (!scores_normal_pods()) return 0;
  const Int128 share = TierShare(tree, tree.at(d).tier) * DomainShare(totals, d, request) / kWhole;
  return Points(share, config_.network_topology_aware.weight);
}

int64_t Scorer::MissingTerm(const topology::Tree& tree, uint16_t rank) const {
  if (!scores_normal_pods()) return 0;
  HOPWISE_CHECK(rank >= 1 && rank <= tree.tiers.size());
  return Points(TierShare(tree, tree.tiers[rank - 1U]), config_.network_topology_aware.weight);
}

int64_t Scorer::UnusedTerm(const topology::Tree& tree) const {
  // Without a gap the shares add up to a whole but for their rounding, which must not score.
  const int64_t numbers = int64_t{tree.domains[0].tier} - LowestTier(tree);
  if (!scores_normal_pods() || numbers == static_cast<int64_t>(tree.tiers.size())) return 0;
  Int128 used = TierShare(tree, tree.domains[0].tier);
  for (const int32_t tier : tree.tiers) used += TierShare(tree, tier);
  return Points(std::max<Int128>(kWhole - used, 0), config_.network_topology_aware.weight);
}

int64_t Scorer::NormalPodScore(const topology::Tree& tree, const DomainTotals& totals, NodeId node,
                               const cluster::Request& request) const {
  if (!scores_normal_pods() || !IsLive(tree, node)) return 0;
  int64_t score = UnusedTerm(tree);
  uint16_t next = 1;  // lowest rank not accounted for yet
  for (DomainId d = tree.leaf_of[node.index()]; d.valid(); d = tree.at(d).parent) {
    for (; next < tree.at(d).rank; ++next) score += MissingTerm(tree, next);
    score += TierTerm(tree, totals, d, request);
    next = static_cast<uint16_t>(tree.at(d).rank + 1);
  }
  return score;
}

int64_t Scorer::DistanceScore(const topology::Tree& tree, DomainId allocated, NodeId node) const {
  const NetworkTopologyAware& plugin = config_.network_topology_aware;
  if (!plugin.enabled || !plugin.scores_nodes || !allocated.valid() || !IsLive(tree, node)) {
    return 0;
  }
  const DomainId leaf = tree.leaf_of[node.index()];
  if (leaf == DomainId(0U)) return 0;
  if (leaf == allocated) return Points(kWhole, plugin.weight);
  DomainId common = leaf;
  while (!tree.Contains(common, allocated)) common = tree.at(common).parent;
  const Int128 steps = Int128{tree.domains[0].tier} - LowestTier(tree);
  const Int128 nearer = Int128{tree.domains[0].tier} - tree.at(common).tier;
  return Points(nearer * kWhole / steps, plugin.weight);
}

}  // namespace hopwise::sched
