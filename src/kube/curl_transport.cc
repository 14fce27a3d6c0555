#include "kube/curl_transport.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstring>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/prng.h"
#include "kube/credentials.h"
#include "kube/curl_handle.h"
#include "rt/clock.h"

namespace hopwise::kube {
namespace {

// Streams that are expected besides the pool, some three times what the daemon watches: so many
// more connections may stay open for the next request.
constexpr int kStreamConnections = 64;
// After an exec plugin failed, or a token file, the next try waits so long, however many requests
// ask for it.
constexpr Duration kCredentialRetry = Seconds(1);
// Idle, the loop sleeps until something happens; this only bounds the sleep's type.
constexpr int64_t kLongestSleepMs = 3'600'000;
// A round of the loop looks at every open exchange and every connection. With more than a few under
// way it waits this long for answers that come together: a tenth of the API server's own time for a
// write, and a fifth of our processor time less where thousands are written.
constexpr int kFew = 4;
constexpr Duration kGather = Duration{500'000};
// An hour is beyond any sensible Retry-After, and keeps the product in range.
constexpr int64_t kMostRetryAfterSeconds = 3600;
// Room made at once for an answer that says how long it is: that, but not more than this, and a bit
// for the JSON reader, which needs some bytes beyond the text.
constexpr size_t kMostReserved = size_t{64} << 20;
constexpr size_t kReaderPadding = 64;

constexpr int kOk = 200;
constexpr int kUnauthorized = 401;
constexpr int kTooManyRequests = 429;
constexpr int kUnavailable = 503;

using Id = Transport::Id;
using Headers = std::shared_ptr<curl_slist>;

uint64_t Seed() {
  uint64_t seed = 0;
  HOPWISE_CHECK(getrandom(&seed, sizeof(seed), 0) == ssize_t{sizeof(seed)});
  return seed;
}

std::optional<std::string_view> HeaderValue(std::string_view line, std::string_view name) {
  if (line.size() <= name.size() || line[name.size()] != ':' ||
      strncasecmp(line.data(), name.data(), name.size()) != 0) {
    return std::nullopt;
  }
  line.remove_prefix(name.size() + 1);
  const size_t first = line.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : line.substr(first);
}

// 0 for what is no number; Retry-After may be a date, which the API server never sends.
int64_t LeadingNumber(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return std::max<int64_t>(number, 0);
}

// Tokens at `rate` a second, `burst` of them saved up at most; rate 0: as many as are asked for.
class TokenBucket {
 public:
  TokenBucket(double rate, int burst) : rate_(rate), most_(std::max(1, burst)), tokens_(most_) {}

  bool Take(Time now) {
    if (rate_ <= 0) {
      return true;
    }
    const auto passed = static_cast<double>((now - last_).ns);
    tokens_ = last_.set() ? std::min(most_, tokens_ + passed * rate_ / 1e9) : most_;
    last_ = now;
    if (tokens_ < 1) {
      return false;
    }
    tokens_ -= 1;
    return true;
  }
  // When the next one will be there, once Take has failed.
  [[nodiscard]] Time NextAt() const {
    return last_ + Duration{static_cast<int64_t>(std::ceil((1 - tokens_) / rate_ * 1e9))};
  }

 private:
  double rate_, most_, tokens_;
  Time last_;
};

// Callbacks by their time, then in the order in which they were asked for.
class Timers {
 public:
  void Add(Id id, Time due, std::function<void()> run) {
    by_time_.emplace(std::pair(due, id), std::move(run));
    due_.emplace(id, due);
  }
  void Remove(Id id) {
    if (const auto at = due_.find(id); at != due_.end()) {
      by_time_.erase({at->second, id});
      due_.erase(at);
    }
  }
  // The first that is due and older than `before`, so that one that asks for itself again at once
  // does not hold the loop.
  std::function<void()> TakeDue(Time now, Id before) {
    if (by_time_.empty()) {
      return {};
    }
    const auto first = by_time_.begin();
    if (first->first.first > now || first->first.second >= before) {
      return {};
    }
    due_.erase(first->first.second);
    return std::move(by_time_.extract(first).mapped());
  }
  [[nodiscard]] std::optional<Time> Next() const {
    return by_time_.empty() ? std::nullopt : std::optional(by_time_.begin()->first.first);
  }

 private:
  std::map<std::pair<Time, Id>, std::function<void()>> by_time_;
  std::unordered_map<Id, Time> due_;
};

}  // namespace

// All but `mutex`, `posted` and `stopping` belongs to the loop's thread.
struct CurlTransport::Impl {
  // A request or a stream, from Send to its end.
  struct Exchange {
    Impl* owner = nullptr;
    Id id = 0;
    Request request;
    Done done;
    std::function<void(std::string_view)> chunk;  // of a stream
    Response response;
    std::unique_ptr<CurlHandle> handle;  // while it is under way
    Headers headers;
    uint64_t credential = 0;  // the number of the one it was sent with
    Id late = 0;              // of a stream: the timer for its headers
    Time asked;               // its time-out counts from here, whatever it waits for
    int64_t content_length = 0;
    bool limited = false;    // holds one of the pool's places
    bool resent = false;     // after a 401
    bool throttled = false;  // counted as such
    bool dead = false;       // cancelled: curl still knows it, nobody else does
    bool too_long = false;   // the answer
    [[nodiscard]] bool stream() const { return static_cast<bool>(chunk); }
    [[nodiscard]] bool limits() const { return !stream() && !request.urgent; }
  };
  using Owned = std::unique_ptr<Exchange>;

