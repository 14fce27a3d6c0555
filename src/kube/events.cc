#include "kube/events.h"

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/json.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/log.h"
#include "kube/backoff.h"
#include "kube/errors.h"
#include "kube/resources.h"

namespace hopwise::kube {

using json::Json;
namespace {

// client-go's record: the correlator's caches, its aggregation, its spam filter, and how often one
// Event is tried.
constexpr size_t kMostCached = 4096;
constexpr size_t kMostSimilar = 10;
constexpr Duration kSimilarWithin = Seconds(600);
constexpr int64_t kSpamBurst = 25;
constexpr Duration kSpamRefill = Seconds(300);
constexpr int kMostTries = 12;
constexpr std::string_view kCombined = "(combined from similar events): ";
// The same again within this counts up.
constexpr Duration kSameWithin = Seconds(600);
// client-go waits 10 s between tries, at random less before the second. We begin sooner: what holds
// an Event up is mostly a server that is busy for a moment.
constexpr Duration kFirstWait = Millis(500);
constexpr Duration kMostWait = Seconds(30);
// apimachinery's limit on an Event's note; the server refuses longer ones in the newer API.
constexpr size_t kMostMessage = 1024;
// apimachinery: DNS1123SubdomainMaxLength, of every object's name.
constexpr size_t kMostName = 253;

// Values by key, of which the ones not used for longest go beyond kMostCached.
template <class Value>
class Recent {
 public:
  // Makes one if there is none. Good until the next call.
  Value& At(const std::string& key) {
    const auto found = by_key_.find(key);
    if (found != by_key_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return found->second->second;
    }
    order_.emplace_front(key, Value{});
    by_key_[key] = order_.begin();
    if (order_.size() > kMostCached) {
      by_key_.erase(order_.back().first);
      order_.pop_back();
    }
    return order_.front().second;
  }

 private:
  std::list<std::pair<std::string, Value>> order_;  // the latest first
  std::unordered_map<std::string, typename std::list<std::pair<std::string, Value>>::iterator>
      by_key_;
};

// At most `bytes`, and no character cut in two.
std::string_view CutUtf8(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) --bytes;
  return text.substr(0, bytes);
}

std::string NameOf(std::string_view object, uint64_t number) {
  const std::string end = fmt::format(".{:x}", number);
  object = object.substr(0, kMostName - end.size());
  // What stands before a dot must be a letter or a digit.
  while (!object.empty() && (object.back() == '.' || object.back() == '-')) object.remove_suffix(1);
  return std::string(object) + end;
}

// Parts that cannot run into each other.
std::string JoinKey(std::initializer_list<std::string_view> parts) {
  std::string key;
  for (const std::string_view part : parts) {
    key.append(part).append(1, '\0');
  }
  return key;
}

// One Event object: written once, counted up after that.
struct Series {
  ObjectReference about;
  std::string name, reason, message;
  bool warning = false, important = false;
  Time first, last;    // as the world has it
  Time seen;           // the last time again, on our clock
  uint64_t order = 0;  // of its place in the queue
  int64_t count = 1;
  // What the server has, as far as we know; 0: it was never written.
  int64_t written_count = 0;
  int64_t posted_count = 0;  // of the first POST, whose answer may have been lost
  bool queued = false;       // waits or is under way
  bool dead = false;         // given up or dropped: the same again begins anew
  bool counted = false;      // in Counts::written
  int tries = 0;
  std::function<void()> then;  // once its fate is known
};
using SeriesRef = std::shared_ptr<Series>;

void TellFate(Series& series) {
  if (const auto then = std::exchange(series.then, nullptr)) then();
}

struct Similar {
  std::set<uint64_t> messages;  // by their hashes
  Time last;
};

// A token bucket; what it holds is kept as the time that would have filled it.
struct Bucket {
  bool used = false;
  Duration filled;
  Time at;
};

}  // namespace

struct EventRecorder::Impl {
  Impl(Transport& t, Options o) : transport(t), options(std::move(o)) {}

  Transport& transport;
  const Options options;
  Counts counts;

  // Those that wait, in order; the important ones apart, as they are never dropped.
  std::deque<SeriesRef> important, others;
  std::set<Transport::Id> calls, timers;
  uint64_t order = 0;
  Time last_name;  // makes names unique

  Recent<SeriesRef> same;
  Recent<Similar> similar;
  Recent<Bucket> buckets;

  // Nothing is sent before: the server does not answer, or asked for it.
  bool paused = false;
  Backoff pause{kFirstWait, kMostWait};
  std::set<std::string> logged;  // kinds of failures

  struct Flusher {
    std::function<void()> done;
    Transport::Id timer = 0;
  };
  std::vector<Flusher> flushers;

