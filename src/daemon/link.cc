#include "daemon/link.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "api/json.h"
#include "base/log.h"
#include "daemon/metric_declaration.h"
#include "daemon/rivals.h"

namespace hopwise::daemon {
namespace {

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
  MakeWriters();
  MakeWatches();
  MakeElection();
}

Link::~Link() = default;

void Link::MakeWriters() {
  const auto to_core = handlers_.to_core;
  BinderOptions binder;
  binder.timeout = BindTimeoutFor(options_);
  // Why a pod waited, written late, would call a bound one unscheduled.
  binder.settle = [this](const ObjectName& pod, std::function<void()> then) {
    writer_->Settle(kube::kPods, pod, "status", std::move(then));
  };
  binder_ = std::make_unique<Binder>(
      transport_, *events_, [this] { return election_->remaining(); },
      [to_core](const BindResult& result) {
        to_core([result](Core& core, Time now) { core.BindEnded(result, now); });
      },
      binder);
  evictor_ = std::make_unique<Evictor>(
      transport_, *events_, [this] { return election_->remaining(); },
      [to_core](const EvictionResult& result) {
        to_core([result](Core& core, Time now) { core.EvictionEnded(result, now); });
      },
      binder.timeout);
  writer_ = std::make_unique<Writer>(
      transport_, [this] { return election_->remaining().ns > 0; },
      [to_core](const Patch& patch, const kube::ApiError& error) {
        to_core([patch, error](Core& core, Time now) { core.PatchEnded(patch, error, now); });
      },
      [to_core](const std::string& name, const kube::ApiError& error) {
        to_core([name, error](Core& core, Time now) { core.QueueCreationEnded(name, error, now); });
      });
}

void Link::MakeWatches() {
  Watches::Handlers handlers;
  const auto to_core = handlers_.to_core;
  handlers.events = [to_core](const kube::Resource& resource,
                              std::vector<kube::WatchEvent>&& events) {
    const auto shared = std::make_shared<std::vector<kube::WatchEvent>>(std::move(events));
    to_core([shared, resource](Core& core, Time now) {
      for (kube::WatchEvent& event : *shared) {
        core.Observe(resource, std::move(event), now);
      }
    });
  };
  handlers.listed = [this](const kube::Resource& resource) {
    if (resource == kube::kPods) {
      fresh_ = true;
    }
    Publish();
  };
  handlers.changed = [this] { Publish(); };
  handlers.hopeless = handlers_.hopeless;
  watches_ = std::make_unique<Watches>(transport_, metrics_, std::move(handlers));
}

void Link::MakeElection() {
  Election::Handlers handlers;
  handlers.elected = [this] { Elected(); };
  handlers.lost = [to_core = handlers_.to_core] {
    to_core([](Core& core, Time now) { core.SetLeading(false, now); });
  };
  handlers.changed = [this] { Publish(); };
  election_ = std::make_unique<Election>(
      transport_, options_, options_.leader_elect && !options_.dry_run, identity_,
      std::map<std::string, std::string>{{kServedNames, ServedNames(options_)}},
      std::move(handlers));
}

void Link::Start() {
  Log(LogLevel::kInfo, "watching");
  kube::Reflector::Options reflector;
  reflector.streaming_list = options_.streaming_lists;
  for (const kube::Resource& resource :
       {kube::kPriorityClasses, kube::kNodes, kube::kHyperNodes, kube::kQueues, kube::kPodGroups,
        kube::kPluginPodGroups, kube::kPods}) {
    const bool optional = !resource.group.empty() && resource.group != "scheduling.k8s.io";
    watches_->Add(resource, optional, reflector);
  }
  election_->Start();
}

// What the leader before us bound last may not have reached our watch: a list that is newer than
// our election is waited for before the first decision.
void Link::Elected() {
  fresh_ = false;
  Publish();
  watches_->ListAnew(kube::kPods);
  handlers_.to_core([](Core& core, Time now) { core.SetLeading(true, now); });
}

// To the core whether it knows all, to /readyz all there is to tell.
void Link::Publish() {
  Readiness readiness;
  readiness.synced = watches_->all_listed() && fresh_;
  readiness.troubles = watches_->troubles();
  election_->Tell(readiness);
  if (readiness.synced != synced_) {
    synced_ = readiness.synced;
    handlers_.to_core([synced = synced_](Core& core, Time) { core.SetSynced(synced); });
  }
  handlers_.readiness(readiness);
}

void Link::CarryOut(const Effects& effects) {
  for (const ObjectName& pod : effects.cancelled) {
    binder_->Cancel(pod.uid);
  }
  for (const BindPod& bind : effects.binds) {
    binder_->Bind(bind);
  }
  for (const EvictPod& evict : effects.evictions) {
    evictor_->Evict(evict);
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
  MeasureEvents(metrics_, *events_, dropped_);
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
  if (!options_.dry_run) {
    events_->Record(election_->lease(), text);
  }
}

void Link::Stop(Duration limit, std::function<void()> done) {
  const auto quiet = [this] {
    return binder_->waiting() == 0 && binder_->under_way() == 0 && evictor_->under_way() == 0 &&
           writer_->waiting() == 0;
  };
  election_->Leave(*events_, limit, quiet, std::move(done));
}

}  // namespace hopwise::daemon
