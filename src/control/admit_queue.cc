// Queues: amounts that fit each other and those of the queues above and below, a tree without
// cycles, and no deletion of what is in use.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "api/resources.h"
#include "base/quantity.h"
#include "control/admission_rules.h"

namespace hopwise::control {
namespace {

constexpr std::string_view kHierarchy = "volcano.sh/hierarchy";
constexpr std::string_view kHierarchyWeights = "volcano.sh/hierarchy-weights";
constexpr std::string_view kCapability = "spec.capability";
constexpr std::string_view kDeserved = "spec.deserved";
constexpr std::string_view kGuarantee = "spec.guarantee.resource";

std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find('/'), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// A number above zero, with or without a fraction.
bool IsWeight(std::string_view text) {
  const bool digits =
      std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  return digits && std::ranges::count(text, '.') <= 1 &&
         text.find_first_of("123456789") != std::string_view::npos;
}

bool Names(const api::ResourceList& list, std::string_view resource) {
  return std::ranges::find(list, resource, &api::ResourceList::value_type::first) != list.end();
}

std::string InWords(std::string_view resource, int64_t amount) {
  return fmt::format("{} {}", FormatQuantity(resource, amount), resource);
}

std::string At(std::string_view list, std::string_view resource) {
  return fmt::format("{}[{}]", list, resource);
}

// The queues as they would be, with the one that is judged in its place.
class Family {
 public:
  Family(const AdmissionView& view, const api::Queue& judged) : judged_(judged) {
    for (const auto& [name, queue] : view.queues) {
      if (name != judged.meta.name) queues_[name] = &queue;
    }
    queues_[judged.meta.name] = &judged;
  }

  // nullptr: there is none, or it is the root without an object.
  [[nodiscard]] const api::Queue* Find(std::string_view name) const {
    const auto at = queues_.find(name);
    return at == queues_.end() ? nullptr : at->second;
  }
  // "" of the root.
  [[nodiscard]] static std::string_view ParentOf(const api::Queue& queue) {
    if (queue.meta.name == kRootQueue) return "";
    return queue.parent.empty() ? kRootQueue : std::string_view(queue.parent);
  }
  [[nodiscard]] std::vector<const api::Queue*> ChildrenOf(std::string_view name) const {
    std::vector<const api::Queue*> children;
    for (const auto& [child, queue] : queues_) {
      if (child != name && ParentOf(*queue) == name) children.push_back(queue);
    }
    return children;
  }
  // From its parent up, the root with an object included; ends where the way turns in a circle.
  [[nodiscard]] std::vector<const api::Queue*> AboveOf(const api::Queue& queue) const {
    std::vector<const api::Queue*> above;
    std::set<std::string_view> seen = {queue.meta.name};
    for (std::string_view name = ParentOf(queue); !name.empty() && seen.insert(name).second;) {
      const api::Queue* next = Find(name);
      if (next == nullptr) break;
      above.push_back(next);
      name = ParentOf(*next);
    }
    return above;
  }
  // Levels below the queue.
  [[nodiscard]] int HeightOf(std::string_view name, std::set<std::string_view>& seen) const {
    int height = 0;
    for (const api::Queue* child : ChildrenOf(name)) {
      if (seen.insert(child->meta.name).second) {
        height = std::max(height, 1 + HeightOf(child->meta.name, seen));
      }
    }
    return height;
  }
  [[nodiscard]] const api::Queue& judged() const { return judged_; }
  [[nodiscard]] const std::map<std::string_view, const api::Queue*>& all() const { return queues_; }

