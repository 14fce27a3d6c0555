#include "kube/lease.h"

#include <algorithm>
#include <utility>

#include "api/json.h"
#include "base/log.h"
#include "kube/resources.h"

namespace hopwise::kube {

using json::Json;
namespace {

// client-go: resourcelock's requests time out after half the renew deadline, and never sooner than
// after a second, so that a second try still fits.
constexpr Duration kLeastTimeout = Seconds(1);
// client-go's JitterFactor: who waits for the Lease looks after 1 to 2.2 retry periods.
constexpr uint64_t kJitterTenths = 12;
// A released Lease is written with this duration, as client-go does.
constexpr int64_t kReleasedSeconds = 1;
// Conflicts that Release bears with: each means that somebody wrote in between.
constexpr int kReleaseTries = 3;

// What a Lease says of its holder: all by which one sees that it was renewed.
struct Record {
  std::string holder, acquired, renewed;
  int64_t seconds = 0, transitions = 0;
  friend bool operator==(const Record&, const Record&) = default;
};

Record RecordOf(const Json& lease) {
  Record record;
  record.holder = json::Text(lease, {"spec", "holderIdentity"});
  record.acquired = json::Text(lease, {"spec", "acquireTime"});
  record.renewed = json::Text(lease, {"spec", "renewTime"});
  // Whatever stands there: beyond a day nothing changes, and the product stays in range.
  static constexpr int64_t kMostSeconds = 86'400;
  record.seconds = std::clamp<int64_t>(json::Number(lease, {"spec", "leaseDurationSeconds"}, 0), 0,
                                       kMostSeconds);
  record.transitions = json::Number(lease, {"spec", "leaseTransitions"}, 0);
  return record;
}

// Whole seconds, rounded up: others must not think it shorter than we do.
int64_t SecondsOf(Duration duration) { return (duration.ns + Seconds(1).ns - 1) / Seconds(1).ns; }

// The object as the server has it, but for its spec; {} when the text is none.
Json LeaseOf(const Response& response) {
  Json lease = json::ParseOrNull(response.body);
  return lease.is_object() ? lease : Json::object();
}

Request UrgentRequest(Method method, std::string path, Duration timeout) {
  Request request;
  request.method = method;
  request.path = std::move(path);
  request.timeout = timeout;
  request.urgent = true;
  return request;
}

}  // namespace

struct LeaderElector::Impl {
  Impl(Transport& t, LeaseOptions o, Handlers h)
      : transport(t), options(std::move(o)), handlers(std::move(h)) {}

  Transport& transport;
  const LeaseOptions options;
  const Handlers handlers;

  bool running = false;
  bool leading = false;
  Time turn_from;     // the start of the turn under way
  Time renewed_from;  // the start of the last renewal that got through
  std::string last_error;
  bool troubled = false;  // told, and not yet that it is over

  Json lease = Json::object();  // as last read or written
  bool fresh = false;           // `lease` is what the server has, as far as we know
  Record observed;
  Time observed_at;  // when `observed` was first seen, on our clock
  bool holder_told = false;
  std::string told_holder;

  Transport::Id call = 0, next = 0, deadline = 0;
  bool writing = false;  // of `call`: the server may have taken it, answer or not

  int release_tries = 0;
  std::function<void()> released;

  // Tells a handler, and whether we are still there and about the same afterwards.
  uint64_t epoch = 0;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  template <class Handler, class... Args>
  bool Tell(const Handler& handler, const Args&... args);