  Impl(Access given, CurlOptions opts);
  ~Impl();

  // --- other threads
  void Post(std::function<void()> run);

  // --- the loop
  void Loop();
  bool RunPosted();
  void RunTimers();
  [[nodiscard]] int SleepMs() const;

  // --- requests
  Id Open(Request request, std::function<void(std::string_view)> chunk, Done done);
  void Cancel(Id id);
  void Pump();
  void Start(Exchange& exchange);
  void ReadFinished();
  void Finish(Exchange& exchange, CURLcode code);
  void HeadersLate(Id id);
  void Close(Exchange& exchange);
  void EndWith(Id id, Response&& response);
  void FailWaiting(const std::string& error);
  void Reap();
  Headers HeadersOf(const Request& request);

  static size_t OnHeader(char* data, size_t size, size_t count, void* self);
  static size_t OnBody(char* data, size_t size, size_t count, void* self);

  // --- credentials
  bool CredentialReady();
  bool ReadTokenAgain();
  bool Renew(const Exchange& exchange);
  void StartExec();
  void TakeExec(Result<Credential>&& answer);
  void UseCredential(const std::string& token);

  Access access;
  CurlOptions options;
  CurlHandles handles;
  CURLM* multi = nullptr;
  Prng prng{Seed()};
  TokenBucket bucket;
  Timers timers;
  Id next_id = 1;
  Counts counts;

  std::unordered_map<Id, Owned> exchanges;
  // Ids; those that are no more in `exchanges` were cancelled. `ahead` is not limited.
  std::deque<Id> ahead, queue;
  std::vector<Owned> cancelled;
  int places_taken = 0;
  std::optional<Time> token_at;  // the bucket was empty; this is when it is not

  std::string authorization;
  uint64_t credential = 0;  // counts up; 0: none yet
  Time retry_at;            // Now() before which no other is asked for
  std::map<std::string, Headers> headers_by_type;
  Time token_read;  // Now() of the last reading of the token file
  std::string file_token;
  Time exec_expires;  // Wall()
  bool exec_fresh = false, exec_running = false;
  std::thread exec_thread;
  int exec_stop = -1;

