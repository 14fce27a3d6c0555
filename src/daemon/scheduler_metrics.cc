#include "daemon/scheduler_metrics.h"

#include <string>

namespace hopwise::daemon {
namespace {

using enum MetricDeclaration::Type;
using Declarations = std::vector<MetricDeclaration>;

// Volcano's buckets, in milliseconds, so that quantiles of both schedulers can be compared.
std::vector<double> WholeDecision() { return server::ExponentialRange(1, 5'000, 20); }
std::vector<double> WholeJob() { return server::ExponentialRange(100, 120'000, 30); }
std::vector<double> Plugin() { return server::ExponentialRange(0.1, 100, 15); }
std::vector<double> Action() { return server::ExponentialRange(1, 2'000, 20); }
std::vector<double> Task() { return server::ExponentialRange(50, 60'000, 30); }
std::vector<double> Stage() { return server::ExponentialRange(0.1, 500, 20); }

// Leaf domains of a gang: each bucket ends at twice as many as the one before.
std::vector<double> LeafDomains() { return {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}; }

Declarations Latencies() {
  return {
      {"volcano_e2e_scheduling_latency_milliseconds", kHistogram,
       "Time of one scheduling run, in milliseconds.", WholeDecision()},
      {"volcano_open_session_duration_milliseconds", kHistogram,
       "Time to prepare a scheduling run, in milliseconds.", WholeDecision()},
      {"volcano_e2e_job_scheduling_latency_milliseconds", kHistogram,
       "Time from a gang's creation to its place, in milliseconds.", WholeJob()},
      {"volcano_e2e_job_scheduling_duration", kGauge,
       "Time from the gang's creation to its last place, in milliseconds."},
      {"volcano_e2e_job_scheduling_start_time", kGauge,
       "When the gang was created, in seconds since 1970."},
      {"volcano_e2e_job_scheduling_last_time", kGauge,
       "When members of the gang last got a place, in seconds since 1970."},
      {"volcano_plugin_scheduling_latency_milliseconds", kHistogram,
       "Time spent in one plugin, in milliseconds.", Plugin()},
      {"volcano_action_scheduling_latency_milliseconds", kHistogram,
       "Time spent in one action, in milliseconds.", Action()},
      {"volcano_task_scheduling_latency_milliseconds", kHistogram,
       "Time from a pod's creation to a stage of its scheduling, in milliseconds.", Task()},
      {"volcano_scheduling_stage_duration_milliseconds", kHistogram,
       "Time of one stage of a pod's scheduling, in milliseconds.", Stage()},
      {"hopwise_decision_duration_milliseconds", kHistogram,
       "Time of one decision over all gangs that may be placed, in milliseconds.", Stage()},
      {"hopwise_bind_duration_milliseconds", kHistogram,
       "Time from sending a bind to the API server's answer, in milliseconds.", WholeDecision()},
  };
}

Declarations Outcomes() {
  return {
      {"volcano_schedule_attempts_total", kCounter,
       "Attempts to place pods, by what came of them."},
      {"volcano_pod_preemption_victims", kGauge,
       "Pods chosen for eviction by the last preemption."},
      {"volcano_total_preemption_attempts", kCounter, "Attempts to make room by eviction."},
      {"volcano_eviction_transactions_total", kCounter,
       "Sets of evictions that were decided together."},
      {"volcano_unschedule_task_count", kGauge, "Pods of the gang that could not be placed."},
      {"volcano_unschedule_job_count", kGauge, "Gangs that wait for a place."},
      {"volcano_job_retry_counts", kCounter, "Times that the gang was tried again."},
      {"volcano_job_share", kGauge, "The gang's dominant share of the cluster, from 0 to 1."},
      {"hopwise_gang_tier", kCounter,
       "Gangs placed, by the tier of the smallest domain that holds the whole gang."},
      {"hopwise_gang_domains_crossed", kHistogram, "Leaf domains that a placed gang spans.",
       LeafDomains()},
      {"hopwise_waiting_gangs", kGauge, "Gangs that wait, by reason."},
      {"hopwise_binds_total", kCounter, "Binds sent to the API server, by what came of them."},
      {"hopwise_evictions_total", kCounter,
       "Evictions asked of the API server, by what came of them."},
      {"hopwise_unannounced_verdict_changes_total", kCounter,
       "Waiting gangs whose verdict changed without an event that said so: each is a bug."},
  };
}

Declarations Queues() {
  return {
      {"volcano_queue_allocated_milli_cpu", kGauge,
       "CPU that the queue's pods hold, in thousandths."},
      {"volcano_queue_allocated_memory_bytes", kGauge, "Memory that the queue's pods hold."},
      {"volcano_queue_allocated_scalar_resources", kGauge, "Other resources that its pods hold."},
      {"volcano_queue_request_milli_cpu", kGauge,
       "CPU that the queue's pods ask for, in thousandths."},
      {"volcano_queue_request_memory_bytes", kGauge, "Memory that the queue's pods ask for."},
      {"volcano_queue_request_scalar_resources", kGauge, "Other resources that its pods ask for."},
      {"volcano_queue_deserved_milli_cpu", kGauge, "CPU that the queue deserves, in thousandths."},
      {"volcano_queue_deserved_memory_bytes", kGauge, "Memory that the queue deserves."},
      {"volcano_queue_deserved_scalar_resources", kGauge, "Other resources that it deserves."},
      {"volcano_queue_capacity_milli_cpu", kGauge, "CPU that the queue may use, in thousandths."},
      {"volcano_queue_capacity_memory_bytes", kGauge, "Memory that the queue may use."},
      {"volcano_queue_capacity_scalar_resources", kGauge, "Other resources that it may use."},
      {"volcano_queue_real_capacity_milli_cpu", kGauge,
       "CPU that the queue may use after what others are guaranteed, in thousandths."},
      {"volcano_queue_real_capacity_memory_bytes", kGauge,
       "Memory that the queue may use after what others are guaranteed."},
      {"volcano_queue_real_capacity_scalar_resources", kGauge,
       "Other resources that the queue may use after what others are guaranteed."},
      {"volcano_queue_inqueue_milli_cpu", kGauge,
       "CPU of gangs that were admitted and do not run yet, in thousandths."},
      {"volcano_queue_inqueue_memory_bytes", kGauge,
       "Memory of gangs that were admitted and do not run yet."},
      {"volcano_queue_inqueue_scalar_resources", kGauge,
       "Other resources of gangs that were admitted and do not run yet."},
      {"volcano_queue_share", kGauge,
       "What the queue holds of what it deserves, its largest ratio."},
      {"volcano_queue_weight", kGauge, "The queue's weight."},
      {"volcano_queue_overused", kGauge, "1 when the queue holds more than it deserves, else 0."},
      {"volcano_namespace_share", kGauge, "The namespace's dominant share, from 0 to 1."},
      {"volcano_namespace_weight", kGauge, "The namespace's weight."},
      {"volcano_namespace_weighted_share", kGauge,
       "The namespace's dominant share divided by its weight."},
  };
}

}  // namespace

Declarations SchedulerMetricDeclarations() {
  Declarations all = Latencies();
  for (const auto& part : {Outcomes(), Queues(), ProgramMetricDeclarations()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

void DeclareSchedulerMetrics(server::Metrics& metrics) {
  Declare(SchedulerMetricDeclarations(), metrics);
}

}  // namespace hopwise::daemon