  bool TakeToken(const std::string& object_key);
  SeriesRef Make(const ObjectReference& about, const EventText& text);
  void Fold(const ObjectReference& about, const EventText& text);
  void Enqueue(const SeriesRef& series);
  void Requeue(const SeriesRef& series);
  void MakeRoom();
  void Lose(Series& series, uint64_t& as);
  SeriesRef Pop();
  void Pump();
  void Post(const SeriesRef& series);
  void Patch(const SeriesRef& series);
  void Send(const SeriesRef& series, Request request, std::string_view verb);
  void OnAnswer(const SeriesRef& series, const Response& response, std::string_view verb,
                int64_t count);
  void OnWritten(const SeriesRef& series, int64_t count);
  void Retry(const SeriesRef& series, const ApiError& error);
  void GiveUp(const SeriesRef& series, const ApiError& error);
  void PauseAll(const ApiError& error);
  Transport::Id After(Duration delay, std::function<void()> run);
  void CheckFlushed();
  [[nodiscard]] bool idle() const { return counts.waiting == 0; }
  [[nodiscard]] std::string BodyOf(const Series& series) const;
};

namespace {

std::string_view NamespaceOf(const ObjectReference& about) {
  // client-go puts Events of what has no namespace there.
  return about.ns.empty() ? std::string_view("default") : std::string_view(about.ns);
}

std::string ObjectKey(const ObjectReference& about) {
  return JoinKey({about.api_version, about.kind, about.ns, about.name, about.uid});
}

}  // namespace

// --- what is told

// 25 at once for each object, and one more every 5 min.
bool EventRecorder::Impl::TakeToken(const std::string& object_key) {
  Bucket& bucket = buckets.At(object_key);
  const Time now = transport.Now();
  const Duration full{kSpamRefill.ns * kSpamBurst};
  if (!std::exchange(bucket.used, true)) {
    bucket.filled = full;
  } else {
    const Duration since = std::min(now - bucket.at, full);
    bucket.filled = std::min(full, Duration{bucket.filled.ns + since.ns});
  }
  bucket.at = now;
  if (bucket.filled < kSpamRefill) return false;
  bucket.filled.ns -= kSpamRefill.ns;
  return true;
}

SeriesRef EventRecorder::Impl::Make(const ObjectReference& about, const EventText& text) {
  auto series = std::make_shared<Series>();
  series->about = about;
  series->reason = text.reason;
  series->message = CutUtf8(text.message, kMostMessage);
  series->warning = text.warning;
  series->important = text.important;
  series->first = series->last = transport.Wall();
  series->seen = transport.Now();
  if (text.important && !text.key.empty()) {
    series->name = NameOf(about.name, StableHash(text.key));
  } else {
    // Never the same twice, should the clock stand still or step back.
    last_name = std::max(transport.Wall(), Time{last_name.ns + 1});
    series->name = NameOf(about.name, static_cast<uint64_t>(last_name.ns));
  }
  return series;
}

// Writes one that is not important, anew or as one more of another.
void EventRecorder::Impl::Fold(const ObjectReference& about, const EventText& text) {
  const std::string_view type = text.warning ? "Warning" : "Normal";
  const std::string object = ObjectKey(about);
  if (!TakeToken(object)) {
    ++counts.dropped;
    return;
  }
  EventText told = text;
  told.message = CutUtf8(text.message, kMostMessage);
  std::string key = JoinKey({object, type, text.reason});
  Similar& alike = similar.At(key);
  const Time now = transport.Now();
  if (now - alike.last > kSimilarWithin) alike.messages.clear();
  alike.last = now;
  const uint64_t hash = StableHash(told.message);
  if (alike.messages.contains(hash) || alike.messages.size() + 1 < kMostSimilar) {
    alike.messages.insert(hash);
    key += "=" + told.message;
  } else {
    told.message = CutUtf8(std::string(kCombined) + text.message, kMostMessage);
  }

  SeriesRef& known = same.At(key);
  if (known == nullptr || known->dead || now - known->seen > kSameWithin) {
    known = Make(about, told);
    return Enqueue(known);
  }
  ++known->count;
  known->last = transport.Wall();
  known->seen = now;
  known->message = told.message;
  ++counts.counted_up;
  if (!known->queued) Enqueue(known);
}

// --- the queue

void EventRecorder::Impl::Enqueue(const SeriesRef& series) {
  series->queued = true;
  series->tries = 0;
  series->order = ++order;
  ++counts.waiting;
  (series->important ? important : others).push_back(series);
  MakeRoom();
  Pump();
}