  std::mutex mutex;
  std::vector<std::function<void()>> posted;
  bool stopping = false;
  std::thread thread;
};

CurlTransport::Impl::Impl(Access given, CurlOptions opts)
    : access(std::move(given)),
      options(std::move(opts)),
      handles(access, options.user_agent),
      multi(curl_multi_init()),
      bucket(options.qps, options.burst),
      exec_stop(eventfd(0, EFD_CLOEXEC)) {
  HOPWISE_CHECK(multi != nullptr && exec_stop >= 0);
  options.connections = std::max(1, options.connections);
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS,
                    static_cast<long>(options.connections + kStreamConnections));
  curl_multi_setopt(multi, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  thread = std::thread([this] { Loop(); });
}

CurlTransport::Impl::~Impl() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  curl_multi_wakeup(multi);
  thread.join();
  const uint64_t one = 1;
  static_cast<void>(write(exec_stop, &one, sizeof(one)) == ssize_t{sizeof(one)});
  if (exec_thread.joinable()) {
    exec_thread.join();
  }
  close(exec_stop);
  // Destroying what the callbacks hold may cancel other things, so that all stays in order here.
  std::exchange(posted, {}).clear();
  while (!exchanges.empty()) {
    Cancel(exchanges.begin()->first);
    Reap();
  }
  Reap();
  while (timers.TakeDue(Time{INT64_MAX}, UINT64_MAX)) {
  }
  curl_multi_cleanup(multi);
}

// --- the loop
// -------------------------------------------------------------------------------------

void CurlTransport::Impl::Post(std::function<void()> run) {
  bool first = false;
  {
    const std::lock_guard lock(mutex);
    first = posted.empty();
    posted.push_back(std::move(run));
  }
  if (first) {
    curl_multi_wakeup(multi);
  }
}

bool CurlTransport::Impl::RunPosted() {
  std::vector<std::function<void()>> now;
  {
    const std::lock_guard lock(mutex);
    if (stopping) {
      return false;
    }
    now.swap(posted);
  }
  for (const std::function<void()>& run : now) {
    run();
  }
  return true;
}

void CurlTransport::Impl::RunTimers() {
  const Time now = rt::MonotonicNow();
  const Id before = next_id;
  while (const std::function<void()> run = timers.TakeDue(now, before)) {
    run();
  }
}

// Curl's own timers are minded by curl_multi_poll.
int CurlTransport::Impl::SleepMs() const {
  const bool waits = !exec_running && !token_at && (!ahead.empty() || !queue.empty());
  const bool place = !ahead.empty() || places_taken < options.connections;
  if (!cancelled.empty() || (waits && place && rt::MonotonicNow() >= retry_at)) {
    return 0;
  }
  std::optional<Time> next = timers.Next();
  for (const std::optional<Time> other :
       {token_at, waits && place ? std::optional(retry_at) : std::nullopt}) {
    if (other && (!next || *other < *next)) {
      next = other;
    }
  }
  const int64_t ms =
      next ? (next->ns - rt::MonotonicNow().ns + 999'999) / 1'000'000 : kLongestSleepMs;
  return static_cast<int>(std::clamp<int64_t>(ms, 0, kLongestSleepMs));
}

void CurlTransport::Impl::Loop() {
  // OpenSSL writes to sockets without MSG_NOSIGNAL.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  while (RunPosted()) {
    int running = 0;
    curl_multi_perform(multi, &running);
    ReadFinished();
    RunTimers();
    Reap();
    Pump();
    curl_multi_poll(multi, nullptr, 0, SleepMs(), nullptr);
    if (places_taken > kFew) {
      rt::Pause(kGather);
    }
  }
}

// --- requests
// -------------------------------------------------------------------------------------

Id CurlTransport::Impl::Open(Request request, std::function<void(std::string_view)> chunk,
                             Done done) {
  auto exchange = std::make_unique<Exchange>();
  const Id id = next_id++;
  exchange->owner = this;
  exchange->id = id;
  exchange->asked = rt::MonotonicNow();
  exchange->request = std::move(request);
  exchange->chunk = std::move(chunk);
  exchange->done = std::move(done);
  (exchange->limits() ? queue : ahead).push_back(id);
  exchanges.emplace(id, std::move(exchange));
  ++counts.waiting;
  return id;
}

// Curl may be calling us for it right now, so that it is taken from curl later, by Reap.
void CurlTransport::Impl::Cancel(Id id) {
  timers.Remove(id);
  const auto at = exchanges.find(id);
  if (at == exchanges.end()) {
    return;
  }
  at->second->dead = true;
  counts.waiting -= at->second->handle == nullptr ? 1U : 0U;
  timers.Remove(std::exchange(at->second->late, 0));
  cancelled.push_back(std::move(at->second));
  exchanges.erase(at);
}

void CurlTransport::Impl::Reap() {
  while (!cancelled.empty()) {
    // Destroying what a callback held may cancel more.
    const Owned exchange = std::move(cancelled.back());
    cancelled.pop_back();
    Close(*exchange);
  }
}

// Starts what may start: credentials first, then room in the pool, then the rate.
void CurlTransport::Impl::Pump() {
  token_at.reset();
  if ((ahead.empty() && queue.empty()) || !CredentialReady()) {
    return;
  }
  while (!ahead.empty()) {
    const auto at = exchanges.find(ahead.front());
    ahead.pop_front();
    if (at != exchanges.end()) {
      Start(*at->second);
    }
  }
  const Time now = rt::MonotonicNow();
  while (!queue.empty() && places_taken < options.connections) {
    const auto at = exchanges.find(queue.front());
    if (at == exchanges.end()) {
      queue.pop_front();
      continue;
    }
    if (!bucket.Take(now)) {
      counts.throttled += std::exchange(at->second->throttled, true) ? 0U : 1U;
      token_at = bucket.NextAt();
      return;
    }
    queue.pop_front();
    Start(*at->second);
  }
}

Headers CurlTransport::Impl::HeadersOf(const Request& request) {
  Headers& headers = headers_by_type[request.content_type];
  if (headers == nullptr) {
    headers = handles.HeadersFor(request.content_type, authorization);
  }
  return headers;
}

void CurlTransport::Impl::Start(Exchange& exchange) {
  const Duration left = exchange.asked + exchange.request.timeout - rt::MonotonicNow();
  const bool timed = !exchange.stream() && exchange.request.timeout.ns > 0;
  if (timed && left < Millis(1)) {
    Response response;
    response.error = fmt::format("{}: it had no turn within {}", handles.shown(),
                                 FormatGoDuration(exchange.request.timeout));
    return EndWith(exchange.id, std::move(response));
  }
  exchange.handle = handles.Take(exchange.request, exchange.stream());
  HOPWISE_CHECK(exchange.handle != nullptr);
  exchange.headers = HeadersOf(exchange.request);
  exchange.credential = credential;
  CURL* easy = exchange.handle->easy.get();
  if (timed) {
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(left.ns / Millis(1).ns));
  }
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &exchange);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange.headers.get());
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &OnHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &OnBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &exchange);
  --counts.waiting;
  ++counts.sent;
  ++counts.in_flight;
  exchange.limited = exchange.limits();
  places_taken += exchange.limited ? 1 : 0;
  if (exchange.stream() && exchange.request.timeout.ns > 0) {
    exchange.late = next_id++;
    timers.Add(exchange.late, rt::MonotonicNow() + exchange.request.timeout,
               [this, id = exchange.id] { HeadersLate(id); });
  }
  HOPWISE_CHECK(curl_multi_add_handle(multi, easy) == CURLM_OK);
}