 private:
  const api::Queue& judged_;
  std::map<std::string_view, const api::Queue*> queues_;
};

// --- the queue alone

void CheckAtMost(std::string_view list, const api::ResourceList& amounts,
                 std::string_view limit_name, const api::ResourceList& limit, Findings& findings) {
  for (const auto& [resource, amount] : amounts) {
    if (Names(limit, resource) && amount > api::AmountOf(limit, resource)) {
      findings.Refuse(
          At(list, resource),
          fmt::format("{} is more than {}, {}", FormatQuantity(resource, amount), limit_name,
                      FormatQuantity(resource, api::AmountOf(limit, resource))));
    }
  }
}

void CheckAmounts(const api::Queue& queue, Findings& findings) {
  const std::pair<std::string_view, const api::ResourceList*> lists[] = {
      {kCapability, &queue.capability},
      {kDeserved, &queue.deserved},
      {kGuarantee, &queue.guarantee}};
  for (const auto& [name, list] : lists) {
    for (const auto& [resource, amount] : *list) {
      if (amount < 0) findings.Refuse(At(name, resource), "is negative");
    }
  }
  CheckAtMost(kDeserved, queue.deserved, kCapability, queue.capability, findings);
  CheckAtMost(kGuarantee, queue.guarantee, kDeserved, queue.deserved, findings);
  if (queue.deserved.empty()) {
    CheckAtMost(kGuarantee, queue.guarantee, kCapability, queue.capability, findings);
    return;
  }
  for (const auto& [resource, amount] : queue.guarantee) {
    if (!Names(queue.deserved, resource)) {
      findings.Refuse(At(kGuarantee, resource),
                      fmt::format("what is guaranteed must be deserved: add it to {}", kDeserved));
    }
  }
}

void CheckAnnotations(const Json& object, Findings& findings) {
  const std::string hierarchy = Annotation(object, kHierarchy);
  const std::string weights = Annotation(object, kHierarchyWeights);
  const size_t levels = Split(hierarchy).size();
  const std::vector<std::string_view> parts = Split(weights);
  const std::string path = fmt::format("metadata.annotations[{}]", kHierarchyWeights);
  if (parts.size() != levels) {
    findings.Refuse(path, fmt::format("has {} levels, and {} has {}; give each level one weight",
                                      parts.size(), kHierarchy, levels));
  }
  for (const std::string_view part : parts) {
    if (!IsWeight(part)) {
      findings.Refuse(path, fmt::format("\"{}\" is no number above zero", part));
    }
  }
}

bool NewAmounts(const AdmissionRequest& request) {
  const Json& a = request.object;
  const Json& b = request.old_object;  // null at its creation
  return !SamePart(a, b, {"spec", "capability"}) || !SamePart(a, b, {"spec", "deserved"}) ||
         !SamePart(a, b, {"spec", "guarantee", "resource"});
}

void CheckAlone(const AdmissionRequest& request, const api::Queue& queue, Findings& findings) {
  // An update bears the state that the queue has, and controllers use further ones.
  const std::string state = Text(request.object, {"status", "state"});
  const bool new_state = !SamePart(request.object, request.old_object, {"status", "state"});
  if (new_state && !state.empty() && state != kOpen && state != "Closed") {
    findings.Refuse("status.state", fmt::format("\"{}\" is neither Open nor Closed", state));
  }
  if (Number(request.object, {"spec", "weight"}, 1) <= 0) {
    findings.Refuse("spec.weight", "must be above zero");
  }
  if (NewAmounts(request)) CheckAmounts(queue, findings);
  if (!SamePart(request.object, request.old_object, {"metadata", "annotations", kHierarchy}) ||
      !SamePart(request.object, request.old_object,
                {"metadata", "annotations", kHierarchyWeights})) {
    CheckAnnotations(request.object, findings);
  }
}

// --- its place

void CheckRoot(const AdmissionRequest& request, const AdmissionContext& context,
               Findings& findings) {
  if (!Text(request.object, {"spec", "parent"}).empty()) {
    findings.Refuse("spec.parent", "root is above all queues and has no parent");
  }
  if (!context.settings.protect_root) return;
  const auto refuse = [&](std::string_view path) {
    findings.Refuse(path,
                    "root has the whole cluster, and its amounts are protected "
                    "(--enable-root-queue-protection)");
  };
  const Json& before = request.old_object;  // null at its creation
  if (!SamePart(request.object, before, {"spec", "capability"})) refuse(kCapability);
  if (!SamePart(request.object, before, {"spec", "deserved"})) refuse(kDeserved);
  if (!SamePart(request.object, before, {"spec", "guarantee", "resource"})) refuse(kGuarantee);
}

// False where the rest of the rules has nothing to stand on.
bool CheckParent(const Family& family, const AdmissionContext& context, Findings& findings) {
  const api::Queue& queue = family.judged();
  const std::string& name = queue.meta.name;
  const std::string parent(Family::ParentOf(queue));
  if (parent != kRootQueue && family.Find(parent) == nullptr) {
    findings.Refuse("spec.parent",
                    fmt::format("there is no queue {}; create it first, or name another", parent));
    findings.MissQueue(parent);
    return false;
  }
  const std::vector<const api::Queue*> above = family.AboveOf(queue);
  const api::Queue* top = above.empty() ? &queue : above.back();
  if (Family::ParentOf(*top) == name) {
    std::string way = name;
    for (const api::Queue* each : above) way += " -> " + each->meta.name;
    findings.Refuse("spec.parent", fmt::format("makes a cycle: {} -> {}", way, name));
    return false;
  }
  int depth = 1;
  for (const api::Queue* each : above) depth += each->meta.name == kRootQueue ? 0 : 1;
  std::set<std::string_view> seen = {name};
  const int height = family.HeightOf(name, seen);
  if (depth + height > context.settings.max_queue_depth) {
    findings.Refuse("spec.parent",
                    fmt::format("puts queues {} levels below root; at most {} are allowed "
                                "(--max-queue-depth)",
                                depth + height, context.settings.max_queue_depth));
  }
  const api::Queue* above_it = family.Find(parent);
  if (context.settings.check_allocated_pods && above_it != nullptr && parent != kRootQueue &&
      api::AmountOf(above_it->allocated, api::kPods) > 0 && family.ChildrenOf(parent).size() == 1) {
    findings.Refuse("spec.parent",
                    fmt::format("pods of queue {} itself are running, so it can hold no queues; "
                                "wait for their end",
                                parent));
  }
  return true;
}

// What the children have together is no more than their parent has. Where the parent is the one
// that is judged, the fault is its own; else it is the child's.
void CheckSum(const Family& family, const api::Queue& parent, api::ResourceList api::Queue::* list,
              std::string_view path, Findings& findings) {
  const std::vector<const api::Queue*> children = family.ChildrenOf(parent.meta.name);
  for (const auto& [resource, limit] : parent.*list) {
    int64_t sum = 0;
    for (const api::Queue* child : children) {
      sum = SaturatingAdd(sum, api::AmountOf(child->*list, resource));
    }
    if (sum <= limit) continue;
    const bool own = &parent == &family.judged();
    if (!own && !Names(family.judged().*list, resource)) continue;
    findings.Refuse(At(path, resource),
                    own ? fmt::format("{} is less than the {} of the queues below it",
                                      FormatQuantity(resource, limit), InWords(resource, sum))
                        : fmt::format("with it the queues below {} come to {}, and {} has {}",
                                      parent.meta.name, InWords(resource, sum), parent.meta.name,
                                      FormatQuantity(resource, limit)));
  }
}

// The capability of a queue is at most that of the nearest one above that names the resource.
void CheckCapabilityOf(const Family& family, const api::Queue& queue, Findings& findings) {
  const api::Queue& judged = family.judged();
  for (const auto& [resource, amount] : queue.capability) {
    for (const api::Queue* above : family.AboveOf(queue)) {
      if (!Names(above->capability, resource)) continue;
      const int64_t limit = api::AmountOf(above->capability, resource);
      if (amount > limit && &queue == &judged) {
        findings.Refuse(At(kCapability, resource),
                        fmt::format("{} is more than that of queue {} above it, {}",
                                    FormatQuantity(resource, amount), above->meta.name,
                                    FormatQuantity(resource, limit)));
      } else if (amount > limit && above == &judged) {
        findings.Refuse(At(kCapability, resource),
                        fmt::format("{} is less than that of queue {} below it, {}",
                                    FormatQuantity(resource, limit), queue.meta.name,
                                    FormatQuantity(resource, amount)));
      }
      break;
    }
  }
}

void CheckFamily(const Family& family, Findings& findings) {
  const api::Queue& judged = family.judged();
  const std::pair<api::ResourceList api::Queue::*, std::string_view> lists[] = {
      {&api::Queue::deserved, kDeserved}, {&api::Queue::guarantee, kGuarantee}};
  for (const auto& [list, path] : lists) {
    CheckSum(family, judged, list, path, findings);
    const api::Queue* parent = family.Find(Family::ParentOf(judged));
    if (parent != nullptr) CheckSum(family, *parent, list, path, findings);
  }
  for (const auto& [name, queue] : family.all()) CheckCapabilityOf(family, *queue, findings);
}

void CheckDeletion(const AdmissionRequest& request, const AdmissionContext& context,
                   Findings& findings) {
  const std::string& name = request.name;
  if (name == kRootQueue || name == context.settings.default_queue) {
    findings.Refuse("metadata.name",
                    fmt::format("the queue {} is needed always and cannot be deleted", name));
    return;
  }
  const auto& queues = context.view.queues;
  const auto child = std::ranges::find_if(queues, [&](const auto& entry) {
    return entry.first != name && Family::ParentOf(entry.second) == name;
  });
  if (child != queues.end()) {
    findings.Refuse("metadata.name",
                    fmt::format("the queue {} holds other queues, such as {}; delete those first",
                                name, child->first));
  }
  const Json* pods = Get(request.old_object, {"status", "allocated", api::kPods});
  const std::string text = pods == nullptr || !pods->is_primitive() ? ""
                           : pods->is_string()                      ? pods->get<std::string>()
                                                                    : Dump(*pods);
  const Result<int64_t> count = api::ParseAmount(api::kPods, text);
  if (count && *count > 0) {
    findings.Refuse("status.allocated[pods]",
                    fmt::format("{} pods of the queue {} are running; wait for their end, or end "
                                "their jobs",
                                *count, name));
  }
}

bool IsSame(const AdmissionRequest& request) {
  const Json& a = request.object;
  const Json& b = request.old_object;
  return SamePart(a, b, {"spec"}) && SamePart(a, b, {"status", "state"}) &&
         SamePart(a, b, {"metadata", "annotations", kHierarchy}) &&
         SamePart(a, b, {"metadata", "annotations", kHierarchyWeights});
}

}  // namespace

void FillQueue(const AdmissionRequest& /*request*/, const AdmissionContext& /*context*/,
               Json& queue) {
  Json& spec = Member(queue, "spec");
  const auto lacks = [&](std::string_view key) {
    const Json* value = Get(spec, {key});
    return value == nullptr || value->is_null();
  };
  if (lacks("reclaimable")) spec["reclaimable"] = true;
  if (lacks("weight")) spec["weight"] = 1;
  if (Name(queue) != kRootQueue && Text(spec, {"parent"}).empty()) {
    spec["parent"] = std::string(kRootQueue);
  }
  const std::string hierarchy = Annotation(queue, kHierarchy);
  const std::string weights = Annotation(queue, kHierarchyWeights);
  if (hierarchy.empty() || weights.empty() || Split(hierarchy).front() == kRootQueue) return;
  Set(queue, {"metadata", "annotations", kHierarchy}, fmt::format("{}/{}", kRootQueue, hierarchy));
  Set(queue, {"metadata", "annotations", kHierarchyWeights}, "1/" + weights);
}

void AdmitQueue(const AdmissionRequest& request, const AdmissionContext& context,
                Findings& findings) {
  if (request.deletes()) {
    CheckDeletion(request, context, findings);
    return;
  }
  if (request.updates() && (IsLeaving(request.object) || IsSame(request))) return;
  api::Queue queue;
  if (!ReadTyped(request.object, findings, queue)) return;
  CheckAlone(request, queue, findings);
  const Family family(context.view, queue);
  const bool moves =
      request.creates() || !SamePart(request.object, request.old_object, {"spec", "parent"});
  if (queue.meta.name == kRootQueue) {
    CheckRoot(request, context, findings);
  } else if (moves && !CheckParent(family, context, findings)) {
    return;
  }
  if (moves || NewAmounts(request)) CheckFamily(family, findings);
}

}  // namespace hopwise::control
