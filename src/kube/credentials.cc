#include "kube/credentials.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/json.h"
#include "rt/clock.h"
#include "rt/files.h"

namespace hopwise::kube {

using json::Json;
namespace {

// An ExecCredential is a few kilobytes; of stderr the end says what went wrong.
constexpr size_t kMostOutput = size_t{1} << 20;
constexpr size_t kStderrShown = 400;
// How often it is looked whether the program is over, while one runs.
constexpr int kTickMs = 10;
// A word of this length that mixes kinds of characters is taken for a secret.
constexpr size_t kSecretLength = 32;
// Values of the plugin's env of this length and more are hidden; shorter ones are words.
constexpr size_t kHiddenValueLength = 8;

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { Close(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  void Close() {
    if (fd_ >= 0) {
      close(std::exchange(fd_, -1));
    }
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read, write;
};
Result<Pipe> MakePipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) {
    return Fail(ErrorCode::kIo, fmt::format("no pipe: {}", std::strerror(errno)));
  }
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  return Pipe{Fd(fds[0]), Fd(fds[1])};
}

// Takes what there is; closes `from` at its end. What is beyond the limit is dropped.
void Drain(Fd& from, std::string& into) {
  std::array<char, 16384> buffer{};
  while (from.get() >= 0) {
    const ssize_t got = read(from.get(), buffer.data(), buffer.size());
    if (got > 0) {
      const size_t room = kMostOutput - std::min(kMostOutput, into.size());
      into.append(buffer.data(), std::min(room, static_cast<size_t>(got)));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      from.Close();
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

std::string ExecInfo(const Access& access) {
  Json spec = {{"interactive", false}};
  if (access.exec->provide_cluster_info) {
    Json cluster = {{"server", access.server}};
    if (!access.tls_server_name.empty()) {
      cluster["tls-server-name"] = access.tls_server_name;
    }
    if (access.insecure) {
      cluster["insecure-skip-tls-verify"] = true;
    }
    if (!access.ca_pem.empty()) {
      cluster["certificate-authority-data"] = EncodeBase64(access.ca_pem);
    }
    if (!access.proxy_url.empty()) {
      cluster["proxy-url"] = access.proxy_url;
    }
    spec["cluster"] = std::move(cluster);
  }
  const Json info = {{"kind", "ExecCredential"},
                     {"apiVersion", access.exec->api_version},
                     {"spec", std::move(spec)}};
  // Bytes that are not UTF-8 are replaced, where the plain form would throw.
  return json::Dump(info);
}

// Ours, then the plugin's own, then the question; later ones win.
std::vector<std::string> EnvironmentOf(const Access& access) {
  std::map<std::string, std::string> all;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry = *at;
    const size_t equals = entry.find('=');
    if (equals != std::string_view::npos) {
      all[std::string(entry.substr(0, equals))] = entry.substr(equals + 1);
    }
  }
  for (const auto& [name, value] : access.exec->env) {
    all[name] = value;
  }
  all["KUBERNETES_EXEC_INFO"] = ExecInfo(access);
  std::vector<std::string> list;
  list.reserve(all.size());
  for (const auto& [name, value] : all) {
    list.push_back(fmt::format("{}={}", name, value));
  }
  return list;
}

std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

// Starts the program in a process group of its own, with no open file of ours and all signals at
// their defaults. The error is errno's.
std::pair<pid_t, int> Spawn(const Access& access, const Pipe& out, const Pipe& err) {
  std::vector<std::string> args = {access.exec->command};
  args.insert(args.end(), access.exec->args.begin(), access.exec->args.end());
  std::vector<std::string> env = EnvironmentOf(access);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, access.exec->command.c_str(), &actions, &attributes,
                                 PointersTo(args).data(), PointersTo(env).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return {pid, error};
}

// Process group of the one that runs, 0: none.
std::atomic<pid_t> running_plugin = 0;

struct Ended {
  int status = 0;  // as waitpid tells it
  bool timed_out = false, stopped = false;
  std::string out, err;
};

// A plugin may leave an agent behind that keeps its pipes: what counts is that it is over itself.
Ended Await(pid_t pid, Fd out, Fd err, Duration limit, int stop_fd) {
  Ended ended;
  const Time deadline = rt::MonotonicNow() + limit;
  for (;;) {
    std::array<pollfd, 3> fds = {
        {{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}, {stop_fd, POLLIN, 0}}};
    poll(fds.data(), fds.size(), kTickMs);
    ended.stopped = (fds[2].revents & POLLIN) != 0;
    ended.timed_out = rt::MonotonicNow() > deadline;
    const bool over = waitpid(pid, &ended.status, WNOHANG) == pid;
    Drain(out, ended.out);
    Drain(err, ended.err);
    if (over) {
      ended.stopped = ended.timed_out = false;
      return ended;
    }
    if (ended.stopped || ended.timed_out) {
      kill(-pid, SIGKILL);
      waitpid(pid, &ended.status, 0);
      return ended;
    }
  }
}

bool LooksSecret(std::string_view word) {
  if (word.starts_with("eyJ")) {
    return true;  // a JWT
  }
  bool digit = false, upper = false, lower = false, hex = true;
  for (const char c : word) {
    const auto u = static_cast<unsigned char>(c);
    digit = digit || std::isdigit(u) != 0;
    upper = upper || std::isupper(u) != 0;
    lower = lower || std::islower(u) != 0;
    hex = hex && std::isxdigit(u) != 0;
  }
  return word.size() >= kSecretLength && digit && (hex || (upper && lower));
}

void ReplaceAll(std::string& text, const std::string& what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), with);
    at += with.size();
  }
}

// The end of what the program said, on one line, without what may be a secret.
std::string Shown(std::string text, const ExecPlugin& exec) {
  for (const auto& [name, value] : exec.env) {
    if (value.size() >= kHiddenValueLength) {
      ReplaceAll(text, value, "***");
    }
  }
  std::string shown;
  std::string word;
  const auto end_word = [&] {
    shown += LooksSecret(word) ? "***" : word;
    word.clear();
  };
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0 || (c != '\0' && std::strchr("_-.+=", c) != nullptr)) {
      word += c;
      continue;
    }
    end_word();
    if (std::isspace(u) == 0 && std::iscntrl(u) == 0) {
      shown += c;
    } else if (!shown.empty() && shown.back() != ' ') {
      shown += ' ';
    }
  }
  end_word();
  while (shown.ends_with(' ')) {
    shown.pop_back();
  }
  return shown.size() <= kStderrShown ? shown : "…" + shown.substr(shown.size() - kStderrShown);
}

