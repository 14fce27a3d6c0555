// volcano-controller.conf: which sources tell the fabric. Format: Volcano's
// pkg/controllers/hypernode/config; every key is explained in docs/reference/controller.md. Keys of
// our own: mostDeletedPercent, believedAfter and confirm (hold.h), and caFile of `ufm`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "control/hold.h"
#include "control/label_source.h"

namespace hopwise::control {

// Volcano's default between two looks at a source that is asked.
inline constexpr Duration kDiscoveryInterval = Seconds(3600);
// A shorter one would be a burden to the fabric manager.
inline constexpr Duration kLeastDiscoveryInterval = Seconds(1);

struct SecretName {
  std::string ns, name;
};

struct UfmSettings {
  std::string endpoint;  // "https://ufm.example.com", without a trailing slash
  bool insecure_skip_verify = false;
  std::string ca_file;  // "": the system's
  SecretName secret;    // keys `username` and `password`
};

struct SourceSettings {
  std::string source;  // "label", "ufm"
  bool enabled = false;
  Duration interval = kDiscoveryInterval;
  HoldOptions hold;
  std::string confirm;           // a token of Hold, "" when none is confirmed
  std::vector<LabelType> types;  // of `label`
  UfmSettings ufm;
};

struct ControllerConfig {
  std::vector<SourceSettings> sources;  // of an enabled source all that it needs is there
  std::vector<std::string> warnings;
};

struct ControllerConfigReport {
  ControllerConfig config;
  std::vector<std::string> errors;  // with one the file cannot be used
};

// Errors name the path ("networkTopologyDiscovery[1].config.endpoint: …") or, of what is not YAML,
// the line. What a source that is not enabled lacks is a warning. Text without a document is a
// configuration without sources.
ControllerConfigReport ReadControllerConfig(std::string_view text);

// Whether a text is meant to be one, and no volcano-scheduler.conf.
bool LooksLikeControllerConfig(std::string_view text);

}  // namespace hopwise::control