// Back to where it was: before all that came later.
void EventRecorder::Impl::Requeue(const SeriesRef& series) {
  std::deque<SeriesRef>& queue = series->important ? important : others;
  const auto at = std::find_if(queue.begin(), queue.end(), [&](const SeriesRef& other) {
    return other->order > series->order;
  });
  queue.insert(at, series);
  MakeRoom();
}

void EventRecorder::Impl::MakeRoom() {
  while (others.size() > options.most_waiting) {
    const SeriesRef oldest = std::move(others.front());
    others.pop_front();
    oldest->dead = oldest->written_count == 0;
    Lose(*oldest, counts.dropped);
  }
}

// What of it the server does not have counts as `as`, and as nothing else.
void EventRecorder::Impl::Lose(Series& series, uint64_t& as) {
  const auto lost = static_cast<uint64_t>(series.count - series.written_count);
  as += lost;
  counts.counted_up -= series.counted ? lost : lost - 1;
  series.count = series.written_count;
  series.queued = false;
  --counts.waiting;
}

SeriesRef EventRecorder::Impl::Pop() {
  const bool take_other =
      important.empty() || (!others.empty() && others.front()->order < important.front()->order);
  std::deque<SeriesRef>* queue = take_other ? &others : &important;
  SeriesRef series = std::move(queue->front());
  queue->pop_front();
  return series;
}

void EventRecorder::Impl::Pump() {
  const bool behind = options.yields && counts.waiting < kMostBehind && options.yields();
  const auto at_once = static_cast<size_t>(behind ? kAtOnceBehind : options.at_once);
  while (!paused && calls.size() < at_once && !(important.empty() && others.empty())) {
    const SeriesRef series = Pop();
    if (series->written_count == 0) {
      Post(series);
    } else {
      Patch(series);
    }
  }
}

// --- the requests

std::string EventRecorder::Impl::BodyOf(const Series& series) const {
  Json about = {{"apiVersion", series.about.api_version},
                {"kind", series.about.kind},
                {"name", series.about.name}};
  if (!series.about.ns.empty()) about["namespace"] = series.about.ns;
  if (!series.about.uid.empty()) about["uid"] = series.about.uid;
  return json::Dump(
      {{"apiVersion", "v1"},
       {"kind", "Event"},
       {"metadata", {{"name", series.name}, {"namespace", NamespaceOf(series.about)}}},
       {"involvedObject", std::move(about)},
       {"reason", series.reason},
       {"message", series.message},
       {"type", series.warning ? "Warning" : "Normal"},
       {"count", series.count},
       {"firstTimestamp", FormatRfc3339(series.first)},
       {"lastTimestamp", FormatRfc3339(series.last)},
       {"source", {{"component", options.component}}},
       {"reportingComponent", options.component},
       {"reportingInstance", options.instance}});
}

void EventRecorder::Impl::Post(const SeriesRef& series) {
  if (series->posted_count == 0) series->posted_count = series->count;
  Request request;
  request.method = Method::kPost;
  request.path = CollectionPath(kEvents, NamespaceOf(series->about));
  request.content_type = kJsonType;
  request.body = BodyOf(*series);
  Send(series, std::move(request), "create");
}

void EventRecorder::Impl::Patch(const SeriesRef& series) {
  Request request;
  request.method = Method::kPatch;
  request.path = ObjectPath(kEvents, NamespaceOf(series->about), series->name);
  request.content_type = kMergePatch;
  request.body = json::Dump({{"count", series->count},
                             {"lastTimestamp", FormatRfc3339(series->last)},
                             {"message", series->message}});
  Send(series, std::move(request), "patch");
}

void EventRecorder::Impl::Send(const SeriesRef& series, Request request, std::string_view verb) {
  const auto id = std::make_shared<Transport::Id>(0);
  *id = transport.Send(std::move(request),
                       [this, id, series, verb, count = series->count](Response&& response) {
                         calls.erase(*id);
                         OnAnswer(series, response, verb, count);
                       });
  calls.insert(*id);
}

void EventRecorder::Impl::OnAnswer(const SeriesRef& series, const Response& response,
                                   std::string_view verb, int64_t count) {
  const ApiError error = ErrorOf(response, verb, kEvents,
                                 std::string(NamespaceOf(series->about)) + "/" + series->name);
  // Ours: an earlier try whose answer was lost, or another's that was told the same by its key.
  const bool exists = verb == "create" && error.reason == "AlreadyExists";
  if (error.ok() || exists) {
    OnWritten(series, exists ? series->posted_count : count);
  } else if (verb == "patch" && error.failure == Failure::kNotFound) {
    // The server forgets Events after an hour.
    series->written_count = series->posted_count = 0;
    if (std::exchange(series->counted, false)) --counts.written;
    Requeue(series);
  } else if (error.retriable()) {
    Retry(series, error);
  } else {
    GiveUp(series, error);
  }
  Pump();
  CheckFlushed();
}

