#include "daemon/controller_link.h"

#include <utility>
#include <variant>
#include <vector>

#include "api/json.h"
#include "base/log.h"
#include "control/ufm_source.h"
#include "daemon/metric_declaration.h"

namespace hopwise::daemon {
namespace {

constexpr const char* kConfKey = "volcano-controller.conf";

kube::EventRecorder::Options RecorderOptions(const std::string& identity) {
  kube::EventRecorder::Options options;
  options.component = "hopwise-controller";
  options.instance = identity;
  return options;
}

}  // namespace

ControllerLink::ControllerLink(kube::CurlTransport& transport, const ControllerOptions& options,
                               const std::string& identity, server::Metrics& metrics,
                               Handlers handlers)
    : transport_(transport),
      options_(options),
      metrics_(metrics),
      handlers_(std::move(handlers)),
      watches_(transport, metrics,
               {.events =
                    [this](const kube::Resource& resource, std::vector<kube::WatchEvent>&& events) {
                      Observe(resource, std::move(events));
                    },
                .listed =
                    [this](const kube::Resource& resource) {
                      if (resource == kube::kConfigMaps) {
                        ObserveConfig({});
                      }
                      Publish();
                    },
                .changed = [this] { Publish(); },
                .hopeless = handlers_.hopeless}),
      election_(transport, options, options.leader_elect, identity, {},
                {.elected =
                     [this] {
                       handlers_.to_core([](ControllerCore& core, Time now) {
                         core.topology.SetLeading(true, now);
                         core.work.SetLeading(true, now);
                       });
                       AskSources();
                     },
                 .lost =
                     [this] {
                       handlers_.to_core([](ControllerCore& core, Time now) {
                         core.topology.SetLeading(false, now);
                         core.work.SetLeading(false, now);
                       });
                       ufm_.reset();
                     },
                 .changed = [this] { Publish(); }}),
      events_(transport, RecorderOptions(identity)),
      carrier_(transport, [this] { return election_.remaining().ns > 0; },
               {.wrote =
                    [this](uint64_t, WriteResult&& result) {
                      const auto shared = std::make_shared<WriteResult>(std::move(result));
                      handlers_.to_core([shared](ControllerCore& core, Time now) {
                        core.topology.Wrote(std::move(*shared), now);
                      });
                    },
                .ended =
                    [this](uint64_t batch, bool ok) {
                      handlers_.to_core([batch, ok](ControllerCore& core, Time now) {
                        core.topology.Ended(batch, ok, now);
                      });
                    }}),
      work_carrier_(transport, [this] { return election_.remaining().ns > 0; },
                    {.wrote =
                         [this](uint64_t batch, WriteResult&& result) {
                           const auto shared = std::make_shared<WriteResult>(std::move(result));
                           handlers_.to_core([batch, shared](ControllerCore& core, Time now) {
                             core.work.Wrote(batch, *shared, now);
                           });
                         },
                     .ended =
                         [this](uint64_t batch, bool ok) {
                           handlers_.to_core([batch, ok](ControllerCore& core, Time now) {
                             core.work.Ended(batch, ok, now);
                           });
                         }}) {}

void ControllerLink::Start() {
  Log(LogLevel::kInfo, "watching");
  kube::Reflector::Options reflector;
  reflector.streaming_list = options_.streaming_lists;
  if (options_.hypernodes) {
    watches_.Add(kube::kNodes, false, reflector);
    watches_.Add(kube::kHyperNodes, true, reflector);
  }
  for (const WatchedKind& kind : WatchedWorkloads(options_)) {
    kube::Reflector::Options texts = reflector;
    texts.as_text = true;
    watches_.Add(kind.resource, kind.optional, texts);
  }
  if (!options_.conf_map_name.empty()) {
    reflector.ns = options_.conf_map_ns;
    reflector.selector = "fieldSelector=metadata.name%3D" + kube::UrlEscape(options_.conf_map_name);
    reflector.as_text = true;
    watches_.Add(kube::kConfigMaps, false, reflector);
  }
  election_.Start();
}

void ControllerLink::Configure(const control::ControllerConfig& config) {
  ufm_settings_.reset();
  for (const control::SourceSettings& settings : config.sources) {
    if (settings.enabled && settings.source == control::kUfmSource) {
      ufm_settings_ = settings;
    }
  }
  AskSources();
}

void ControllerLink::AskSources() {
  ufm_.reset();
  if (!ufm_settings_ || election_.remaining().ns <= 0) {
    return;
  }
  ufm_ = std::make_unique<UfmPoller>(
      transport_, ufm_settings_->ufm, ufm_settings_->interval,
      [this](Result<api::UfmPorts>&& ports, const UfmFailure& failure) {
        const auto shared = std::make_shared<Result<api::UfmPorts>>(std::move(ports));
        handlers_.to_core([shared, failure](ControllerCore& core, Time now) {
          core.topology.FoundPorts(std::move(*shared), failure, now);
        });
      });
}

void ControllerLink::Observe(const kube::Resource& resource,
                             std::vector<kube::WatchEvent>&& events) {
  if (resource == kube::kConfigMaps) {
    ObserveConfig(events);
    return;
  }
  const auto shared = std::make_shared<std::vector<kube::WatchEvent>>(std::move(events));
  const bool fabric = resource == kube::kNodes || resource == kube::kHyperNodes;
  handlers_.to_core([shared, resource, fabric](ControllerCore& core, Time now) {
    for (kube::WatchEvent& event : *shared) {
      if (fabric) {
        core.topology.Observe(resource, std::move(event), now);
      } else {
        core.work.Observe(resource, std::move(event), now);
      }
    }
  });
}

// No events: the list is complete, and what it did not hold is not there.
void ControllerLink::ObserveConfig(const std::vector<kube::WatchEvent>& events) {
  std::optional<std::string> next = conf_;
  for (const kube::WatchEvent& event : events) {
    next.reset();
    const auto* object = std::get_if<api::Unknown>(&event.decoded.object);
    if (event.type == kube::WatchEvent::Type::kApplied && object != nullptr) {
      const json::Json map = json::ParseOrNull(object->json);
      if (const json::Json* text = json::Get(map, {"data", kConfKey});
          text != nullptr && text->is_string()) {
        next = text->get<std::string>();
      }
    }
  }
  // Another label or key of the map is no other configuration.
  const bool first = !std::exchange(conf_told_, true);
  if (next != conf_ || first) {
    conf_ = std::move(next);
    handlers_.configured(conf_);
  }
}

void ControllerLink::CarryOut(ControllerEffects& effects, WorkEffects& work) {
  for (Batch& batch : effects.batches) {
    carrier_.Carry(std::move(batch));
  }
  for (Batch& batch : work.batches) {
    work_carrier_.Carry(std::move(batch));
  }
  if (effects.ports_refused && ufm_ != nullptr) {
    ufm_->Refused();
  }
  Record(effects.events);
  Record(work.events);
  MeasureEvents(metrics_, events_, dropped_);
}

void ControllerLink::Record(const std::vector<Tell>& events) {
  for (const Tell& event : events) {
    if (event.about.name.empty()) {
      TellAboutUs(event.text);
    } else {
      events_.Record(event.about, event.text);
    }
  }
}

void ControllerLink::TellAboutUs(const kube::EventText& text) {
  events_.Record(election_.lease(), text);
}

void ControllerLink::Stop(Duration limit, std::function<void()> done) {
  ufm_.reset();
  const auto quiet = [this] { return carrier_.under_way() == 0 && work_carrier_.under_way() == 0; };
  election_.Leave(events_, limit, quiet, std::move(done));
}

void ControllerLink::Publish() {
  Readiness readiness;
  readiness.synced = watches_.all_listed();
  readiness.troubles = watches_.troubles();
  election_.Tell(readiness);
  if (readiness.synced && !std::exchange(synced_, true)) {
    handlers_.to_core([](ControllerCore& core, Time now) {
      core.topology.SetSynced(true, now);
      core.work.SetSynced(true, now);
    });
  }
  handlers_.readiness(readiness);
}

}  // namespace hopwise::daemon
