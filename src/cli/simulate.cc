#include "cli/simulate.h"

#include <filesystem>
#include <ostream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "cli/table.h"
#include "cli/yaml.h"
#include "sim/report.h"
#include "sim/simulator.h"

namespace hopwise::cli {
namespace {

using json::Json;
using sim::GangLine;
using sim::StepReport;

constexpr size_t kNodesShown = 4;

std::string TierText(const GangLine& line) {
  if (!line.located || line.domain.empty()) {
    return "-";
  }
  return line.tier_name.empty() ? std::to_string(line.tier)
                                : fmt::format("{} ({})", line.tier, line.tier_name);
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string GangTable(const StepReport& report, bool wide, bool bold) {
  std::vector<std::string> headers = {"NAMESPACE", "GANG", "PLACED", "TIER", "DOMAIN", "NODES"};
  if (wide) {
    headers = {"NAMESPACE", "GANG",    "SOURCE", "QUEUE",  "PHASE",
               "PLACED",    "MINIMUM", "TIER",   "DOMAIN", "NODES"};
  }
  Table table(std::move(headers));
  for (const GangLine& line : report.gangs) {
    const std::string placed = fmt::format("{}/{}", line.placed, line.wanted);
    // Placed, but in no one HyperNode: say so rather than leave a gap.
    const std::string domain =
        line.located && line.domain.empty() ? "<cluster>" : OrDash(line.domain);
    const std::string nodes = OrDash(Shortened(line.nodes, wide ? line.nodes.size() : kNodesShown));
    if (wide) {
      table.Add({line.ns, line.shown(), line.source, OrDash(line.queue), OrDash(line.phase), placed,
                 std::to_string(line.minimum), TierText(line), domain, nodes});
    } else {
      table.Add({line.ns, line.shown(), placed, TierText(line), domain, nodes});
    }
  }
  return table.ToString(bold);
}

std::string WaitingTable(const StepReport& report, bool bold) {
  Table table({"NAMESPACE", "WAITING", "PODS", "REASON", "MESSAGE"});
  for (const GangLine& line : report.gangs) {
    if (line.waits()) {
      table.Add({line.ns, line.shown(), std::to_string(line.wanted - line.placed),
                 OrDash(line.reason), line.message});
    }
  }
  return table.empty() ? "" : table.ToString(bold);
}

std::string ForeignText(const StepReport& report) {
  std::string text;
  for (const auto& [scheduler, count] : report.foreign) {
    text += fmt::format("{}{} for {}", text.empty() ? "" : ", ", count, Printable(scheduler));
  }
  return text.empty() ? ""
                      : fmt::format(
                            "\npods that wait for other schedulers: {}; --place-foreign "
                            "places them\n",
                            text);
}

void PrintTables(const StepReport& report, const SimulateOptions& options, Io& io) {
  const bool bold = io.out_is_terminal;
  io.out << (report.step > 1 ? "\n" : "") << "STEP " << report.step << "   " << report.time << "\n";
  if (report.gangs.empty()) {
    io.out << "no gangs\n";
  } else {
    io.out << GangTable(report, options.output == "wide", bold);
  }
  if (const std::string waiting = WaitingTable(report, bold); !waiting.empty()) {
    io.out << "\n" << waiting;
  }
  io.out << ForeignText(report);
}

Result<sim::SimulatorOptions> MakeOptions(const SimulateOptions& options, Io& io) {
  sim::SimulatorOptions made;
  if (!options.scheduler_names.empty()) {
    made.scheduler_names = options.scheduler_names;
  }
  made.place_foreign = options.place_foreign;
  if (options.config.empty()) {
    return made;
  }
  const Result<std::string> text = ReadFile(options.config);
  if (!text) {
    return tl::unexpected(text.error());
  }
  Result<sched::Config> config = sched::ParseConfig(*text);
  if (!config) {
    return tl::unexpected(config.error().Prefix(options.config));
  }
  if (!options.quiet) {
    for (const std::string& warning : config->warnings) {
      WarnUser(io, options.config + ": " + warning);
    }
  }
  made.config = std::move(*config);
  return made;
}

// Everything is read before anything runs: input that cannot be used leaves no half of an outcome
// behind.
bool LoadSteps(const SimulateOptions& options, Io& io, std::vector<sim::Manifest>& steps) {
  bool usable = true;
  for (const std::string& path : options.steps) {
    Result<sim::Manifest> step = LoadStep(io, path);
    if (!step) {
      Complain(io, step.error().message);
      usable = false;
      continue;
    }
    usable = Accept(io, *step, options.keep_going, options.quiet) && usable;
    steps.push_back(std::move(*step));
  }
  return usable;
}

class Run {
 public:
  Run(const SimulateOptions& options, Io& io, sim::SimulatorOptions made)
      : options_(options), io_(io), simulator_(std::move(made)) {}

  int Execute(const std::vector<sim::Manifest>& steps);

 private:
  bool Step(const sim::Manifest& manifest, size_t number, size_t of);
  int Explain();
  [[nodiscard]] bool tables() const {
    return options_.output == "table" || options_.output == "wide";
  }

  const SimulateOptions& options_;
  Io& io_;
  sim::Simulator simulator_;
  Json steps_ = Json::array();
};

bool Run::Step(const sim::Manifest& manifest, size_t number, size_t of) {
  if (io_.err_is_terminal && of > 1) {
    io_.err << fmt::format("\rstep {} of {}\x1b[K", number, of) << std::flush;
  }
  Status status = simulator_.ApplyStep(manifest);
  if (status && options_.until_done && number == of) {
    status = simulator_.Drain();
  }
  if (io_.err_is_terminal && of > 1) {
    io_.err << "\r\x1b[K" << std::flush;
  }
  std::vector<std::string> warnings = simulator_.TakeWarnings();
  if (!options_.quiet) {
    for (const std::string& warning : warnings) {
      WarnUser(io_, warning);
    }
  }
  if (!status) {
    Complain(io_, fmt::format("step {}: {}", number, status.error().message));
    return false;
  }
  if (!options_.snapshot_dir.empty()) {
    const std::string file = fmt::format("{}/step-{}.json", options_.snapshot_dir, number);
    if (const Status written = WriteFile(file, simulator_.Snapshot()); !written) {
      Complain(io_, written.error().message);
      return false;
    }
  }
  const StepReport report = MakeReport(simulator_);
  if (!tables()) {
    warnings.insert(warnings.begin(), manifest.warnings.begin(), manifest.warnings.end());
    steps_.push_back(ToJson(report, warnings));
  } else {
    PrintTables(report, options_, io_);
  }
  return true;
}

int Run::Explain() {
  int status = kOk;
  Json explained = Json::object();
  for (const std::string& gang : options_.explain) {
    const Result<std::string> text = sim::Explain(simulator_, gang);
    if (!text) {
      Complain(io_, "--explain: " + text.error().message);
      status = kUnusable;
      continue;
    }
    if (tables()) {
      io_.out << "\n" << *text;
    }
    explained[gang] = *text;
  }
  if (!tables()) {
    Json result = {{"steps", std::move(steps_)}};
    if (!explained.empty()) {
      result["explain"] = std::move(explained);
    }
    io_.out << (options_.output == "json" ? json::Dump(result, 2) + "\n" : ToYaml(result));
  }
  return status;
}

int Run::Execute(const std::vector<sim::Manifest>& steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!Step(steps[i], i + 1, steps.size())) {
      return kFailed;
    }
  }
  return Explain();
}

}  // namespace

int Simulate(const SimulateOptions& options, Io& io) {
  std::vector<sim::Manifest> steps;
  if (!LoadSteps(options, io, steps)) {
    return kUnusable;
  }
  Result<sim::SimulatorOptions> made = MakeOptions(options, io);
  if (!made) {
    Complain(io, made.error().message);
    return kUnusable;
  }
  if (!options.snapshot_dir.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(options.snapshot_dir, failed);
    if (failed) {
      Complain(io, fmt::format("--snapshot-dir {}: {}", options.snapshot_dir, failed.message()));
      return kUnusable;
    }
  }
  return Run(options, io, std::move(*made)).Execute(steps);
}

}  // namespace hopwise::cli