// Takes it from curl and gives back what it held.
void CurlTransport::Impl::Close(Exchange& exchange) {
  timers.Remove(std::exchange(exchange.late, 0));
  if (exchange.handle == nullptr) {
    return;
  }
  curl_multi_remove_handle(multi, exchange.handle->easy.get());
  handles.Give(std::move(exchange.handle));
  --counts.in_flight;
  places_taken -= std::exchange(exchange.limited, false) ? 1 : 0;
}

void CurlTransport::Impl::EndWith(Id id, Response&& response) {
  const auto at = exchanges.find(id);
  if (at == exchanges.end()) {
    return;
  }
  const Owned exchange = std::move(at->second);
  exchanges.erase(at);
  counts.waiting -= exchange->handle == nullptr ? 1U : 0U;
  counts.failed += response.status == 0 ? 1U : 0U;
  Close(*exchange);
  if (exchange->done) {
    exchange->done(std::move(response));
  }
}

void CurlTransport::Impl::ReadFinished() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
    if (message->msg != CURLMSG_DONE) {
      continue;
    }
    void* self = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &self);
    auto* exchange = static_cast<Exchange*>(self);
    if (!exchange->dead) {
      Finish(*exchange, message->data.result);
    }
  }
}

void CurlTransport::Impl::Finish(Exchange& exchange, CURLcode code) {
  Response response = std::move(exchange.response);
  exchange.response = {};
  if (code != CURLE_OK) {
    response = {};
    response.error = exchange.too_long
                         ? fmt::format("{}: the answer is longer than {} bytes", handles.shown(),
                                       options.most_body)
                         : handles.WhatFailed(*exchange.handle, code, exchange.request.timeout);
    response.untrusted = code == CURLE_PEER_FAILED_VERIFICATION ||
                         code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM;
  } else if (response.status == kUnauthorized && !exchange.resent && Renew(exchange)) {
    Close(exchange);
    exchange.resent = true;
    ahead.push_back(exchange.id);
    ++counts.waiting;
    return;
  }
  if (response.status != kTooManyRequests && response.status != kUnavailable) {
    response.retry_after = {};
  }
  EndWith(exchange.id, std::move(response));
}