void EventRecorder::Impl::OnWritten(const SeriesRef& series, int64_t count) {
  if (!std::exchange(series->counted, true)) ++counts.written;
  series->written_count = count;
  pause.Reset();
  --counts.waiting;
  series->queued = false;
  // Counted up while it was under way.
  if (series->count > count) Enqueue(series);
  TellFate(*series);
}

// A server that is away or busy holds all up; another failure only the Event that met it.
void EventRecorder::Impl::Retry(const SeriesRef& series, const ApiError& error) {
  const bool all = error.failure == Failure::kUnreachable || error.failure == Failure::kThrottled;
  // For such a reason an important one is not given up: there are only as many as there were binds
  // and evictions, and few of those happen then.
  if (!(all && series->important)) ++series->tries;
  if (series->tries >= kMostTries) return GiveUp(series, error);
  if (all) {
    PauseAll(error);
    return Requeue(series);
  }
  Backoff wait(kFirstWait, kMostWait);
  for (int i = 1; i < series->tries; ++i) wait.Next(0);
  const Duration delay = std::max(wait.Next(transport.Random()), error.retry_after);
  After(delay, [this, series] {
    Requeue(series);
    Pump();
  });
}

void EventRecorder::Impl::GiveUp(const SeriesRef& series, const ApiError& error) {
  series->dead = true;
  Lose(*series, counts.failed);
  const std::string kind = std::to_string(error.status) + " " + error.reason;
  if (logged.insert(kind).second) {
    Log(LogLevel::kWarning, "event_not_written",
        {{"error", error.message},
         {"about", series->about.kind + " " + series->about.ns + "/" + series->about.name},
         {"reason", series->reason},
         {"more", "further ones of this kind are only counted"}});
  }
  TellFate(*series);
}

void EventRecorder::Impl::PauseAll(const ApiError& error) {
  if (paused) return;
  paused = true;
  After(std::max(pause.Next(transport.Random()), error.retry_after), [this] {
    paused = false;
    Pump();
  });
}

// One of our timers, so that our end ends it.
Transport::Id EventRecorder::Impl::After(Duration delay, std::function<void()> run) {
  const auto id = std::make_shared<Transport::Id>(0);
  *id = transport.After(delay, [this, id, run = std::move(run)] {
    timers.erase(*id);
    run();
  });
  timers.insert(*id);
  return *id;
}

void EventRecorder::Impl::CheckFlushed() {
  if (!idle()) return;
  // Taken out first: what is called may flush again, or destroy us.
  std::vector<Flusher> over = std::exchange(flushers, {});
  for (const Flusher& flusher : over) {
    transport.Cancel(flusher.timer);
    timers.erase(flusher.timer);
  }
  for (const Flusher& flusher : over) flusher.done();
}

// --- the public side

EventRecorder::EventRecorder(Transport& transport, Options options)
    : impl_(std::make_unique<Impl>(transport, std::move(options))) {}

EventRecorder::~EventRecorder() {
  for (const Transport::Id id : impl_->calls) impl_->transport.Cancel(id);
  for (const Transport::Id id : impl_->timers) impl_->transport.Cancel(id);
}

void EventRecorder::Record(const ObjectReference& about, const EventText& text) {
  if (!text.important) return impl_->Fold(about, text);
  impl_->Enqueue(impl_->Make(about, text));
}

void EventRecorder::RecordFirst(const ObjectReference& about, const EventText& text,
                                std::function<void()> then) {
  HOPWISE_CHECK(text.important);
  const SeriesRef series = impl_->Make(about, text);
  series->then = std::move(then);
  impl_->Enqueue(series);
}

EventRecorder::Counts EventRecorder::counts() const { return impl_->counts; }

void EventRecorder::Flush(Duration limit, std::function<void()> done) {
  Impl& impl = *impl_;
  const bool idle = impl.idle();
  impl.flushers.push_back({std::move(done), 0});
  const auto id = std::make_shared<Transport::Id>(0);
  *id = impl.After(idle ? Duration{} : limit, [&impl, id] {
    const auto at =
        std::find_if(impl.flushers.begin(), impl.flushers.end(),
                     [&](const Impl::Flusher& flusher) { return flusher.timer == *id; });
    if (at == impl.flushers.end()) return;
    const auto then = std::move(at->done);
    impl.flushers.erase(at);
    then();
  });
  impl.flushers.back().timer = *id;
}

}  // namespace hopwise::kube
