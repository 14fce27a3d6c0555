#include "cli/migrate_rules.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "api/decode.h"
#include "cluster/state.h"
#include "control/expand.h"
#include "control/store.h"
#include "sim/load.h"

namespace hopwise::cli {
namespace {

using json::Json;

struct UnservedKind {
  std::string_view group, kind;
  bool each;  // a finding for each object; else one for all of them
  std::string_view differs, todo;
};

constexpr std::array kUnservedKinds = {
    UnservedKind{"batch.volcano.sh", "CronJob", true,
                 "no controller of Hopwise makes Jobs of it: nothing runs at its times",
                 "let a CronJob of batch/v1 create the Job, or keep Volcano's controller manager "
                 "for cronjob alone (--controllers=cronjob)"},
    UnservedKind{"flow.volcano.sh", "JobFlow", true,
                 "no controller of Hopwise makes its Jobs, in whatever order",
                 "create the Jobs from a workflow engine, or keep Volcano's controller manager for "
                 "jobflow-controller and jobtemplate-controller alone"},
    UnservedKind{"flow.volcano.sh", "JobTemplate", true, "nothing reads it without JobFlows",
                 "see its JobFlows; the object may stay"},
    UnservedKind{"training.volcano.sh", "HyperJob", true,
                 "nothing spreads it over clusters: no Job is made of it",
                 "create a Job in each cluster"},
    UnservedKind{"nodeinfo.volcano.sh", "Numatopology", false,
                 "nobody reads it: NUMA nodes play no part in choosing a node",
                 "let the kubelet's Topology Manager align devices and CPUs within the node"},
    UnservedKind{"shard.volcano.sh", "NodeShard", false,
                 "there are no shards: one scheduler places on all nodes",
                 "run one hopwise scheduler; taint nodes that it must leave alone"},
    UnservedKind{"config.volcano.sh", "ColocationConfiguration", true,
                 "nothing oversubscribes nodes: room is what the requests leave",
                 "keep Volcano's agent for it, or drop it"},
};

struct IgnoredMark {
  std::string_view key;
  bool prefix;
  std::string_view differs, todo;
};

// Annotations and labels that Volcano reads and Hopwise does not.
constexpr std::array kIgnoredMarks = {
    IgnoredMark{"volcano.sh/sla-waiting-time", false,
                "no deadline moves the job forward: the plugin sla is not served",
                "give the job a higher priorityClassName"},
    IgnoredMark{"sla-waiting-time", false,
                "no deadline moves the job forward: the plugin sla is not served",
                "give the job a higher priorityClassName"},
    IgnoredMark{"volcano.sh/revocable-zone", false,
                "no node is lent by the hour: the plugin tdm is not served",
                "keep such pods off those nodes with a node selector"},
    IgnoredMark{"volcano.sh/jdb-min-available", false,
                "has no effect: evictions go through the eviction API",
                "write a PodDisruptionBudget"},
    IgnoredMark{"volcano.sh/jdb-max-unavailable", false,
                "has no effect: evictions go through the eviction API",
                "write a PodDisruptionBudget"},
    IgnoredMark{"volcano.sh/numa-topology-policy", false,
                "no node is refused for its NUMA nodes: the plugin numa-aware is not served",
                "let the kubelet's Topology Manager refuse what cannot be aligned"},
    IgnoredMark{"volcano.sh/hierarchy", true, "the shares of hierarchical drf are not served",
                "use spec.parent and spec.capability of queues"},
    IgnoredMark{"volcano.sh/nodegroup-", true,
                "queues are not tied to groups of nodes: the plugin nodegroup is not served",
                "taint the nodes, and let the jobs of the queue tolerate it"},
    IgnoredMark{"volcano.sh/task-topology-", true,
                "tasks are not drawn to each other: the plugin task-topology is not served",
                "use networkTopology, or a partitionPolicy for tasks that belong together"},
    IgnoredMark{"volcano.sh/resource-strategy-", true,
                "has no effect: the plugin resource-strategy-fit is not served",
                "use the weights of binpack and nodeorder in the configuration"},
    IgnoredMark{"scheduling.volcano.sh/queue-allocation-gate", false,
                "nobody takes the scheduling gate of this name away: the pod waits for ever",
                "remove the annotation and the gate"},
    IgnoredMark{"volcano.sh/job-forwarding", false, "nothing forwards jobs to other clusters",
                "create the job where it is to run"},
    IgnoredMark{"volcano.sh/qos-level", false,
                "online and offline pods are not told apart; Volcano's agent alone reads it",
                "keep Volcano's agent, or use requests and priorities"},
    IgnoredMark{"volcano.sh/oversubscription", true,
                "oversubscribed room is not counted: room is what the requests leave",
                "keep Volcano's agent for evicting, and size requests to what nodes have"},
};

// Volcano's ways to share a device count as plain extended resources here.
constexpr std::string_view kDevicePrefix = "volcano.sh/";

bool IsKind(const Json& object, std::string_view group, std::string_view kind) {
  return json::Text(object, {"kind"}) == kind &&
         control::GroupOf(json::Text(object, {"apiVersion"})) == group;
}

bool IsOurScheduler(std::string_view name) { return name == "volcano" || name == "hopwise"; }

// The tiers that HyperNodes have.
struct Tiers {
  std::set<std::string> names;
  int64_t top = 0;
  bool any = false;
};

Tiers TiersOf(const std::vector<Json>& objects) {
  Tiers tiers;
  for (const Json& object : objects) {
    if (IsKind(object, control::kVolcanoTopology, "HyperNode")) {
      const int64_t tier = json::Number(object, {"spec", "tier"}, 0);
      tiers.top = tiers.any ? std::max(tiers.top, tier) : tier;
      tiers.any = true;
      if (std::string name = json::Text(object, {"spec", "tierName"}); !name.empty()) {
        tiers.names.insert(std::move(name));
      }
    }
  }
  return tiers;
}

class Finder {
 public:
  Finder(const std::vector<Json>& objects, Findings& findings)
      : objects_(objects), tiers_(TiersOf(objects)), findings_(findings) {}

