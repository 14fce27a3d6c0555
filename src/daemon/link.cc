#include "daemon/link.h"

#include <algorithm>
#include <utility>

#include "api/json.h"
#include "base/log.h"
#include "daemon/rivals.h"

namespace hopwise::daemon {
namespace {

constexpr Duration kQuietLook = Millis(20);
constexpr const char* kLease = "leases.coordination.k8s.io";
// Without leader election nobody else writes, for ever.
constexpr Duration kForEver = Seconds(1'000'000'000);

// At most a third of the Lease, so that between two renewals there is room for one.
Duration BindTimeoutFor(const SchedulerOptions& options) {
  return options.leader_elect ? std::min(kBindTimeout, Duration{options.lease_duration.ns / 3})
                              : kBindTimeout;
}

}  // namespace

Link::Link(kube::CurlTransport& transport, const SchedulerOptions& options,
           const std::string& identity, server::Metrics& metrics, Handlers handlers)
    : transport_(transport),
      options_(options),
      identity_(identity),
      metrics_(metrics),
      handlers_(std::move(handlers)) {
  kube::EventRecorder::Options recorder;
  recorder.component = options.scheduler_names.front();
  recorder.instance = identity;
  recorder.yields = [this] { return binder_ != nullptr && binder_->waiting() > 0; };
  events_ = std::make_unique<kube::EventRecorder>(transport, recorder);
  const auto to_core = handlers_.to_core;
  BinderOptions binder;
  binder.timeout = BindTimeoutFor(options);
  // Why a pod waited, written late, would call a bound one unscheduled.
  binder.settle = [this](const ObjectName& pod, std::function<void()> then) {
    writer_->Settle(kube::kPods, pod, "status", std::move(then));
  };
  binder_ = std::make_unique<Binder>(
      transport, *events_, [this] { return Remaining(); },
      [to_core](const BindResult& result) {
        to_core([result](Core& core, Time now) { core.BindEnded(result, now); });
      },
      binder);
  writer_ = std::make_unique<Writer>(
      transport, [this] { return Remaining().ns > 0; },
      [to_core](const Patch& patch, const kube::ApiError& error) {
        to_core([patch, error](Core& core, Time now) { core.PatchEnded(patch, error, now); });
      },
      [to_core](const std::string& name, const kube::ApiError& error) {
        to_core([name, error](Core& core, Time now) { core.QueueCreationEnded(name, error, now); });
      });
}

Link::~Link() = default;

Duration Link::Remaining() const {
  if (stopped_) {
    return {};
  }
  return elector_ == nullptr ? kForEver : elector_->remaining();
}

void Link::Start() {
  Log(LogLevel::kInfo, "watching");
  for (const kube::Resource& resource :
       {kube::kPriorityClasses, kube::kNodes, kube::kHyperNodes, kube::kQueues, kube::kPodGroups,
        kube::kPluginPodGroups, kube::kPods}) {
    Watch(resource, !resource.group.empty() && resource.group != "scheduling.k8s.io");
  }
  if (options_.dry_run || !options_.leader_elect) {
    Elected();
    return;
  }
  kube::LeaseOptions lease;
  lease.ns = options_.lock_namespace;
  lease.name = options_.lock_name;
  lease.identity = identity_;
  lease.annotations = {{kServedNames, ServedNames(options_)}};
  lease.duration = options_.lease_duration;
  lease.renew_deadline = options_.renew_deadline;
  lease.retry_period = options_.retry_period;
  kube::LeaderElector::Handlers handlers;
  handlers.elected = [this] { Elected(); };
  handlers.lost = [this](std::string_view why) {
    readiness_.leading = false;
    readiness_.troubles[kLease] = why;
    handlers_.to_core([](Core& core, Time now) { core.SetLeading(false, now); });
    Publish();
  };
  handlers.observed = [this](std::string_view holder) {
    Log(LogLevel::kInfo, "leader_observed", {{"holder", holder}});
    readiness_.leader = std::string(holder);
    Publish();
  };
  handlers.trouble = [this](const kube::ApiError& error) {
    // Whoever leads is well until the Lease is lost; who stands by does not see who leads.
    if (error.ok()) {
      readiness_.troubles.erase(kLease);
    } else {
      Log(LogLevel::kWarning, "lease_trouble", {{"error", error.message}});
      if (!readiness_.leading) {
        readiness_.troubles[kLease] = error.message;
      }
    }
    Publish();
  };
  elector_ = std::make_unique<kube::LeaderElector>(transport_, lease, std::move(handlers));
  elector_->Start();
}

void Link::Watch(const kube::Resource& resource, bool optional) {
  kube::Reflector::Handlers handlers;
  const auto to_core = handlers_.to_core;
  handlers.events = [to_core, resource](std::vector<kube::WatchEvent>&& events) {
    const auto shared = std::make_shared<std::vector<kube::WatchEvent>>(std::move(events));
    to_core([shared, resource](Core& core, Time now) {
      for (kube::WatchEvent& event : *shared) {
        core.Observe(resource, std::move(event), now);
      }
    });
  };
  handlers.synced = [this, resource] { Listed(resource); };
  handlers.trouble = [this, resource, optional](const kube::ApiError& error) {
    Trouble(resource, optional, error);
  };
  kube::Reflector::Options reflector;
  reflector.streaming_list = options_.streaming_lists;
  Source& source = sources_[kube::ResourceName(resource)];
  source.reflector = std::make_unique<kube::Reflector>(transport_, resource, std::move(reflector),
                                                       std::move(handlers));
  source.reflector->Start();
}

void Link::Listed(const kube::Resource& resource) {
  Source& source = sources_.at(kube::ResourceName(resource));
  source.listed = true;
  source.missing = false;
  metrics_.Count("hopwise_reflector_lists_total", 1, {{"resource", kube::ResourceName(resource)}});
  metrics_.Set("hopwise_cache_synced", 1, {{"resource", kube::ResourceName(resource)}});
  if (resource == kube::kPods) {
    fresh_ = true;
  }
  LookWhetherSynced();
}

void Link::Trouble(const kube::Resource& resource, bool optional, const kube::ApiError& error) {
  const std::string name = kube::ResourceName(resource);
  Source& source = sources_.at(name);
  const bool was_missing = source.missing;
  source.missing = optional && error.failure == kube::Failure::kNoSuchKind;
  if (error.ok() || source.missing) {
    readiness_.troubles.erase(name);
  } else {
    readiness_.troubles[name] = error.message;
  }
  if (source.missing && !was_missing) {
    Log(LogLevel::kWarning, "kind_not_installed",
        {{"resource", name}, {"again_in", FormatGoDuration(kube::kMissingRetry)}});
  } else if (!error.ok() && !source.missing) {
    Log(LogLevel::kWarning, "watch_trouble", {{"resource", name}, {"error", error.message}});
  }
  const bool never =
      error.failure == kube::Failure::kForbidden || error.failure == kube::Failure::kUnauthorized;
  if (never && !once_synced_) {
    handlers_.hopeless(error);
  }
  LookWhetherSynced();
  Publish();
}

void Link::LookWhetherSynced() {
  const bool all = std::ranges::all_of(
      sources_, [](const auto& entry) { return entry.second.listed || entry.second.missing; });
  if (all && !once_synced_) {
    once_synced_ = true;
    Log(LogLevel::kInfo, "caches_synced");
  }
  const bool synced = once_synced_ && fresh_;
  if (synced != readiness_.synced) {
    readiness_.synced = synced;
    handlers_.to_core([synced](Core& core, Time) { core.SetSynced(synced); });
    Publish();
  }
}

// What the leader before us bound last may not have reached our watch: a list that is newer than
// our election is waited for before the first decision.
void Link::Elected() {
  Log(LogLevel::kInfo, "leading", {{"identity", identity_}});
  readiness_.leading = true;
  readiness_.leader = identity_;
  readiness_.troubles.erase(kLease);
  Source& pods = sources_.at(kube::ResourceName(kube::kPods));
  fresh_ = false;
  LookWhetherSynced();
  pods.reflector->Stop();
  pods.reflector->Start();
  handlers_.to_core([](Core& core, Time now) { core.SetLeading(true, now); });
  Publish();
}

void Link::CarryOut(const Effects& effects) {
  for (const ObjectName& pod : effects.cancelled) {
    binder_->Cancel(pod.uid);
  }
  for (const BindPod& bind : effects.binds) {
    binder_->Bind(bind);
  }
  for (const EvictPod& evict : effects.evictions) {
    binder_->Evict(evict);
  }
  for (const ObjectName& pod : effects.look_ups) {
    LookUp(pod);
  }
  for (const std::string& name : effects.new_queues) {
    writer_->CreateQueue(name);
  }
  for (const Patch& patch : effects.patches) {
    writer_->Write(patch);
  }
  for (const Tell& event : effects.events) {
    events_->Record(event.about, event.text);
  }
  const kube::EventRecorder::Counts counts = events_->counts();
  metrics_.Set("hopwise_events_waiting", static_cast<double>(counts.waiting));
  if (counts.dropped > dropped_) {
    metrics_.Count("hopwise_events_dropped_total",
                   static_cast<double>(counts.dropped - std::exchange(dropped_, counts.dropped)));
  }
}

void Link::LookUp(const ObjectName& pod) {
  kube::Request request;
  request.path = kube::ObjectPath(kube::kPods, pod.ns, pod.name);
  const auto to_core = handlers_.to_core;
  transport_.Send(std::move(request), [to_core, pod](kube::Response&& response) {
    kube::WatchEvent event;
    if (response.status == 404) {
      api::Pod gone;
      gone.meta.ns = pod.ns;
      gone.meta.name = pod.name;
      gone.meta.uid = pod.uid;
      event.type = kube::WatchEvent::Type::kDeleted;
      event.decoded.object = std::move(gone);
    } else {
      Result<api::Decoded> decoded = api::DecodeObject(response.ok() ? response.body : "");
      if (!decoded) {
        return;  // the scheduler's own pause goes on
      }
      event.decoded = std::move(*decoded);
    }
    const auto shared = std::make_shared<kube::WatchEvent>(std::move(event));
    to_core([shared, pod](Core& core, Time now) { core.LookedUp(pod, std::move(*shared), now); });
  });
}

void Link::TellAboutUs(const kube::EventText& text) {
  if (options_.dry_run) {
    return;
  }
  events_->Record({"coordination.k8s.io/v1", "Lease", options_.lock_namespace, options_.lock_name,
                   elector_ == nullptr ? "" : elector_->uid()},
                  text);
}

void Link::Stop(Duration limit, std::function<void()> done) {
  if (elector_ != nullptr && !elector_->leading()) {
    elector_->Rest();
  }
  const Time until = transport_.Now() + limit;
  WaitUntilQuiet(until, [this, done = std::move(done), limit] {
    events_->Flush(limit, [this, done] {
      stopped_ = true;
      if (elector_ == nullptr) {
        done();
      } else {
        elector_->Release(done);
      }
    });
  });
}

void Link::WaitUntilQuiet(Time until, std::function<void()> done) {
  const bool quiet =
      binder_->waiting() == 0 && binder_->under_way() == 0 && writer_->waiting() == 0;
  if (quiet || transport_.Now() >= until) {
    done();
    return;
  }
  transport_.After(kQuietLook, lifeline_.Guard([this, until, done = std::move(done)] {
    WaitUntilQuiet(until, done);
  }));
}

void Link::Publish() { handlers_.readiness(readiness_); }

}  // namespace hopwise::daemon
