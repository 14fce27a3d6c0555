#include "sched/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "api/decode.h"

namespace hopwise::sched {
namespace {

using Json = nlohmann::json;

// Whether a known action or plugin does what its name says.
enum class Support : uint8_t {
  kServed,
  kLater,
};

struct Known {
  std::string_view name;
  Support support;
};

// Registered names: volcano pkg/scheduler/actions/factory.go.
constexpr std::array kActions = {
    Known{"enqueue", Support::kServed},     Known{"allocate", Support::kServed},
    Known{"backfill", Support::kServed},    Known{"preempt", Support::kServed},
    Known{"reclaim", Support::kServed},     Known{"shuffle", Support::kLater},
    Known{"gangpreempt", Support::kServed}, Known{"gangreclaim", Support::kServed},
};

// Registered names: volcano pkg/scheduler/plugins/factory.go.
constexpr std::array kPlugins = {
    Known{"priority", Support::kServed},
    Known{"gang", Support::kServed},
    Known{"predicates", Support::kServed},
    Known{"nodeorder", Support::kServed},
    Known{"binpack", Support::kServed},
    Known{"network-topology-aware", Support::kServed},
    Known{"conformance", Support::kServed},
    Known{"overcommit", Support::kLater},
    Known{"drf", Support::kLater},
    Known{"proportion", Support::kLater},
    Known{"capacity", Support::kLater},
    Known{"sla", Support::kLater},
    Known{"tdm", Support::kLater},
    Known{"task-topology", Support::kLater},
    Known{"numa-aware", Support::kLater},
    Known{"cdp", Support::kLater},
    Known{"rescheduling", Support::kLater},
    Known{"usage", Support::kLater},
    Known{"pdb", Support::kLater},
    Known{"nodegroup", Support::kLater},
    Known{"extender", Support::kLater},
    Known{"resourcequota", Support::kLater},
    Known{"resource-strategy-fit", Support::kLater},
    Known{"deviceshare", Support::kLater},
};

// What the value that differs from a flag's default means to us.
enum class FlagEffect : uint8_t {
  kSwitch,    // handled where the plugin is read
  kEviction,  // asks plugins about victims, who are judged in one way here: no news
  kNone,      // it changes nothing: say so
};

struct Flag {
  std::string_view name;
  FlagEffect effect;
  bool standard = true;
};

// Exact spelling: volcano pkg/scheduler/conf/scheduler_conf.go; defaults: plugins/defaults.go.
constexpr std::array kFlags = {
    Flag{"enableJobOrder", FlagEffect::kNone},
    Flag{"enableHierarchy", FlagEffect::kSwitch, false},
    Flag{"enableJobReady", FlagEffect::kNone},
    Flag{"enableJobPipelined", FlagEffect::kNone},
    Flag{"enableTaskOrder", FlagEffect::kNone},
    Flag{"enablePreemptable", FlagEffect::kEviction},
    Flag{"enableReclaimable", FlagEffect::kEviction},
    Flag{"enablePreemptive", FlagEffect::kEviction},
    Flag{"enableQueueOrder", FlagEffect::kNone},
    Flag{"enabledClusterOrder", FlagEffect::kNone, false},
    Flag{"enablePredicate", FlagEffect::kNone},
    Flag{"enableBestNode", FlagEffect::kNone},
    Flag{"enableNodeOrder", FlagEffect::kSwitch},
    Flag{"enableTargetJob", FlagEffect::kNone},
    Flag{"enableReservedNodes", FlagEffect::kNone},
    Flag{"enableJobEnqueued", FlagEffect::kNone},
    Flag{"enabledVictim", FlagEffect::kEviction},
    Flag{"enableJobStarving", FlagEffect::kEviction},
    Flag{"enabledOverused", FlagEffect::kNone},
    Flag{"enabledAllocatable", FlagEffect::kNone},
    Flag{"enabledHyperNodeOrder", FlagEffect::kSwitch},
    Flag{"enabledSubJobReady", FlagEffect::kNone},
    Flag{"enabledSubJobPipelined", FlagEffect::kNone},
    Flag{"enabledSubJobOrder", FlagEffect::kNone},
    Flag{"enabledHyperNodeGradient", FlagEffect::kSwitch},
};

template <size_t n>
const Known* FindKnown(const std::array<Known, n>& list, std::string_view name) {
  const auto* found = std::ranges::find(list, name, &Known::name);
  return found == list.end() ? nullptr : &*found;
}

template <size_t n>
std::string NamesOf(const std::array<Known, n>& list) {
  std::string names;
  for (const Known& known : list) {
    if (!names.empty()) names += ", ";
    names += known.name;
  }
  return names;
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string> SplitByComma(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const size_t comma = text.find(',');
    parts.emplace_back(Trim(text.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

// A value as a message shows it.
std::string Show(const Json& value) {
  constexpr size_t kLongest = 60;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

std::string At(const std::string& path, size_t i) { return path + "[" + std::to_string(i) + "]"; }

std::string Under(const std::string& path, const std::string& key) { return path + "." + key; }

// Go's strconv.ParseBool.
std::optional<bool> ParseBool(std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

// The `arguments` of one plugin or action, typed as volcano's framework.Arguments does: what has
// another type is ignored with a warning. Remembers which keys were asked for.
class Arguments {
 public:
  Arguments(const Json* map, std::string path, std::vector<std::string>& warnings)
      : map_(map), path_(std::move(path)), warnings_(warnings) {}

  [[nodiscard]] bool empty() const { return map_ == nullptr || map_->empty(); }

  // GetInt: an integer; a quoted number is none.
  int64_t Weight(const std::string& key, int64_t standard, int64_t instead_of_negative = 1);
  // GetBool: a boolean or text that reads as one.
  bool Bool(const std::string& key, bool standard);
  // GetFloat64, in thousandths: not negative, at most kMaxFadingMilli.
  int64_t Milli(const std::string& key, int64_t standard);
  std::string Text(const std::string& key);
  // A key that is known and changes nothing; said when its value is not the one it has anyway.
  void NotServed(const std::string& key, int64_t standard);
  void NotServed(const std::string& key, bool standard);
  // To be called last.
  void WarnOfUnknown();

 private:
  const Json* Take(const std::string& key) {
    asked_.insert(key);
    if (map_ == nullptr) return nullptr;
    const auto found = map_->find(key);
    return found == map_->end() ? nullptr : &*found;
  }
  void Warn(const std::string& key, const std::string& message) {
    warnings_.push_back(Under(path_, key) + ": " + message);
  }
  template <class T>
  T Ignore(const std::string& key, const Json& value, const char* wanted, T standard) {
    Warn(key, Show(value) + " is ignored, it must be " + wanted);
    return standard;
  }

  const Json* map_;
  std::string path_;
  std::vector<std::string>& warnings_;
  std::set<std::string> asked_;
};

int64_t Arguments::Weight(const std::string& key, int64_t standard, int64_t instead_of_negative) {
  const Json* value = Take(key);
  if (value == nullptr) return standard;
  if (!value->is_number_integer()) {
    return Ignore(key, *value, "an integer without quotes", standard);
  }
  if (!value->is_number_unsigned() && value->get<int64_t>() < 0) {
    Warn(key, Show(*value) + " is negative, " + std::to_string(instead_of_negative) +
                  " is used instead");
    return instead_of_negative;
  }
  if (value->get<uint64_t>() > uint64_t{kMaxWeight}) {
    Warn(key, Show(*value) + " is too large, " + std::to_string(kMaxWeight) + " is used instead");
    return kMaxWeight;
  }
  return value->get<int64_t>();
}

bool Arguments::Bool(const std::string& key, bool standard) {
  const Json* value = Take(key);
  if (value == nullptr) return standard;
  if (value->is_boolean()) return value->get<bool>();
  if (value->is_string()) {
    const auto parsed = ParseBool(value->get_ref<const std::string&>());
    if (parsed) return *parsed;
  }
  return Ignore(key, *value, "true or false", standard);
}

int64_t Arguments::Milli(const std::string& key, int64_t standard) {
  const Json* value = Take(key);
  if (value == nullptr) return standard;
  if (!value->is_number()) return Ignore(key, *value, "a number without quotes", standard);
  // The one floating-point number of the scheduler, at once turned into thousandths.
  const double factor = value->get<double>();  // not a choice
  if (factor < 0) {
    Warn(key, Show(*value) + " is negative, the default is used instead");
    return standard;
  }
  if (factor > static_cast<double>(kMaxFadingMilli) / 1000) {  // not a choice
    Warn(key, Show(*value) + " is too large, " + std::to_string(kMaxFadingMilli / 1000) +
                  " is used instead");
    return kMaxFadingMilli;
  }
  return std::llround(factor * 1000);  // not a choice
}

std::string Arguments::Text(const std::string& key) {
  const Json* value = Take(key);
  if (value == nullptr) return {};
  if (!value->is_string()) return Ignore(key, *value, "text", std::string());
  return value->get<std::string>();
}

void Arguments::NotServed(const std::string& key, int64_t standard) {
  const Json* value = Take(key);
  if (value == nullptr || *value == standard) return;
  Warn(key, Show(*value) + " has no effect, this argument is not implemented yet");
}

void Arguments::NotServed(const std::string& key, bool standard) {
  if (Bool(key, standard) == standard) return;
  Warn(key, Show(*Take(key)) + " has no effect, this argument is not implemented yet");
}

void Arguments::WarnOfUnknown() {
  if (map_ == nullptr) return;
  for (const auto& [key, value] : map_->items()) {
    if (!asked_.contains(key)) Warn(key, "unknown argument, " + Show(value) + " is ignored");
  }
}

// One plugin of one tier.
struct Plugin {
  std::string name;
  std::string path;
  std::map<std::string, bool, std::less<>> flags;
  const Json* arguments = nullptr;

  [[nodiscard]] bool Is(std::string_view flag, bool standard = true) const {
    const auto found = flags.find(flag);
    return found == flags.end() ? standard : found->second;
  }
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  ConfigReport Read(const Json& document);

 private:
  Status ReadActions(const Json& document);
  Status ReadTiers(const Json& document);
  Status ReadTier(const Json& tier, const std::string& path);
  Status ReadPlugin(const Json& plugin, const std::string& path);
  Status ReadFlag(Plugin& plugin, const std::string& key, const Json& value);
  Status ReadConfigurations(const Json& document);
  static void ReadEviction(Arguments& arguments, EvictArguments& out);
  Status ReadConfiguration(const Json& entry, const std::string& path);
  Status ReadMetrics(const Json& document);
  void WarnOfUnknownKeys(const Json& document);

  Status Apply(const Plugin& plugin, Support support);
  void ApplyTopology(const Plugin& plugin, Arguments& arguments);
  void ApplyBinpack(const Plugin& plugin, Arguments& arguments);
  void ApplyNodeOrder(const Plugin& plugin, Arguments& arguments);
  static void ApplyPredicates(Arguments& arguments);
  static ResourceWeights ReadResources(Arguments& arguments, const std::string& prefix);

  Status CheckHierarchy() const;
  void Warn(std::string message) { config_.warnings.push_back(std::move(message)); }
  void WarnOfUnknown(const std::string& path, const Json& value) {
    Warn(path + ": unknown key, " + Show(value) + " is ignored");
  }

  // "line 7: " for the first line that has the word, "" when none has.
  [[nodiscard]] std::string LineOf(std::string_view word) const;

  std::string_view text_;
  Config config_;
  std::vector<std::string> errors_;
  bool drf_hierarchy_ = false;
};

std::string Reader::LineOf(std::string_view word) const {
  constexpr std::string_view kInWord =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  size_t number = 0;
  for (std::string_view rest = text_; !rest.empty();) {
    ++number;
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, std::min(end, rest.find('#')));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
      const bool begins = at == 0 || kInWord.find(line[at - 1]) == std::string_view::npos;
      const size_t after = at + word.size();
      if (begins && (after == line.size() || kInWord.find(line[after]) == std::string_view::npos)) {
        return "line " + std::to_string(number) + ": ";
      }
    }
  }
  return "";
}

// A key whose value must be an array or absent (null is absent, as in Go).
Result<const Json*> ArrayAt(const Json& object, const std::string& key, const std::string& path) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return nullptr;
  if (!found->is_array()) return Invalid(path + ": must be a list, is " + Show(*found));
  return &*found;
}

Result<const Json*> MapAt(const Json& object, const std::string& key, const std::string& path) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return nullptr;
  if (!found->is_object()) return Invalid(path + ": must be a map, is " + Show(*found));
  return &*found;
}

Result<std::string> NameOf(const Json& entry, const std::string& path) {
  if (!entry.is_object()) return Invalid(path + ": must be a map, is " + Show(entry));
  const auto found = entry.find("name");
  if (found == entry.end()) return Invalid(path + ".name: is missing");
  if (!found->is_string()) return Invalid(path + ".name: must be text, is " + Show(*found));
  return found->get<std::string>();
}

// A part that cannot be read leaves the others readable.
ConfigReport Reader::Read(const Json& document) {
  for (const auto part : {&Reader::ReadActions, &Reader::ReadTiers, &Reader::ReadConfigurations,
                          &Reader::ReadMetrics}) {
    const Status status = (this->*part)(document);
    if (!status) errors_.push_back(status.error().message);
  }
  WarnOfUnknownKeys(document);
  return {std::move(config_), std::move(errors_)};
}

Status Reader::ReadActions(const Json& document) {
  const auto found = document.find("actions");
  if (found == document.end()) {
    return Invalid("actions: is missing; known actions are " + NamesOf(kActions));
  }
  if (!found->is_string()) {
    return Invalid("actions: must be one text with commas, is " + Show(*found));
  }
  for (std::string& name : SplitByComma(found->get_ref<const std::string&>())) {
    const Known* known = FindKnown(kActions, name);
    if (known == nullptr) {
      errors_.push_back(LineOf(name) + "actions: unknown action \"" + name +
                        "\"; known actions are " + NamesOf(kActions));
      continue;
    }
    if (known->support == Support::kLater) {
      Warn("actions: action \"" + name + "\" is not implemented yet and does nothing");
    }
    config_.actions.push_back(std::move(name));
  }
  return {};
}

Status Reader::ReadTiers(const Json& document) {
  const auto tiers = ArrayAt(document, "tiers", "tiers");
  if (!tiers) return tl::unexpected(tiers.error());
  if (*tiers != nullptr) {
    for (size_t i = 0; i < (*tiers)->size(); ++i) {
      const Status status = ReadTier((**tiers)[i], At("tiers", i));
      if (!status) return status;
    }
  }
  if (config_.plugins.empty()) Warn("tiers: no plugin is listed, so nothing scores nodes");
  return CheckHierarchy();
}

Status Reader::ReadTier(const Json& tier, const std::string& path) {
  if (!tier.is_object()) return Invalid(path + ": must be a map, is " + Show(tier));
  const auto plugins = ArrayAt(tier, "plugins", path + ".plugins");
  if (!plugins) return tl::unexpected(plugins.error());
  for (size_t i = 0; *plugins != nullptr && i < (*plugins)->size(); ++i) {
    const Status status = ReadPlugin((**plugins)[i], At(path + ".plugins", i));
    if (!status) return status;
  }
  for (const auto& [key, value] : tier.items()) {
    if (key != "plugins") WarnOfUnknown(Under(path, key), value);
  }
  return {};
}

Status Reader::ReadPlugin(const Json& entry, const std::string& path) {
  auto name = NameOf(entry, path);
  if (!name) return tl::unexpected(name.error());
  const Known* known = FindKnown(kPlugins, *name);
  if (known == nullptr) {
    errors_.push_back(LineOf(*name) + path + ".name: unknown plugin \"" + *name +
                      "\"; known plugins are " + NamesOf(kPlugins));
    return {};
  }
  const auto arguments = MapAt(entry, "arguments", path + ".arguments");
  if (!arguments) return tl::unexpected(arguments.error());

  Plugin plugin = {std::move(*name), path, {}, *arguments};
  for (const auto& [key, value] : entry.items()) {
    if (key == "name" || key == "arguments") continue;
    const Status status = ReadFlag(plugin, key, value);
    if (!status) return status;
  }
  if (std::ranges::find(config_.plugins, plugin.name) != config_.plugins.end()) {
    Warn(path + ": plugin \"" + plugin.name + "\" is listed again; the later entry counts");
  } else {
    config_.plugins.push_back(plugin.name);
  }
  return Apply(plugin, known->support);
}

Status Reader::ReadFlag(Plugin& plugin, const std::string& key, const Json& value) {
  const std::string path = Under(plugin.path, key);
  const auto* flag = std::ranges::find(kFlags, key, &Flag::name);
  if (flag == kFlags.end()) {
    WarnOfUnknown(path, value);
    return {};
  }
  if (value.is_null()) return {};
  if (!value.is_boolean()) return Invalid(path + ": must be true or false, is " + Show(value));
  plugin.flags[key] = value.get<bool>();
  if (flag->effect == FlagEffect::kNone && value.get<bool>() != flag->standard) {
    Warn(path + ": " + Show(value) + " has no effect yet");
  }
  return {};
}

Status Reader::Apply(const Plugin& plugin, Support support) {
  Arguments arguments(plugin.arguments, plugin.path + ".arguments", config_.warnings);
  const std::string& name = plugin.name;
  if (name == "capacity") config_.capacity_hierarchy = plugin.Is("enableHierarchy", false);
  if (name == "drf") drf_hierarchy_ = plugin.Is("enableHierarchy", false);

  if (support == Support::kLater) {
    Warn(plugin.path + ": plugin \"" + name + "\" is not implemented yet" +
         (arguments.empty() ? "" : ", its arguments have no effect") +
         (name == "capacity"
              ? ", but for enableHierarchy and the deserved amounts that reclaim goes by"
              : ""));
    return {};
  }
  if (drf_hierarchy_ && name == "drf") {
    Warn(plugin.path + ".enableHierarchy: true has no effect yet");
  }
  if (name == "network-topology-aware") ApplyTopology(plugin, arguments);
  if (name == "binpack") ApplyBinpack(plugin, arguments);
  if (name == "nodeorder") ApplyNodeOrder(plugin, arguments);
  if (name == "predicates") ApplyPredicates(arguments);
  arguments.WarnOfUnknown();
  return {};
}

// Keys of pkg/scheduler/plugins/network-topology-aware.
void Reader::ApplyTopology(const Plugin& plugin, Arguments& arguments) {
  NetworkTopologyAware& topology = config_.network_topology_aware;
  topology = {};
  topology.enabled = true;
  topology.weight = arguments.Weight("weight", 1);
  topology.resources = ReadResources(arguments, "hypernode.binpack");
  topology.normal_pod = arguments.Bool("hypernode.binpack.normal-pod.enable", true);
  topology.fading_milli = arguments.Milli("hypernode.binpack.normal-pod.fading", 800);
  arguments.NotServed("hypernode.gradient.evict.max-hypernodes", int64_t{8});
  topology.hyper_node_order = plugin.Is("enabledHyperNodeOrder");
  topology.scores_nodes = plugin.Is("enableNodeOrder");
  if (!plugin.Is("enabledHyperNodeGradient")) {
    Warn(plugin.path +
         ".enabledHyperNodeGradient: false has no effect, a topology rule always holds");
  }
}

// Keys of pkg/scheduler/plugins/binpack.
void Reader::ApplyBinpack(const Plugin& plugin, Arguments& arguments) {
  config_.binpack.enabled = plugin.Is("enableNodeOrder");
  config_.binpack.weight = arguments.Weight("binpack.weight", 1);
  config_.binpack.resources = ReadResources(arguments, "binpack");
}

// Keys of pkg/scheduler/plugins/nodeorder; the scores that are no resource terms come later.
void Reader::ApplyNodeOrder(const Plugin& plugin, Arguments& arguments) {
  NodeOrder& order = config_.node_order;
  order.enabled = plugin.Is("enableNodeOrder");
  order.least_requested = arguments.Weight("leastrequested.weight", 1);
  order.most_requested = arguments.Weight("mostrequested.weight", 0, 0);
  order.balanced = arguments.Weight("balancedresource.weight", 1);
  for (const char* key : {"nodeaffinity.weight", "podaffinity.weight", "tainttoleration.weight",
                          "imagelocality.weight", "podtopologyspread.weight"}) {
    arguments.NotServed(key, int64_t{0});
  }
}

// Keys of pkg/scheduler/plugins/predicates: a filter cannot be switched off.
void Reader::ApplyPredicates(Arguments& arguments) {
  for (const char* filter : {"NodeAffinityEnable", "NodePortsEnable", "TaintTolerationEnable",
                             "PodAffinityEnable", "NodeVolumeLimitsEnable", "VolumeZoneEnable",
                             "PodTopologySpreadEnable", "VolumeBindingEnable"}) {
    arguments.NotServed(std::string("predicate.") + filter, true);
  }
  // A cache changes no result.
  arguments.Bool("predicate.CacheEnable", false);
  arguments.NotServed("predicate.DynamicResourceAllocationEnable", false);
}

// <prefix>.cpu, .memory, .resources and .resources.<name> for each name listed there.
ResourceWeights Reader::ReadResources(Arguments& arguments, const std::string& prefix) {
  ResourceWeights weights = {{"cpu", arguments.Weight(prefix + ".cpu", 1)},
                             {"memory", arguments.Weight(prefix + ".memory", 1)}};
  const std::string list = prefix + ".resources";
  for (const std::string& name : SplitByComma(arguments.Text(list))) {
    if (name.empty()) continue;
    const int64_t weight = arguments.Weight(Under(list, name), 1);
    // As in Volcano, cpu and memory have the weight of their own keys.
    const auto same = [&](const auto& entry) { return entry.first == name; };
    if (std::ranges::none_of(weights, same)) weights.emplace_back(name, weight);
  }
  return weights;
}

// Volcano refuses the pair (pkg/scheduler/util.go).
Status Reader::CheckHierarchy() const {
  const auto& plugins = config_.plugins;
  if (drf_hierarchy_ && std::ranges::find(plugins, "proportion") != plugins.end()) {
    return Invalid("tiers: proportion and drf with enableHierarchy exclude each other");
  }
  return {};
}

Status Reader::ReadConfigurations(const Json& document) {
  const auto entries = ArrayAt(document, "configurations", "configurations");
  if (!entries) return tl::unexpected(entries.error());
  for (size_t i = 0; *entries != nullptr && i < (*entries)->size(); ++i) {
    const Status status = ReadConfiguration((**entries)[i], At("configurations", i));
    if (!status) return status;
  }
  return {};
}

void Reader::ReadEviction(Arguments& arguments, EvictArguments& out) {
  const int64_t standard = EvictArguments().max_domains;
  const int64_t domains = arguments.Weight("maxDomains", standard, standard);
  out.max_domains = domains == 0 ? standard : domains;
  out.whole_gangs = arguments.Bool("allowWholeBundle", true);
}

Status Reader::ReadConfiguration(const Json& entry, const std::string& path) {
  const auto name = NameOf(entry, path);
  if (!name) return tl::unexpected(name.error());
  const auto map = MapAt(entry, "arguments", path + ".arguments");
  if (!map) return tl::unexpected(map.error());
  const Known* action = FindKnown(kActions, *name);
  if (action == nullptr) {
    Warn(path + ".name: unknown action \"" + *name + "\", its arguments are ignored");
    return {};
  }
  if (action->support == Support::kLater) {
    Warn(path + ": action \"" + *name + "\" is not implemented yet, its arguments have no effect");
    return {};
  }
  Arguments arguments(*map, path + ".arguments", config_.warnings);
  // A cache changes no result.
  if (*name != "enqueue") arguments.Bool("predicateErrorCacheEnable", true);
  if (*name == "gangpreempt") ReadEviction(arguments, config_.gang_preempt);
  if (*name == "gangreclaim") ReadEviction(arguments, config_.gang_reclaim);
  arguments.WarnOfUnknown();
  for (const auto& [key, value] : entry.items()) {
    if (key == "name" || key == "arguments") continue;
    WarnOfUnknown(Under(path, key), value);
  }
  return {};
}

Status Reader::ReadMetrics(const Json& document) {
  const auto metrics = MapAt(document, "metrics", "metrics");
  if (!metrics) return tl::unexpected(metrics.error());
  if (*metrics == nullptr) return {};
  for (const auto& [key, value] : (*metrics)->items()) {
    if (value.is_structured()) {
      return Invalid("metrics." + key + ": must be text, is " + Show(value));
    }
  }
  Warn(
      "metrics: has no effect, the plugins that read it (usage, rescheduling) are not implemented "
      "yet");
  return {};
}

void Reader::WarnOfUnknownKeys(const Json& document) {
  for (const auto& [key, value] : document.items()) {
    if (key != "actions" && key != "tiers" && key != "configurations" && key != "metrics") {
      WarnOfUnknown(key, value);
    }
  }
}

}  // namespace

Config DefaultConfig() {
  Config config;
  config.actions = {"enqueue", "allocate", "backfill"};
  config.plugins = {"priority",   "gang",      "conformance",
                    "overcommit", "drf",       "predicates",
                    "proportion", "nodeorder", "network-topology-aware"};
  config.network_topology_aware.enabled = true;
  config.node_order.enabled = true;
  return config;
}

ConfigReport ReadConfig(std::string_view text) {
  const std::vector<api::Document> documents = api::SplitDocuments(text);
  ConfigReport standard = {DefaultConfig(), {}};
  const char* const empty = "the file is empty, the built-in default is used";
  if (documents.empty()) {
    standard.config.warnings.emplace_back(empty);
    return standard;
  }
  const api::Document& first = documents.front();
  const std::string line = "line " + std::to_string(first.line);
  if (!first.error.empty()) return {{}, {first.error}};
  const Json document = Json::parse(first.json, nullptr, /*allow_exceptions=*/false);
  if (document.is_null()) {
    standard.config.warnings.emplace_back(empty);
    return standard;
  }
  if (!document.is_object()) {
    return {{},
            {line + ": must be a map with actions and tiers, is " +
             (document.is_discarded() ? "unreadable" : Show(document))}};
  }
  ConfigReport report = Reader(text).Read(document);
  if (documents.size() > 1) {
    report.config.warnings.push_back("line " + std::to_string(documents[1].line) +
                                     ": only the first document of the file counts");
  }
  return report;
}

Result<Config> ParseConfig(std::string_view text) {
  ConfigReport report = ReadConfig(text);
  if (report.errors.empty()) return std::move(report.config);
  std::string all;
  for (const std::string& error : report.errors) {
    all += (all.empty() ? "" : "; ") + error;
  }
  return Invalid(std::move(all));
}

}  // namespace hopwise::sched