  void Cycle();
  void Read();
  void OnRead(const Response& response);
  void Write(const Record& record, bool create, std::function<void(const Response&, Time)> done);
  void TryWrite(bool create);
  void OnWritten(const Response& response, Time started);
  bool Observe(const Json& now);
  bool Trouble(const Response& response, std::string_view verb);
  void Elected(Time started);
  void Lose(const std::string& why);
  void ArmDeadline();
  void Later();
  void Drop();
  void ReleaseStep();
  void OnReleased(const Response& response);
  void ReleaseOver();
  [[nodiscard]] bool Expired() const;
  [[nodiscard]] Time Deadline() const { return renewed_from + options.renew_deadline; }
  [[nodiscard]] Duration Timeout() const;
  [[nodiscard]] std::string Path() const { return ObjectPath(kLeases, options.ns, options.name); }
};

// False when the handler destroyed us, released the Lease or took another turn.
template <class Handler, class... Args>
bool LeaderElector::Impl::Tell(const Handler& handler, const Args&... args) {
  if (!handler) return true;
  const uint64_t before = epoch;
  const std::shared_ptr<bool> still = alive;
  handler(args...);
  return *still && epoch == before;
}

// --- acquiring and renewing

void LeaderElector::Impl::Cycle() {
  turn_from = transport.Now();
  if (leading && fresh) {
    TryWrite(false);
  } else {
    Read();
  }
}

void LeaderElector::Impl::Read() {
  writing = false;
  call =
      transport.Send(UrgentRequest(Method::kGet, Path(), Timeout()), [this](Response&& response) {
        call = 0;
        OnRead(response);
      });
}

void LeaderElector::Impl::OnRead(const Response& response) {
  const ApiError error = ErrorOf(response, "get", kLeases, options.ns + "/" + options.name);
  if (error.failure == Failure::kNotFound) {
    lease = Json::object();
    if (Observe(lease)) TryWrite(true);
    return;
  }
  if (!error.ok()) {
    if (Trouble(response, "get")) Later();
    return;
  }
  if (!Observe(LeaseOf(response))) return;
  const bool ours = observed.holder == options.identity;
  if (leading && !ours && !observed.holder.empty()) {
    return Lose("\"" + observed.holder + "\" holds the Lease now");
  }
  if (ours || observed.holder.empty() || Expired()) {
    TryWrite(false);
  } else {
    Later();
  }
}

// Whether nobody renewed the Lease for its whole duration, by our clock.
bool LeaderElector::Impl::Expired() const {
  return transport.Now() >= observed_at + Seconds(observed.seconds);
}

void LeaderElector::Impl::Write(const Record& record, bool create,
                                std::function<void(const Response&, Time)> done) {
  Json body = lease;
  body["apiVersion"] = "coordination.k8s.io/v1";
  body["kind"] = "Lease";
  if (!body["metadata"].is_object()) body["metadata"] = Json::object();
  body["metadata"]["name"] = options.name;
  body["metadata"]["namespace"] = options.ns;
  for (const auto& [key, value] : options.annotations) body["metadata"]["annotations"][key] = value;
  if (!body["spec"].is_object()) body["spec"] = Json::object();
  body["spec"]["holderIdentity"] = record.holder;
  body["spec"]["leaseDurationSeconds"] = record.seconds;
  body["spec"]["acquireTime"] = record.acquired;
  body["spec"]["renewTime"] = record.renewed;
  body["spec"]["leaseTransitions"] = record.transitions;
  Request request = UrgentRequest(create ? Method::kPost : Method::kPut,
                                  create ? CollectionPath(kLeases, options.ns) : Path(), Timeout());
  request.content_type = kJsonType;
  request.body = json::Dump(body);
  fresh = false;  // until the answer says what the server has
  writing = true;
  call = transport.Send(std::move(request), [this, done = std::move(done),
                                             started = transport.Now()](Response&& response) {
    call = 0;
    writing = false;
    // A copy, as the handlers that `done` calls may destroy us and this callback with us.
    const auto then = done;
    then(response, started);
  });
}

void LeaderElector::Impl::TryWrite(bool create) {
  const std::string now = FormatRfc3339Micro(transport.Wall());
  Record record{.holder = options.identity,
                .acquired = now,
                .renewed = now,
                .seconds = SecondsOf(options.duration),
                .transitions = create ? 0 : observed.transitions + 1};
  if (!create && observed.holder == options.identity) {
    record.transitions = observed.transitions;
    if (!observed.acquired.empty()) record.acquired = observed.acquired;
  }
  Write(record, create, [this, create](const Response& response, Time started) {
    const ApiError error =
        ErrorOf(response, create ? "create" : "update", kLeases, options.ns + "/" + options.name);
    if (error.ok()) return OnWritten(response, started);
    // Somebody wrote in between, or it is gone: the next look says which.
    const bool moved = error.failure == Failure::kConflict || error.failure == Failure::kNotFound;
    // A Lease that cannot even be created has no namespace to lie in.
    if (create && error.failure == Failure::kNotFound) {
      if (Trouble(response, "create")) Later();
      return;
    }
    if (moved && leading) return Read();
    if (moved) return Later();
    if (Trouble(response, create ? "create" : "update")) Later();
  });
}

void LeaderElector::Impl::OnWritten(const Response& response, Time started) {
  const Json written = LeaseOf(response);
  fresh = !json::Text(written, {"metadata", "resourceVersion"}).empty();
  // An answer that took longer than the deadline proves nothing any more: after a pause of the
  // process it may even be older than another's turn.
  if (transport.Now() >= started + options.renew_deadline) {
    fresh = false;
    if (leading) return Lose("the answer to the last renewal came too late");
    return Later();
  }
  if (leading && transport.Now() >= Deadline()) {
    fresh = false;
    return Lose("no renewal got through in time");
  }
  const bool was_leading = leading;
  // Before anything is told: what was written counts from its start.
  renewed_from = started;
  leading = true;
  last_error.clear();
  if (!Observe(written)) return;
  ArmDeadline();
  Later();
  if (!was_leading) Elected(started);
}

void LeaderElector::Impl::Elected(Time started) {
  Log(LogLevel::kInfo, "lease_acquired",
      {{"lease", options.ns + "/" + options.name},
       {"identity", options.identity},
       {"transitions", observed.transitions},
       {"took_ms", (transport.Now() - started).ns / Millis(1).ns}});
  Tell(handlers.elected);
}

// Keeps what the Lease says now. False when a handler ended our turn.
bool LeaderElector::Impl::Observe(const Json& now) {
  lease = now;
  fresh = !json::Text(now, {"metadata", "resourceVersion"}).empty();
  Record record = RecordOf(now);
  if (record != observed || observed_at == Time{}) {
    observed = std::move(record);
    observed_at = transport.Now();
  }
  if (std::exchange(troubled, false) && !Tell(handlers.trouble, ApiError())) return false;
  if (holder_told && told_holder == observed.holder) return true;
  holder_told = true;
  told_holder = observed.holder;
  return Tell(handlers.observed, std::string_view(told_holder));
}

bool LeaderElector::Impl::Trouble(const Response& response, std::string_view verb) {
  const ApiError error = ErrorOf(response, verb, kLeases, options.ns + "/" + options.name);
  last_error = error.message;
  troubled = true;
  return Tell(handlers.trouble, error);
}

void LeaderElector::Impl::Lose(const std::string& why) {
  leading = false;
  fresh = false;
  Drop();
  Log(LogLevel::kWarning, "lease_lost", {{"lease", options.ns + "/" + options.name}, {"why", why}});
  Later();
  Tell(handlers.lost, std::string_view(why));
}

void LeaderElector::Impl::ArmDeadline() {
  transport.Cancel(std::exchange(deadline, 0));
  const Duration left = Deadline() - transport.Now();
  deadline = transport.After(left, [this] {
    deadline = 0;
    if (leading) {
      Lose("no renewal got through within " + FormatGoDuration(options.renew_deadline) +
           (last_error.empty() ? "" : "; the last one: " + last_error));
    }
  });
}

// The next turn. While leading in even steps from start to start, so that a request that hung is
// followed at once while the deadline allows it; with jitter while waiting.
void LeaderElector::Impl::Later() {
  Duration wait = options.retry_period;
  if (leading) {
    wait = turn_from + options.retry_period - transport.Now();
  } else {
    const auto tenth = static_cast<uint64_t>(std::max<int64_t>(options.retry_period.ns / 10, 1));
    wait.ns += static_cast<int64_t>(transport.Random() % (tenth * kJitterTenths));
  }
  transport.Cancel(std::exchange(next, 0));
  next = transport.After(std::max(wait, Duration{}), [this] {
    next = 0;
    Cycle();
  });
}

void LeaderElector::Impl::Drop() {
  ++epoch;
  transport.Cancel(std::exchange(call, 0));
  transport.Cancel(std::exchange(next, 0));
  transport.Cancel(std::exchange(deadline, 0));
}

Duration LeaderElector::Impl::Timeout() const {
  const Duration half{options.renew_deadline.ns / 2};
  return std::min(options.renew_deadline, std::max(half, kLeastTimeout));
}

// --- giving it back

void LeaderElector::Impl::ReleaseStep() {
  if (release_tries++ >= kReleaseTries) return ReleaseOver();
  if (!fresh) {
    writing = false;
    call =
        transport.Send(UrgentRequest(Method::kGet, Path(), Timeout()), [this](Response&& answer) {
          call = 0;
          if (!answer.ok()) return ReleaseOver();
          lease = LeaseOf(answer);
          observed = RecordOf(lease);
          fresh = true;
          if (observed.holder != options.identity) return ReleaseOver();
          --release_tries;  // only writes count
          ReleaseStep();
        });
    return;
  }
  const std::string now = FormatRfc3339Micro(transport.Wall());
  const Record record{.holder = "",
                      .acquired = now,
                      .renewed = now,
                      .seconds = kReleasedSeconds,
                      .transitions = observed.transitions};
  Write(record, false, [this](const Response& response, Time) { OnReleased(response); });
}

void LeaderElector::Impl::OnReleased(const Response& response) {
  const ApiError error = ErrorOf(response, "update", kLeases, options.ns + "/" + options.name);
  if (error.failure == Failure::kConflict) return ReleaseStep();
  Log(error.ok() ? LogLevel::kInfo : LogLevel::kWarning, "lease_released",
      {{"lease", options.ns + "/" + options.name}, {"error", error.message}});
  ReleaseOver();
}

void LeaderElector::Impl::ReleaseOver() {
  transport.Cancel(std::exchange(deadline, 0));
  transport.Cancel(std::exchange(call, 0));
  if (const auto done = std::exchange(released, nullptr)) done();
}

// --- the public side

LeaderElector::LeaderElector(Transport& transport, LeaseOptions options, Handlers handlers)
    : impl_(std::make_unique<Impl>(transport, std::move(options), std::move(handlers))) {}

LeaderElector::~LeaderElector() {
  impl_->Drop();
  *impl_->alive = false;
}

void LeaderElector::Start() {
  if (std::exchange(impl_->running, true)) return;
  impl_->Cycle();
}

void LeaderElector::Rest() {
  impl_->leading = false;
  impl_->running = true;  // Start does nothing any more
  impl_->Drop();
}

void LeaderElector::Release(std::function<void()> done) {
  Impl& impl = *impl_;
  // A write whose answer is not here may have made the Lease ours.
  const bool maybe_ours =
      impl.leading || impl.writing || impl.observed.holder == impl.options.identity;
  impl.fresh = impl.fresh && !impl.writing;
  impl.leading = false;
  impl.running = true;  // Start does nothing any more
  impl.Drop();
  impl.released = std::move(done);
  impl.release_tries = 0;
  // Never from within this call, and not for longer than the Lease could matter.
  impl.deadline =
      impl.transport.After(maybe_ours ? impl.options.renew_deadline : Duration{}, [&impl] {
        impl.deadline = 0;
        impl.ReleaseOver();
      });
  if (maybe_ours) impl.ReleaseStep();
}

bool LeaderElector::leading() const { return remaining() > Duration{}; }

std::string LeaderElector::uid() const { return json::Text(impl_->lease, {"metadata", "uid"}); }

Duration LeaderElector::remaining() const {
  const Time now = impl_->transport.Now();
  // Past the deadline we are about to say that it is lost, whatever is left of the Lease.
  if (!impl_->leading || now >= impl_->Deadline()) return {};
  return std::max(Duration{}, impl_->renewed_from + impl_->options.duration - now);
}

// --- another's Lease

namespace {

struct HolderWatch {
  Transport& transport;
  std::string ns, name;
  Duration watch_for;
  std::function<void(std::string, const ApiError&)> done;
  Record first;
  bool looked = false;
};

void Look(const std::shared_ptr<HolderWatch>& watch) {
  Request request =
      UrgentRequest(Method::kGet, ObjectPath(kLeases, watch->ns, watch->name), kRequestTimeout);
  watch->transport.Send(std::move(request), [watch](Response&& response) {
    const ApiError error = ErrorOf(response, "get", kLeases, watch->ns + "/" + watch->name);
    if (error.failure == Failure::kNotFound) return watch->done("", {});
    if (!error.ok()) return watch->done("", error);
    Record record = RecordOf(LeaseOf(response));
    if (record.holder.empty()) return watch->done("", {});
    if (watch->looked) {
      const bool moved =
          record.renewed != watch->first.renewed || record.holder != watch->first.holder;
      return watch->done(moved ? record.holder : "", {});
    }
    watch->looked = true;
    watch->first = std::move(record);
    const Duration wait = std::max(watch->watch_for, Seconds(watch->first.seconds));
    watch->transport.After(wait, [watch] { Look(watch); });
  });
}

}  // namespace

void FindActiveHolder(Transport& transport, const std::string& ns, const std::string& name,
                      Duration watch_for,
                      std::function<void(std::string holder, const ApiError&)> done) {
  Look(std::make_shared<HolderWatch>(
      HolderWatch{transport, ns, name, watch_for, std::move(done), {}, false}));
}

}  // namespace hopwise::kube