// Nothing of `output` may stand in the error.
Result<Credential> ReadCredential(const std::string& output, const ExecPlugin& exec) {
  const Json answer = json::ParseOrNull(output);
  if (!answer.is_object() || json::Text(answer, {"kind"}) != "ExecCredential") {
    return Invalid("it did not print an ExecCredential as JSON");
  }
  if (const std::string version = json::Text(answer, {"apiVersion"}); version != exec.api_version) {
    return Invalid(
        fmt::format("it answered in another apiVersion than {}, which the kubeconfig "
                    "names",
                    exec.api_version));
  }
  const auto status = answer.find("status");
  if (status == answer.end() || !status->is_object()) {
    return Invalid("its ExecCredential has no status");
  }
  Credential credential{TrimToken(json::Text(*status, {"token"})),
                        json::Text(*status, {"clientCertificateData"}),
                        json::Text(*status, {"clientKeyData"}),
                        {}};
  if (credential.client_cert_pem.empty() != credential.client_key_pem.empty()) {
    return Invalid("its status has only one of clientCertificateData and clientKeyData");
  }
  if (credential.token.empty() && credential.client_cert_pem.empty()) {
    return Invalid("its status has neither token nor clientCertificateData");
  }
  if (!IsToken(credential.token)) {
    return Invalid("its token holds a blank or a line break");
  }
  if (const std::string expires = json::Text(*status, {"expirationTimestamp"}); !expires.empty()) {
    const Result<Time> time = ParseRfc3339(expires);
    if (!time) {
      return Invalid("its expirationTimestamp is no RFC 3339 time");
    }
    credential.expires = *time;
  }
  return credential;
}