void CurlTransport::Impl::HeadersLate(Id id) {
  const auto at = exchanges.find(id);
  if (at == exchanges.end() || at->second->handle == nullptr) {
    return;
  }
  Response response;
  response.error = handles.WhatFailed(*at->second->handle, CURLE_OPERATION_TIMEDOUT,
                                      at->second->request.timeout);
  EndWith(id, std::move(response));
}

// What waits for a credential that does not come.
void CurlTransport::Impl::FailWaiting(const std::string& error) {
  std::deque<Id> ids = std::exchange(ahead, {});
  ids.insert(ids.end(), queue.begin(), queue.end());
  queue.clear();
  for (const Id id : ids) {
    Response response;
    response.error = fmt::format("{}: no credential: {}", handles.shown(), error);
    EndWith(id, std::move(response));
  }
}

// Called for each header line; those of an interim answer (1xx) come before those of the answer.
size_t CurlTransport::Impl::OnHeader(char* data, size_t size, size_t count, void* self) {
  Exchange& exchange = *static_cast<Exchange*>(self);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) {
    const size_t blank = line.find(' ');
    exchange.response = {};
    exchange.content_length = 0;
    if (blank != std::string_view::npos) {
      exchange.response.status = static_cast<int>(LeadingNumber(line.substr(blank + 1)));
    }
  } else if (const auto length = HeaderValue(line, "Content-Length")) {
    exchange.content_length = LeadingNumber(*length);
  } else if (const auto after = HeaderValue(line, "Retry-After")) {
    exchange.response.retry_after =
        Seconds(std::min(LeadingNumber(*after), kMostRetryAfterSeconds));
  } else if (line == "\r\n" && exchange.response.status == kOk && exchange.stream()) {
    exchange.owner->timers.Remove(std::exchange(exchange.late, 0));
  }
  return size * count;
}

size_t CurlTransport::Impl::OnBody(char* data, size_t size, size_t count, void* self) {
  Exchange& exchange = *static_cast<Exchange*>(self);
  const size_t bytes = size * count;
  if (exchange.dead) {
    return CURL_WRITEFUNC_ERROR;
  }
  Response& response = exchange.response;
  if (exchange.stream() && response.status == kOk) {
    exchange.chunk({data, bytes});
    return exchange.dead ? CURL_WRITEFUNC_ERROR : bytes;
  }
  if (response.body.empty() && exchange.content_length > 0) {
    response.body.reserve(std::min(static_cast<size_t>(exchange.content_length), kMostReserved) +
                          kReaderPadding);
  }
  const size_t most = exchange.owner->options.most_body;
  exchange.too_long = most > 0 && response.body.size() + bytes > most;
  if (exchange.too_long) {
    return CURL_WRITEFUNC_ERROR;
  }
  response.body.append(data, bytes);
  return bytes;
}

// --- credentials
// ----------------------------------------------------------------------------------

void CurlTransport::Impl::UseCredential(const std::string& token) {
  authorization.clear();
  if (!token.empty()) {
    authorization = "Bearer " + token;
  } else if (!access.username.empty()) {
    authorization = "Basic " + EncodeBase64(access.username + ":" + access.password);
  }
  headers_by_type.clear();
  ++credential;
}

// True when there is something to send with; else it is on its way, or what waits was failed.
bool CurlTransport::Impl::CredentialReady() {
  const Time now = rt::MonotonicNow();
  if (access.exec) {
    if (exec_fresh && (!exec_expires.set() || rt::WallNow() < exec_expires)) {
      return true;
    }
    exec_fresh = false;
    if (!exec_running && now >= retry_at) {
      StartExec();
    }
    return false;
  }
  if (!access.token_file.empty()) {
    if (now >= retry_at && (credential == 0 || now - token_read >= kTokenReread)) {
      ReadTokenAgain();
    }
    return credential != 0;
  }
  if (credential == 0) {
    UseCredential(access.token);
  }
  return true;
}

