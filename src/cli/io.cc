#include "cli/io.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <iterator>
#include <ostream>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "cli/table.h"

namespace hopwise::cli {
namespace {

namespace fs = std::filesystem;

// Problems that are printed one by one; more are counted, so that a file of garbage does not flood
// the terminal.
constexpr size_t kMaxShown = 100;

Error SystemError(const std::string& path) {
  return {ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(errno))};
}

bool IsManifest(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

Result<std::vector<std::string>> FilesIn(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code failed;
  fs::directory_iterator at(directory, failed);
  for (; !failed && at != fs::directory_iterator(); at.increment(failed)) {
    std::error_code ignored;
    if (IsManifest(at->path()) && !at->is_directory(ignored)) {
      files.push_back(at->path().string());
    }
  }
  if (failed) {
    return Fail(ErrorCode::kIo, fmt::format("{}: {}", directory, failed.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// An iterator over the stream would throw where reading fails, as it does for a directory; read()
// says so in the stream's state.
Result<std::string> ReadAll(std::istream& in, const std::string& path) {
  constexpr size_t kPiece = size_t{1} << 20;
  std::string text;
  while (in.good()) {
    const size_t have = text.size();
    text.resize(have + kPiece);
    in.read(text.data() + have, static_cast<std::streamsize>(kPiece));
    text.resize(have + static_cast<size_t>(in.gcount()));
  }
  if (in.bad()) {
    return tl::unexpected(SystemError(path));
  }
  return text;
}

Status Load(Io& io, const std::string& path, sim::Manifest& manifest) {
  const Result<std::vector<Source>> sources = ReadSources(io, path);
  if (!sources) {
    return tl::unexpected(sources.error());
  }
  if (sources->empty()) {
    manifest.warnings.push_back(path + ": no *.yaml, *.yml or *.json in this directory");
  }
  for (const Source& source : *sources) {
    sim::AddManifest(source.name, source.text, manifest);
  }
  return {};
}

}  // namespace

void Complain(Io& io, std::string_view text) { io.err << "hopwise: " << Printable(text) << "\n"; }
void WarnUser(Io& io, std::string_view text) {
  io.err << "hopwise: warning: " << Printable(text) << "\n";
}

Result<std::string> ReadFile(const std::string& path) {
  std::error_code ignored;
  if (fs::is_character_file(path, ignored) || fs::is_block_file(path, ignored)) {
    return Invalid(
        fmt::format("{} is a device, which may have no end; name a file, or - for standard "
                    "input",
                    path));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return tl::unexpected(SystemError(path));
  }
  return ReadAll(file, path);
}

Result<std::vector<Source>> ReadSources(Io& io, const std::string& path) {
  std::vector<std::string> files = {path};
  std::error_code ignored;
  if (path != "-" && fs::is_directory(path, ignored)) {
    Result<std::vector<std::string>> found = FilesIn(path);
    if (!found) {
      return tl::unexpected(found.error());
    }
    files = *std::move(found);
  }
  std::vector<Source> sources;
  for (const std::string& file : files) {
    const bool stdin_meant = path == "-";
    Result<std::string> text = stdin_meant ? ReadAll(io.in, "<stdin>") : ReadFile(file);
    if (!text) {
      return tl::unexpected(text.error());
    }
    sources.push_back({stdin_meant ? "<stdin>" : file, *std::move(text)});
  }
  return sources;
}

Status WriteFile(const std::string& path, std::string_view text) {
  const std::string draft = path + ".part";
  errno = 0;
  {
    std::ofstream file(draft, std::ios::binary | std::ios::trunc);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.flush();
    if (!file) {
      return tl::unexpected(SystemError(draft));
    }
  }
  std::error_code failed;
  fs::rename(draft, path, failed);
  if (failed) {
    return Fail(ErrorCode::kIo, fmt::format("{}: {}", path, failed.message()));
  }
  return {};
}

Result<sim::Manifest> LoadStep(Io& io, const std::string& path) { return LoadFiles(io, {path}); }

Result<sim::Manifest> LoadFiles(Io& io, const std::vector<std::string>& paths) {
  sim::Manifest manifest;
  for (const std::string& path : paths) {
    if (Status status = Load(io, path, manifest); !status) {
      return tl::unexpected(status.error());
    }
  }
  sim::FinishManifest(manifest);
  return manifest;
}

bool Accept(Io& io, const sim::Manifest& manifest, bool keep_going, bool quiet) {
  for (size_t i = 0; i < std::min(manifest.problems.size(), kMaxShown); ++i) {
    Complain(io, sim::ToText(manifest.problems[i]));
  }
  if (manifest.problems.size() > kMaxShown) {
    Complain(io, fmt::format("and {} more documents that cannot be used",
                             manifest.problems.size() - kMaxShown));
  }
  if (!quiet) {
    for (size_t i = 0; i < std::min(manifest.warnings.size(), kMaxShown); ++i) {
      WarnUser(io, manifest.warnings[i]);
    }
    if (manifest.warnings.size() > kMaxShown) {
      WarnUser(io, fmt::format("and {} more warnings", manifest.warnings.size() - kMaxShown));
    }
  }
  if (manifest.problems.empty()) {
    return true;
  }
  if (keep_going) {
    WarnUser(io, fmt::format("going on without {} documents", manifest.problems.size()));
  }
  return keep_going;
}

}  // namespace hopwise::cli
