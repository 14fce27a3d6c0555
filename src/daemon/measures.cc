#include "daemon/measures.h"

#include <set>
#include <utility>
#include <vector>

namespace hopwise::daemon {
namespace {

// What a placed gang says about the quality of its place.
void MeasurePlace(server::Metrics& metrics, cluster::State& state,
                  const sched::GangReport& report) {
  if (!report.location.known) {
    return;
  }
  const topology::Tree& tree = *state.trees()[report.location.tree];
  std::set<DomainId> leaves;
  for (const PodId id : state.gang(report.gang).pods) {
    const cluster::PodRecord& pod = state.pod(id);
    if (cluster::HoldsRoom(pod.state) && pod.node.valid()) {
      leaves.insert(tree.leaf_of[pod.node.index()]);
    }
  }
  metrics.Count("hopwise_gang_tier", 1, {{"tier", std::to_string(report.location.tier)}});
  metrics.Observe("hopwise_gang_domains_crossed", static_cast<double>(leaves.size()));
}

std::string JobId(const cluster::Gang& gang) { return gang.ns + "/" + gang.name; }

server::Labels LabelsOf(const cluster::Gang& gang) {
  return {{"job_name", gang.name}, {"queue", gang.queue_name}, {"job_namespace", gang.ns}};
}

void MeasureGang(server::Metrics& metrics, const cluster::Gang& gang, Time now) {
  if (!gang.creation.set()) {
    return;
  }
  const double seconds = static_cast<double>((now - gang.creation).ns) * 1e-9;
  metrics.Observe("volcano_e2e_job_scheduling_latency_milliseconds", seconds * 1e3);
  if (gang.source == cluster::GangSource::kLonePod) {
    return;  // a series for each pod of a cluster would be of no use
  }
  const server::Labels labels = LabelsOf(gang);
  metrics.Set("volcano_e2e_job_scheduling_duration", seconds * 1e3, labels);
  metrics.Set("volcano_e2e_job_scheduling_start_time", static_cast<double>(gang.creation.ns) * 1e-9,
              labels);
  metrics.Set("volcano_e2e_job_scheduling_last_time", static_cast<double>(now.ns) * 1e-9, labels);
}

using Series = std::vector<std::pair<server::Labels, double>>;

// One of a queue's vectors of amounts, as Volcano's three families of it.
void SetAmounts(server::Metrics& metrics, const cluster::State& state, const std::string& what,
                const std::vector<int64_t> cluster::Queue::* member) {
  Series cpu;
  Series memory;
  Series scalars;
  for (size_t q = 0; q < state.queue_slots(); ++q) {
    const cluster::Queue& queue = state.queue(QueueId(q));
    const std::vector<int64_t>& amounts = queue.*member;
    for (size_t r = 0; queue.alive && r < amounts.size(); ++r) {
      const std::string& resource = state.columns().ResourceName(ResourceId(r));
      if (amounts[r] < 0) {
        continue;  // not set
      }
      const auto value = static_cast<double>(amounts[r]);
      if (resource == "cpu") {
        cpu.push_back({{{"queue_name", queue.name}}, value});
      } else if (resource == "memory") {
        memory.push_back({{{"queue_name", queue.name}}, value});
      } else {
        // In thousandths, as Volcano has them.
        scalars.push_back({{{"queue_name", queue.name}, {"resource", resource}}, value * 1e3});
      }
    }
  }
  metrics.SetAll("volcano_queue_" + what + "_milli_cpu", cpu);
  metrics.SetAll("volcano_queue_" + what + "_memory_bytes", memory);
  metrics.SetAll("volcano_queue_" + what + "_scalar_resources", scalars);
}

}  // namespace

void ObserveMs(server::Metrics& metrics, const std::string& name, Duration took,
               const server::Labels& labels) {
  metrics.Observe(name, static_cast<double>(took.ns) * 1e-6, labels);
}

void MeasureRun(server::Metrics& metrics, cluster::State& state, const sched::Plan& plan,
                Duration took, Time now) {
  ObserveMs(metrics, "hopwise_decision_duration_milliseconds", took);
  ObserveMs(metrics, "volcano_e2e_scheduling_latency_milliseconds", took);
  ObserveMs(metrics, "volcano_action_scheduling_latency_milliseconds", took,
            {{"action", "allocate"}});
  for (const sched::GangReport& report : plan.gangs) {
    if (!report.binds.empty()) {
      MeasurePlace(metrics, state, report);
      MeasureGang(metrics, state.gang(report.gang), now);
    }
    if (report.waiting > 0) {
      metrics.Count("volcano_schedule_attempts_total", 1, {{"result", "unschedulable"}});
      if (const cluster::Gang& gang = state.gang(report.gang);
          gang.source != cluster::GangSource::kLonePod) {
        metrics.Count("volcano_job_retry_counts", 1, {{"job_id", JobId(gang)}});
      }
    }
  }
}

void MeasureState(server::Metrics& metrics, const cluster::State& state,
                  const std::map<std::string, int64_t>& waiting_by_reason,
                  const std::map<std::string, int64_t>& waiting) {
  Series reasons;
  for (const auto& [reason, count] : waiting_by_reason) {
    reasons.push_back({{{"reason", reason}}, static_cast<double>(count)});
  }
  metrics.SetAll("hopwise_waiting_gangs", reasons);
  Series tasks;
  for (const auto& [gang, count] : waiting) {
    tasks.push_back({{{"job_id", gang}}, static_cast<double>(count)});
  }
  metrics.SetAll("volcano_unschedule_task_count", tasks);
  metrics.Set("volcano_unschedule_job_count", static_cast<double>(waiting.size()));
  SetAmounts(metrics, state, "allocated", &cluster::Queue::allocated);
  SetAmounts(metrics, state, "deserved", &cluster::Queue::deserved);
  SetAmounts(metrics, state, "capacity", &cluster::Queue::capability);
  Series weights;
  for (size_t q = 0; q < state.queue_slots(); ++q) {
    const cluster::Queue& queue = state.queue(QueueId(q));
    if (queue.alive) {
      weights.push_back({{{"queue_name", queue.name}}, static_cast<double>(queue.weight)});
    }
  }
  metrics.SetAll("volcano_queue_weight", weights);
}

void MeasureStage(server::Metrics& metrics, const cluster::PodRecord& pod, const char* stage,
                  Time now) {
  if (pod.creation.set()) {
    ObserveMs(metrics, "volcano_task_scheduling_latency_milliseconds", now - pod.creation,
              {{"stage", stage}});
  }
}

void DropGang(server::Metrics& metrics, const cluster::Gang& gang) {
  for (const char* name :
       {"volcano_e2e_job_scheduling_duration", "volcano_e2e_job_scheduling_start_time",
        "volcano_e2e_job_scheduling_last_time"}) {
    metrics.Drop(name, LabelsOf(gang));
  }
  metrics.Drop("volcano_job_retry_counts", {{"job_id", JobId(gang)}});
}

}  // namespace hopwise::daemon