Result<Credential> Judge(const Ended& ended, const ExecPlugin& exec, Duration limit) {
  const std::string said = Shown(ended.err, exec);
  const std::string tail = said.empty() ? std::string() : "; it said: " + said;
  if (ended.stopped) {
    return Fail(ErrorCode::kIo, "stopped");
  }
  if (ended.timed_out) {
    return Fail(ErrorCode::kIo,
                fmt::format("no answer within {}{}", FormatGoDuration(limit), tail));
  }
  if (WIFSIGNALED(ended.status)) {
    return Fail(ErrorCode::kIo,
                fmt::format("it was killed by signal {}{}", WTERMSIG(ended.status), tail));
  }
  if (WEXITSTATUS(ended.status) != 0) {
    return Fail(ErrorCode::kIo,
                fmt::format("it failed with exit code {}{}", WEXITSTATUS(ended.status), tail));
  }
  auto credential = ReadCredential(ended.out, exec);
  if (!credential) {
    return Invalid(credential.error().message + tail);
  }
  return credential;
}

}  // namespace

void KillPlugin() {
  if (const pid_t group = running_plugin; group > 0) {
    kill(-group, SIGKILL);
  }
}

Result<std::string> ReadSmallFile(const std::string& path) {
  return rt::ReadSmallFile(path, kMostFileBytes);
}

Result<std::string> DecodeBase64(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (const char c : text) {
    if (c != '\n' && c != '\r') {
      clean += c;
    }
  }
  const size_t end = clean.find_last_not_of('=') + 1;
  const size_t padding = clean.size() - end;
  const bool good =
      clean.size() % 4 == 0 && padding <= 2 && clean.size() < size_t{INT_MAX} &&
      std::all_of(
          clean.begin(), clean.begin() + static_cast<ptrdiff_t>(end),
          [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '/';
          });
  if (!good) {
    return Invalid("is not base64; `base64 -w0 FILE` makes it");
  }
  std::vector<unsigned char> bytes(clean.size() / 4 * 3);
  std::vector<unsigned char> input(clean.begin(), clean.end());
  const int length = EVP_DecodeBlock(bytes.data(), input.data(), static_cast<int>(input.size()));
  if (length < 0) {
    return Invalid("is not base64; `base64 -w0 FILE` makes it");
  }
  // OpenSSL counts what the padding stands for as zero bytes.
  return std::string(bytes.begin(), bytes.begin() + length - static_cast<ptrdiff_t>(padding));
}

std::string EncodeBase64(std::string_view bytes) {
  std::vector<unsigned char> input(bytes.begin(), bytes.end());
  std::vector<unsigned char> text((input.size() + 2) / 3 * 4 + 1);  // and a zero byte
  const int length = EVP_EncodeBlock(text.data(), input.data(), static_cast<int>(input.size()));
  return {text.begin(), text.begin() + length};
}

std::string TrimToken(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) {
    return "";
  }
  return std::string(text.substr(first, text.find_last_not_of(kBlank) - first + 1));
}

bool IsToken(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

Result<std::string> ReadTokenFile(const std::string& path) {
  const Result<std::string> text = ReadSmallFile(path);
  if (!text) {
    return tl::unexpected(text.error());
  }
  std::string token = TrimToken(*text);
  if (token.empty()) {
    return Invalid(path + " is empty; expected a token");
  }
  if (!IsToken(token)) {
    return Invalid(path + " holds blanks or line breaks within its text; expected one token");
  }
  return token;
}

Result<Credential> RunExecPlugin(const Access& access, Duration limit, int stop_fd) {
  const std::string context = "exec plugin " + access.exec->command;
  Result<Pipe> out = MakePipe();
  Result<Pipe> err = MakePipe();
  if (!out || !err) {
    return tl::unexpected((out ? err : out).error().Prefix(context));
  }
  const auto [pid, error] = Spawn(access, *out, *err);
  if (error != 0) {
    const std::string& hint = access.exec->install_hint;
    return Fail(error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                fmt::format("{}: cannot be started: {}{}", context, std::strerror(error),
                            hint.empty() ? "; install it, or correct exec.command in the kubeconfig"
                                         : "; " + hint));
  }
  out->write.Close();
  err->write.Close();
  const Ended ended = Await(pid, std::move(out->read), std::move(err->read), limit, stop_fd);
  auto credential = Judge(ended, *access.exec, limit);
  if (!credential) {
    return tl::unexpected(credential.error().Prefix(context));
  }
  return credential;
}

}  // namespace hopwise::kube