  void Run() {
    for (const Json& object : objects_) {
      shown_ = json::Describe(object);
      if (IsKind(object, control::kVolcanoBatch, "Job")) {
        CheckVcJob(object);
      } else if (IsKind(object, control::kVolcanoScheduling, "PodGroup")) {
        CheckPodGroup(object);
      } else if (IsKind(object, control::kVolcanoScheduling, "Queue")) {
        CheckQueue(object);
      } else if (IsKind(object, "", "Node")) {
        CheckMarks(object, "");
      } else if (IsKind(object, "", "Pod")) {
        CheckLonePod(object);
      } else if (control::ControllerOf(object) == nullptr) {
        CheckTemplates(object, "");
      }
    }
    CheckKinds();
    CheckFabric();
  }

 private:
  void Add(std::string field, std::string differs, std::string_view todo) {
    findings_.push_back({shown_, std::move(field), std::move(differs), std::string(todo)});
  }

  // `at`: where the metadata stand, "" or "spec.template.".
  void CheckMarks(const Json& object, const std::string& at) {
    for (const char* field : {"annotations", "labels"}) {
      const Json* marks = json::Get(object, {"metadata", field});
      if (marks == nullptr || !marks->is_object()) {
        continue;
      }
      for (const auto& [key, value] : marks->items()) {
        const auto* found = std::ranges::find_if(kIgnoredMarks, [&](const IgnoredMark& mark) {
          return mark.prefix ? key.starts_with(mark.key) : key == mark.key;
        });
        if (found != kIgnoredMarks.end()) {
          Add(fmt::format("{}metadata.{}[{}]", at, field, key), std::string(found->differs),
              found->todo);
        }
      }
    }
  }