// True when it has changed. An old token is better than none: the kubelet may be about to replace
// the file.
bool CurlTransport::Impl::ReadTokenAgain() {
  const Result<std::string> token = ReadTokenFile(access.token_file);
  token_read = rt::MonotonicNow();
  if (!token) {
    Log(LogLevel::kWarning, "token_file_unreadable", {{"error", token.error().message}});
    if (credential == 0) {
      retry_at = token_read + kCredentialRetry;
      FailWaiting(token.error().message);
    }
    return false;
  }
  if (credential != 0 && *token == file_token) {
    return false;
  }
  file_token = *token;
  UseCredential(file_token);
  return true;
}

// After a 401: whether another credential than the refused one is there or on its way. Of several
// requests that were refused together the first asks for it.
bool CurlTransport::Impl::Renew(const Exchange& exchange) {
  if (exchange.credential != credential) {
    return true;
  }
  if (access.exec) {
    exec_fresh = false;
    return true;
  }
  return !access.token_file.empty() && ReadTokenAgain();
}

void CurlTransport::Impl::StartExec() {
  exec_running = true;
  if (exec_thread.joinable()) {
    exec_thread.join();  // it has posted its answer and is over
  }
  exec_thread = std::thread([this] {
    auto answer =
        std::make_shared<Result<Credential>>(RunExecPlugin(access, kExecTimeout, exec_stop));
    Post([this, answer] { TakeExec(std::move(*answer)); });
  });
}

void CurlTransport::Impl::TakeExec(Result<Credential>&& answer) {
  exec_running = false;
  if (answer && answer->expires.set() && answer->expires <= rt::WallNow()) {
    answer = Invalid(
        fmt::format("exec plugin {}: its credential expired at {} already; compare the clocks",
                    access.exec->command, FormatRfc3339(answer->expires)));
  }
  if (!answer) {
    retry_at = rt::MonotonicNow() + kCredentialRetry;
    Log(LogLevel::kWarning, "exec_plugin_failed", {{"error", answer.error().message}});
    FailWaiting(answer.error().message);
    return;
  }
  exec_fresh = true;
  exec_expires = answer->expires;
  const bool own = answer->client_cert_pem.empty();
  handles.SetClientCertificate(own ? access.client_cert_pem : answer->client_cert_pem,
                               own ? access.client_key_pem : answer->client_key_pem);
  UseCredential(answer->token);
}

// --- what others see
// ------------------------------------------------------------------------------

CurlTransport::CurlTransport(Access access, CurlOptions options)
    : impl_(std::make_unique<Impl>(std::move(access), std::move(options))) {}
CurlTransport::~CurlTransport() = default;

void CurlTransport::Post(std::function<void()> run) { impl_->Post(std::move(run)); }

void CurlTransport::Run(const std::function<void()>& run) {
  // Shared: we may be gone before set_value has returned.
  const auto over = std::make_shared<std::promise<void>>();
  std::future<void> waiting = over->get_future();
  impl_->Post([&run, over] {
    run();
    over->set_value();
  });
  waiting.wait();
}

Id CurlTransport::Send(Request request, Done done) {
  return impl_->Open(std::move(request), {}, std::move(done));
}
Id CurlTransport::Stream(Request request, std::function<void(std::string_view)> chunk, Done done) {
  HOPWISE_CHECK(chunk != nullptr);
  return impl_->Open(std::move(request), std::move(chunk), std::move(done));
}
Id CurlTransport::After(Duration delay, std::function<void()> run) {
  const Id id = impl_->next_id++;
  impl_->timers.Add(id, Now() + std::max(delay, Duration{}), std::move(run));
  return id;
}
void CurlTransport::Cancel(Id id) { impl_->Cancel(id); }
Time CurlTransport::Now() const { return rt::MonotonicNow(); }
Time CurlTransport::Wall() const { return rt::WallNow(); }
uint64_t CurlTransport::Random() { return impl_->prng.Next(); }
CurlTransport::Counts CurlTransport::counts() const { return impl_->counts; }

}  // namespace hopwise::kube