  void CheckTopology(const Json& holder, json::Path path, const std::string& shown) {
    const Json* rule = json::Get(holder, path);
    if (rule == nullptr || !rule->is_object() || json::Text(*rule, {"mode"}, "hard") != "hard" ||
        !tiers_.any) {
      return;
    }
    const std::string name = json::Text(*rule, {"highestTierName"});
    const bool has_number = json::Get(*rule, {"highestTierAllowed"}) != nullptr;
    if (!name.empty() && !has_number && !tiers_.names.contains(name)) {
      Add(shown + ".highestTierName",
          fmt::format("no HyperNode has the tier name {}: Volcano lets it run anywhere, Hopwise "
                      "keeps it waiting",
                      name),
          tiers_.names.empty()
              ? "give the HyperNodes a tierName, or the rule a number"
              : fmt::format("name one that exists: {}", fmt::join(tiers_.names, ", ")));
    } else if (has_number && json::Number(*rule, {"highestTierAllowed"}, 0) > tiers_.top) {
      Add(shown + ".highestTierAllowed",
          fmt::format("is above the top tier {}: Volcano takes the whole cluster, Hopwise one "
                      "HyperNode of the top tier",
                      tiers_.top),
          "use mode soft where the whole cluster will do");
    } else if (name.empty() && !has_number) {
      Add(shown,
          "hard without a tier: Volcano drops the rule, Hopwise holds it inside one HyperNode of "
          "the top tier",
          "set highestTierAllowed, or mode soft where the whole cluster will do");
    }
  }

  void CheckVcJob(const Json& job) {
    CheckMarks(job, "");
    CheckTopology(job, {"spec", "networkTopology"}, "spec.networkTopology");
    const Json& tasks = json::List(job, {"spec", "tasks"});
    for (size_t i = 0; i < tasks.size(); ++i) {
      const std::string at = fmt::format("spec.tasks[{}]", i);
      CheckTopology(tasks[i], {"partitionPolicy", "networkTopology"},
                    at + ".partitionPolicy.networkTopology");
      const std::string policy = json::Text(tasks[i], {"topologyPolicy"}, "none");
      if (policy != "none") {
        Add(at + ".topologyPolicy",
            fmt::format("{} plays no part: NUMA nodes are the kubelet's business", policy),
            "let the kubelet's Topology Manager refuse what cannot be aligned");
      }
    }
    const std::string scheduler = json::Text(job, {"spec", "schedulerName"}, "volcano");
    if (!IsOurScheduler(scheduler)) {
      Add("spec.schedulerName",
          fmt::format("hopwise scheduler places the pods of volcano and hopwise, not of {}",
                      scheduler),
          fmt::format("start it with --scheduler-name {} where that was Volcano's", scheduler));
      return;
    }
    CheckTemplates(job, scheduler);
  }

  void CheckPodGroup(const Json& group) {
    const Json* owner = control::ControllerOf(group);
    if (owner != nullptr && json::Text(*owner, {"kind"}) == "Job") {
      return;  // what it says, its Job said
    }
    CheckMarks(group, "");
    CheckTopology(group, {"spec", "networkTopology"}, "spec.networkTopology");
    const Json& policies = json::List(group, {"spec", "subGroupPolicy"});
    for (size_t i = 0; i < policies.size(); ++i) {
      CheckTopology(policies[i], {"networkTopology"},
                    fmt::format("spec.subGroupPolicy[{}].networkTopology", i));
    }
  }

  void CheckQueue(const Json& queue) {
    CheckMarks(queue, "");
    const auto has = [&](json::Path path) {
      const Json* value = json::Get(queue, path);
      return value != nullptr && !value->is_null() && !(value->is_structured() && value->empty());
    };
    if (has({"spec", "deserved"})) {
      Add("spec.deserved", "has no effect: queues go by priority and use per weight",
          "set weight and capability");
    }
    if (has({"spec", "guarantee", "resource"})) {
      Add("spec.guarantee", "has no effect: no room is kept free for the queue",
          "limit the other queues by their capability");
    }
    if (has({"spec", "affinity"})) {
      Add("spec.affinity", "the queue is not tied to groups of nodes: nodegroup is not served",
          "taint the nodes, and let the jobs of the queue tolerate it");
    }
    if (has({"spec", "extendClusters"})) {
      Add("spec.extendClusters", "nothing forwards jobs to other clusters",
          "make a queue in each cluster");
    }
    const Json* capability = json::Get(queue, {"spec", "capability"});
    if (capability != nullptr && capability->is_object()) {
      for (const auto& [name, amount] : capability->items()) {
        if (name.find("deviceclass/") != std::string::npos) {
          Add(fmt::format("spec.capability[{}]", name),
              "device claims are not counted: this limit holds nothing back",
              "limit the extended resource instead, or use a ResourceQuota");
        }
      }
    }
  }

  void CheckLonePod(const Json& pod) {
    const std::string phase = json::Text(pod, {"status", "phase"});
    if (control::ControllerOf(pod) == nullptr && phase != "Succeeded" && phase != "Failed" &&
        IsOurScheduler(json::Text(pod, {"spec", "schedulerName"}))) {
      CheckMarks(pod, "");
      CheckPod(pod, "");
    }
  }

  // `scheduler` of a Volcano Job stands for what its templates say.
  void CheckTemplates(const Json& workload, const std::string& scheduler) {
    for (const control::TemplateAt& at : control::TemplatesOf(workload)) {
      Json pod = control::MakePod(at.pod_template, "default", "sample", workload);
      // No owner: its missing uid would be a fault of the sample.
      json::Unset(pod, {"metadata", "ownerReferences"});
      if (scheduler.empty() && !IsOurScheduler(json::Text(pod, {"spec", "schedulerName"}))) {
        continue;
      }
      if (at.pod_template != nullptr) {
        CheckMarks(*at.pod_template, at.path + ".");
      }
      CheckPod(pod, at.path + ".");
    }
  }

  void CheckPod(const Json& pod, const std::string& at) {
    const Result<api::Decoded> decoded = api::DecodeObject(json::Dump(pod));
    if (!decoded) {
      Add(at + "spec", "cannot be read: " + decoded.error().message,
          "correct it; such a pod is never placed");
      return;
    }
    const auto* typed = std::get_if<api::Pod>(&decoded->object);
    if (typed == nullptr) {
      return;
    }
    for (const api::UnevaluatedConstraint& constraint : typed->unevaluated) {
      Add(at + constraint.field, "is not evaluated yet: the pod waits, and its reason names it",
          "drop it where it may be, or leave such pods to another scheduler for now");
    }
    for (const auto& [name, amount] : typed->request) {
      if (name.starts_with(kDevicePrefix)) {
        Add(fmt::format("{}spec.containers.resources[{}]", at, name),
            "is counted like any extended resource: no device is chosen and none is shared",
            "ask for whole devices, such as nvidia.com/gpu");
      }
    }
  }

  void CheckKinds() {
    for (const UnservedKind& unserved : kUnservedKinds) {
      size_t count = 0;
      for (const Json& object : objects_) {
        if (!IsKind(object, unserved.group, unserved.kind)) {
          continue;
        }
        ++count;
        if (unserved.each) {
          shown_ = json::Describe(object);
          Add("-", std::string(unserved.differs), unserved.todo);
        }
      }
      if (count > 0 && !unserved.each) {
        shown_ = fmt::format("{} ({} objects)", unserved.kind, count);
        Add("-", std::string(unserved.differs), unserved.todo);
      }
    }
  }

  // What takes a HyperNode out of the topology here stops all jobs with a rule there.
  void CheckFabric() {
    Json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", Json::array()}};
    for (const Json& object : objects_) {
      if (IsKind(object, control::kVolcanoTopology, "HyperNode") || IsKind(object, "", "Node")) {
        list["items"].push_back(object);
      }
    }
    sim::Manifest manifest;
    sim::AddManifest("the cluster", json::Dump(list), manifest);
    sim::Store store;
    cluster::State state;
    LoadState(manifest, store, state);
    for (const topology::Fault& fault : state.topology().faults) {
      if (fault.isolates) {
        shown_ = "HyperNode " + fault.object;
        Add("spec",
            fmt::format("{}: {}; Hopwise leaves this HyperNode out and keeps the rest",
                        topology::ReasonOf(fault.kind), fault.message),
            "repair it; hopwise topology check lists every fault");
      }
    }
  }

  const std::vector<Json>& objects_;
  Tiers tiers_;
  Findings& findings_;
  std::string shown_;  // the object that is looked at
};

}  // namespace

void FindInObjects(const std::vector<Json>& objects, Findings& findings) {
  Finder(objects, findings).Run();
}

}  // namespace hopwise::cli
