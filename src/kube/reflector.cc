#include "kube/reflector.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include <simdjson.h>

#include "api/json.h"
#include "base/log.h"
#include "kube/backoff.h"

namespace hopwise::kube {

using json::Json;
namespace {

// Longer than any object the API server stores (etcd's request limit is 1.5 MiB; JSON may take
// several times the stored form): a line beyond it has lost its end.
constexpr size_t kMaxLine = size_t{64} << 20U;
// A watch that ends sooner is not begun again at once; client-go calls it a very short watch.
constexpr Duration kShortWatch = Seconds(1);
// How many times a kind that has objects must be reported absent before they are told as deleted:
// one odd answer of a proxy or of a starting server should not empty the view.
constexpr int kMissingAnswers = 2;

// What is needed of an object that is not decoded, or cannot be.
struct Head {
  std::string ns, name, uid, version;
  bool initial_events_end = false;
};

Head HeadOf(const Json& object, const Resource& resource) {
  Head head;
  head.name = json::Text(object, {"metadata", "name"});
  head.uid = json::Text(object, {"metadata", "uid"});
  head.version = json::Text(object, {"metadata", "resourceVersion"});
  if (resource.namespaced) head.ns = json::Text(object, {"metadata", "namespace"});
  head.initial_events_end =
      json::Text(object, {"metadata", "annotations", "k8s.io/initial-events-end"}) == "true";
  return head;
}

std::string KeyOf(std::string_view ns, std::string_view name) {
  std::string key;
  key.reserve(ns.size() + 1 + name.size());
  key.append(ns).append(1, '/').append(name);
  return key;
}

// An object of which only the identity is known, of the resource's own type if that decodes.
api::Decoded Identity(api::Decoder& decoder, const Resource& resource, const Head& head) {
  api::Decoded out;
  out.api_version = ApiVersionOf(resource);
  out.kind = resource.kind;
  const Json json = {
      {"apiVersion", out.api_version},
      {"kind", out.kind},
      {"metadata", {{"name", head.name}, {"namespace", head.ns}, {"uid", head.uid}}}};
  if (auto decoded = decoder.Decode(json::Dump(json))) return *std::move(decoded);
  api::ObjectMeta meta;
  meta.ns = head.ns;
  meta.name = head.name;
  meta.uid = head.uid;
  out.object = api::Unknown{std::move(meta), ""};
  return out;
}

// One line of a watch: {"type":"ADDED","object":{…}}.
struct Line {
  std::string_view type, object;
};

class LineReader {
 public:
  // The views are good until the next call. `text` may grow in capacity.
  std::optional<Line> Read(std::string& text) {
    text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
    simdjson::ondemand::document document;
    simdjson::ondemand::object root;
    if (parser_.iterate(text.data(), text.size(), text.capacity()).get(document) !=
            simdjson::SUCCESS ||
        document.get_object().get(root) != simdjson::SUCCESS) {
      return std::nullopt;
    }
    Line line;
    for (auto result : root) {
      simdjson::ondemand::field field;
      if (std::move(result).get(field) != simdjson::SUCCESS) return std::nullopt;
      if (!ReadField(field, line)) return std::nullopt;
    }
    // Text behind the object means that a line break was lost.
    if (document.current_location().error() == simdjson::SUCCESS) return std::nullopt;
    if (line.type.empty() || line.object.empty()) return std::nullopt;
    return line;
  }

 private:
  static bool ReadField(simdjson::ondemand::field& field, Line& line) {
    const std::string_view key = RawKey(field);
    if (key == "type") return field.value().get_string().get(line.type) == simdjson::SUCCESS;
    if (key != "object") return true;
    simdjson::ondemand::object object;
    return field.value().get_object().get(object) == simdjson::SUCCESS &&
           object.raw_json().get(line.object) == simdjson::SUCCESS;
  }
  static std::string_view RawKey(simdjson::ondemand::field& field) {
    const char* begin = field.key().raw();
    size_t length = 0;
    while (begin[length] != '"' && begin[length] != '\\' && length < sizeof("object")) ++length;
    return {begin, length};
  }

  simdjson::ondemand::parser parser_;
};

// The continue token of a page. It stands before the items, so that they need not be read for it.
class TokenReader {
 public:
  // `text` may grow in capacity. "" for the last page and for what is no list.
  std::string Read(std::string& text) {
    text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
    simdjson::ondemand::document document;
    std::string_view token;
    if (parser_.iterate(text.data(), text.size(), text.capacity()).get(document) !=
            simdjson::SUCCESS ||
        document["metadata"]["continue"].get_string().get(token) != simdjson::SUCCESS) {
      return "";
    }
    return std::string(token);
  }

 private:
  simdjson::ondemand::parser parser_;
};

}  // namespace

struct Reflector::Impl : std::enable_shared_from_this<Reflector::Impl> {
  struct Known {
    std::string uid;
    uint32_t list = 0;  // the list that saw it last
  };
  enum class Phase : uint8_t { kStopped, kStreamingList, kPages, kWatch, kPause };

  Impl(Transport& t, const Resource& r, Options o, Handlers h)
      : transport(t), resource(r), options(std::move(o)), handlers(std::move(h)) {}

  Transport& transport;
  const Resource resource;
  const Options options;
  const Handlers handlers;

  Phase phase = Phase::kStopped;
  bool synced = false;
  uint64_t lists = 0;
  std::unordered_map<std::string, Known> known;  // by KeyOf
  uint32_t list = 0;                             // the current one's number
  std::string version;                           // the last one seen

  // Counts what we were about; a callback that finds another number than before its handler ran has
  // been stopped or overtaken.
  uint64_t epoch = 0;
  Transport::Id call = 0;  // the stream or the page
  Transport::Id timer = 0, watchdog = 0;
  Time began, last_byte;
  bool heard = false;  // of the stream: a whole line came

  std::string partial;  // a line whose end is yet to come
  std::vector<WatchEvent> pending;
  LineReader lines;
  TokenReader tokens;
  api::Decoder decoder{options.as_text ? api::Decoder::As::kText : api::Decoder::As::kTyped};
  api::Decoder identities;  // asked from within a list that `decoder` reads

  bool refused_streaming = false;  // for good
  bool pages_once = false;         // the streaming list broke off: the next list goes by pages
  int missing_answers = 0;
  bool in_trouble = false;
  Backoff backoff{kFirstBackoff, kMostBackoff};
  std::optional<Time> last_failure;

  // --- what is told
  bool Tell();
  void TellTrouble(const ApiError& error);
  void TellWell();
  bool TellBad(const std::string& name, std::string_view why);
  bool Add(WatchEvent&& event);
  bool Apply(api::Decoded&& decoded);
  bool Remove(const Head& head);
  bool Sweep();

  // --- lists
  void List();
  void RequestPage(const std::string& continue_token);
  void OnPage(Response&& response);
  bool TakePage(std::string& body, api::ListMeta& meta);
  void MarkBadItems(const std::string& body, const std::vector<size_t>& bad);
  bool FinishList();

  // --- streams
  void Open(Phase next);
  void OnChunk(std::string_view chunk);
  bool OnLine();
  bool OnObject(std::string_view type, std::string_view text);
  bool OnUndecoded(std::string_view type, std::string_view text, const std::string& why);
  bool OnBookmark(std::string_view text);
  void OnBroken();
  void OnErrorEvent(std::string_view text);
  void OnStreamEnd(const Response& response);
  void OnListStreamFailed(const ApiError& error);
  void OnWatchFailed(const ApiError& error);
  void Guard();

  // --- what comes next
  Duration Delay(Duration at_least);
  void ListAnew(Duration at_least);
  void Pause(Duration delay, Phase next);
  void OnMissing(const ApiError& error);
  void Reset();
  [[nodiscard]] std::string Query(const std::string& more) const;
  [[nodiscard]] std::string TimeoutSeconds();
  [[nodiscard]] ApiError OwnError(Failure failure, const std::string& what) const;
};

// --- what is told

// False when a handler stopped us, as everywhere below: the caller must leave then.
bool Reflector::Impl::Tell() {
  if (pending.empty()) return true;
  const uint64_t before = epoch;
  std::vector<WatchEvent> events = std::exchange(pending, {});
  if (handlers.events) handlers.events(std::move(events));
  return epoch == before;
}

void Reflector::Impl::TellTrouble(const ApiError& error) {
  in_trouble = true;
  if (handlers.trouble) handlers.trouble(error);
}

void Reflector::Impl::TellWell() {
  if (!in_trouble) return;
  in_trouble = false;
  if (handlers.trouble) handlers.trouble({});
}

// False when a handler stopped us.
bool Reflector::Impl::TellBad(const std::string& name, std::string_view why) {
  if (!Tell()) return false;
  const uint64_t before = epoch;
  const std::string text =
      std::string(resource.kind) + (name.empty() ? "" : " " + name) + ": " + std::string(why);
  Log(LogLevel::kWarning, "object_not_decoded",
      {{"resource", ResourceName(resource)}, {"object", name}, {"why", why}});
  if (handlers.bad) handlers.bad(text);
  return epoch == before;
}

bool Reflector::Impl::Add(WatchEvent&& event) {
  pending.push_back(std::move(event));
  return pending.size() < options.batch || Tell();
}

bool Reflector::Impl::Apply(api::Decoded&& decoded) {
  const api::ObjectMeta& meta = api::MetaOf(decoded.object);
  auto [at, is_new] = known.try_emplace(KeyOf(meta.ns, meta.name));
  Known before = std::exchange(at->second, {meta.uid, list});
  if (!is_new && before.uid != meta.uid) {
    const Head gone{.ns = meta.ns, .name = meta.name, .uid = std::move(before.uid), .version = ""};
    if (!Add({WatchEvent::Type::kDeleted, Identity(identities, resource, gone)})) return false;
  }
  return Add({WatchEvent::Type::kApplied, std::move(decoded)});
}

// The identity is all that is told of a deletion. One that was never told as there, or whose name
// has passed to another meanwhile, was told before.
bool Reflector::Impl::Remove(const Head& head) {
  const auto at = known.find(KeyOf(head.ns, head.name));
  if (at == known.end() || at->second.uid != head.uid) return true;
  known.erase(at);
  return Add({WatchEvent::Type::kDeleted, Identity(identities, resource, head)});
}

// What the list just read did not have is gone. Told in the order of names, so that runs replay.
bool Reflector::Impl::Sweep() {
  std::vector<std::string> gone;
  for (const auto& [key, entry] : known) {
    if (entry.list != list) gone.push_back(key);
  }
  std::sort(gone.begin(), gone.end());
  for (const std::string& key : gone) {
    const size_t slash = key.find('/');
    const Head head{.ns = key.substr(0, slash),
                    .name = key.substr(slash + 1),
                    .uid = known[key].uid,
                    .version = ""};
    if (!Remove(head)) return false;
  }
  return true;
}

// --- lists

// Both forms ask without a resourceVersion, for the newest there is, which can never lie before
// what was already told. client-go's pages ask with resourceVersion=0 first: the server then
// answers from its cache, ignores the limit, and all objects come as one text, possibly an old one.
// The streaming list spares etcd as well, and is what servers of today do.
void Reflector::Impl::List() {
  Reset();
  ++lists;
  ++list;
  const bool streaming = options.streaming_list && !refused_streaming && !pages_once;
  pages_once = false;
  if (streaming) {
    Open(Phase::kStreamingList);
  } else {
    RequestPage("");
  }
}

void Reflector::Impl::RequestPage(const std::string& continue_token) {
  phase = Phase::kPages;
  Request request;
  std::string query = "limit=" + std::to_string(kPageSize);
  if (!continue_token.empty()) query += "&continue=" + UrlEscape(continue_token);
  request.path = Query(query);
  call = transport.Send(std::move(request), [this](Response&& response) {
    const auto keep = shared_from_this();
    call = 0;
    OnPage(std::move(response));
  });
}

void Reflector::Impl::OnPage(Response&& response) {
  if (const ApiError error = ErrorOf(response, "list", resource); !error.ok()) {
    if (error.failure == Failure::kNoSuchKind) return OnMissing(error);
    // The history behind the continue token was compacted: the pages must come from one version.
    if (error.failure != Failure::kExpired) {
      const uint64_t before = epoch;
      TellTrouble(error);
      if (epoch != before) return;
    }
    return Pause(Delay(error.retry_after), Phase::kStreamingList);
  }
  // Asked for before this one is read, so that the server works while we do.
  const std::string token = tokens.Read(response.body);
  if (!token.empty()) RequestPage(token);
  api::ListMeta meta;
  const uint64_t before = epoch;
  if (!TakePage(response.body, meta)) {
    if (epoch == before) Pause(Delay({}), Phase::kStreamingList);
    return;
  }
  if (!token.empty()) return;
  version = meta.resource_version;
  if (FinishList()) Open(Phase::kWatch);
}

// False when the text is no list, or when a handler stopped us.
bool Reflector::Impl::TakePage(std::string& body, api::ListMeta& meta) {
  const uint64_t before = epoch;
  std::vector<size_t> bad;
  auto result = decoder.DecodeList(body, [&](size_t index, Result<api::Decoded>&& item) {
    if (epoch != before) return;
    if (item && item->kind == resource.kind) {
      Apply(*std::move(item));
    } else {
      bad.push_back(index);
      TellBad("", item ? "found kind \"" + item->kind + "\" in the list" : item.error().message);
    }
  });
  if (epoch != before) return false;
  if (!result) {
    TellTrouble(OwnError(Failure::kServer, "the answer is no list: " + result.error().message));
    return false;
  }
  meta = *std::move(result);
  if (!bad.empty()) MarkBadItems(body, bad);
  return Tell();
}

// Bad items are there all the same: those known from before must not pass for deleted.
void Reflector::Impl::MarkBadItems(const std::string& body, const std::vector<size_t>& bad) {
  const Json json = json::ParseOrNull(body);
  const Json* items = json::Get(json, {"items"});
  if (items == nullptr || !items->is_array()) return;
  for (const size_t index : bad) {
    if (index >= items->size()) continue;
    const Head head = HeadOf((*items)[index], resource);
    const auto at = known.find(KeyOf(head.ns, head.name));
    if (at != known.end() && at->second.uid == head.uid) at->second.list = list;
  }
}

bool Reflector::Impl::FinishList() {
  const uint64_t before = epoch;
  if (!Sweep() || !Tell()) return false;
  missing_answers = 0;
  synced = true;
  TellWell();
  if (epoch == before && handlers.synced) handlers.synced();
  return epoch == before;
}

// --- streams

void Reflector::Impl::Open(Phase next) {
  Reset();
  phase = next;
  began = last_byte = transport.Now();
  std::string query = "watch=true&allowWatchBookmarks=true&timeoutSeconds=" + TimeoutSeconds();
  if (next == Phase::kStreamingList) {
    query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
  } else {
    query += "&resourceVersion=" + UrlEscape(version);
  }
  Request request;
  request.path = Query(query);
  call = transport.Stream(
      std::move(request),
      [this](std::string_view chunk) {
        const auto keep = shared_from_this();
        OnChunk(chunk);
      },
      [this](Response&& response) {
        const auto keep = shared_from_this();
        call = 0;
        OnStreamEnd(response);
      });
  Guard();
}

// Ends a stream in which nothing moves. A watch that has outlived the time-out for its headers must
// have had them: all is well then, though no event came yet.
void Reflector::Impl::Guard() {
  const Time now = transport.Now();
  if (phase == Phase::kWatch && now - began >= kRequestTimeout) {
    const uint64_t before = epoch;
    TellWell();
    if (epoch != before) return;
  }
  if (now - last_byte >= kSilence) {
    const uint64_t before = epoch;
    const ApiError error = OwnError(Failure::kUnreachable,
                                    "the connection was silent for " + FormatGoDuration(kSilence));
    Log(LogLevel::kWarning, "watch_silent", {{"resource", ResourceName(resource)}});
    TellTrouble(error);
    if (epoch != before) return;
    pages_once = phase == Phase::kStreamingList;
    return Pause(Delay({}), Phase::kStreamingList);
  }
  const Duration left = last_byte + kSilence - now;
  watchdog = transport.After(in_trouble ? std::min(left, kRequestTimeout) : left, [this] {
    const auto keep = shared_from_this();
    watchdog = 0;
    Guard();
  });
}

void Reflector::Impl::OnChunk(std::string_view chunk) {
  last_byte = transport.Now();
  const uint64_t before = epoch;
  while (true) {
    const size_t end = chunk.find('\n');
    partial.append(chunk.substr(0, end));
    if (end == std::string_view::npos) break;
    chunk.remove_prefix(end + 1);
    const bool blank = partial.find_first_not_of(" \t\r") == std::string::npos;
    if (!blank && !OnLine()) return;
    partial.clear();
  }
  if (partial.size() > kMaxLine) return OnBroken();
  // Told before we leave: who asks `version` later must have been told all up to it.
  if (!Tell() || epoch != before) return;
  if (phase == Phase::kWatch && heard) TellWell();
}

// False when the stream is over.
bool Reflector::Impl::OnLine() {
  const auto line = lines.Read(partial);
  if (!line) {
    OnBroken();
    return false;
  }
  if (line->type == "ERROR") {
    OnErrorEvent(line->object);
    return false;
  }
  heard = true;
  if (line->type == "BOOKMARK") return OnBookmark(line->object);
  if (line->type == "ADDED" || line->type == "MODIFIED" || line->type == "DELETED") {
    return OnObject(line->type, line->object);
  }
  Log(LogLevel::kWarning, "watch_event_unknown",
      {{"resource", ResourceName(resource)}, {"type", line->type}});
  return true;
}

bool Reflector::Impl::OnObject(std::string_view type, std::string_view text) {
  auto decoded = decoder.Decode(text);
  if (!decoded || decoded->kind != resource.kind) {
    return OnUndecoded(
        type, text,
        decoded ? "found kind \"" + decoded->kind + "\" in the watch" : decoded.error().message);
  }
  const api::ObjectMeta& meta = api::MetaOf(decoded->object);
  if (!meta.resource_version.empty()) version = meta.resource_version;
  if (type != "DELETED") return Apply(*std::move(decoded));
  return Remove({.ns = meta.ns, .name = meta.name, .uid = meta.uid, .version = ""});
}

bool Reflector::Impl::OnUndecoded(std::string_view type, std::string_view text,
                                  const std::string& why) {
  const Json json = json::ParseOrNull(text);
  const Head head = HeadOf(json, resource);
  if (head.name.empty()) {
    OnBroken();
    return false;
  }
  if (!head.version.empty()) version = head.version;
  if (type == "DELETED") return Remove(head);
  const auto at = known.find(KeyOf(head.ns, head.name));
  if (at != known.end() && at->second.uid == head.uid) at->second.list = list;
  if (!TellBad(head.ns.empty() ? head.name : head.ns + "/" + head.name, why)) return false;
  // The one that had the name before is gone, though its successor cannot be told.
  if (at == known.end() || at->second.uid == head.uid) return true;
  Head gone = head;
  gone.uid = at->second.uid;
  return Remove(gone);
}

bool Reflector::Impl::OnBookmark(std::string_view text) {
  const Head head = HeadOf(json::ParseOrNull(text), resource);
  if (!head.version.empty()) version = head.version;
  if (phase != Phase::kStreamingList || !head.initial_events_end) return true;
  phase = Phase::kWatch;  // the same stream goes on
  return FinishList();
}

// A line that is no watch event: what follows in this stream cannot be trusted.
void Reflector::Impl::OnBroken() {
  Log(LogLevel::kWarning, "watch_line_unreadable",
      {{"resource", ResourceName(resource)}, {"bytes", partial.size()}});
  if (!Tell()) return;
  if (phase == Phase::kStreamingList) {
    // Not one event: whoever answers does not know streaming lists.
    pages_once = true;
    return heard ? Pause(Delay({}), Phase::kStreamingList) : List();
  }
  Pause(Delay({}), Phase::kWatch);
}

void Reflector::Impl::OnErrorEvent(std::string_view text) {
  Response response;
  response.body = text;
  const int64_t code = json::Number(json::ParseOrNull(text), {"code"}, 0);
  response.status = code >= 400 && code < 600 ? static_cast<int>(code) : 500;
  const ApiError error = ErrorOf(response, "watch", resource);
  const bool listing = phase == Phase::kStreamingList;
  if (!Tell()) return;
  Reset();  // the stream is of no more use
  if (listing) return OnListStreamFailed(error);
  OnWatchFailed(error);
}

void Reflector::Impl::OnStreamEnd(const Response& response) {
  const ApiError error = ErrorOf(response, "watch", resource);
  if (phase == Phase::kStreamingList) {
    if (!error.ok()) return OnListStreamFailed(error);
    return OnListStreamFailed(
        OwnError(Failure::kServer, "the stream ended before the list was complete"));
  }
  if (!error.ok() && !heard) return OnWatchFailed(error);
  // It was well and broke: nobody says what became of the server meanwhile.
  if (!error.ok()) {
    Log(LogLevel::kInfo, "watch_broke",
        {{"resource", ResourceName(resource)}, {"error", error.message}});
    return ListAnew(error.retry_after);
  }
  if (transport.Now() - began > kShortWatch) return Open(Phase::kWatch);
  Pause(Delay({}), Phase::kWatch);
}

void Reflector::Impl::OnListStreamFailed(const ApiError& error) {
  switch (error.failure) {
    case Failure::kInvalid:
      // The server knows no streaming lists, and will know none when asked again.
      refused_streaming = true;
      Log(LogLevel::kInfo, "streaming_list_refused",
          {{"resource", ResourceName(resource)}, {"why", error.message}});
      return List();
    case Failure::kNoSuchKind:
      return OnMissing(error);
    case Failure::kServer:
    case Failure::kExpired:
      pages_once = true;
      break;
    case Failure::kUnreachable:
      pages_once = heard;  // broken off half-way: pages get through where one long answer may not
      break;
    default:
      break;
  }
  const uint64_t before = epoch;
  TellTrouble(error);
  if (epoch == before) Pause(Delay(error.retry_after), Phase::kStreamingList);
}

void Reflector::Impl::OnWatchFailed(const ApiError& error) {
  switch (error.failure) {
    case Failure::kNoSuchKind:
      return OnMissing(error);
    case Failure::kExpired:
      // Ordinary: the history is short.
      Log(LogLevel::kInfo, "watch_expired", {{"resource", ResourceName(resource)}});
      return ListAnew(error.retry_after);
    default:
      break;
  }
  const uint64_t before = epoch;
  TellTrouble(error);
  if (epoch != before) return;
  // Nobody there: it may come back without its data. A request it cannot make sense of: our version
  // is of another history.
  const bool lost = error.failure == Failure::kUnreachable || error.failure == Failure::kInvalid;
  Pause(Delay(error.retry_after), lost ? Phase::kStreamingList : Phase::kWatch);
}

// --- what comes next

// The wait after a failure.
Duration Reflector::Impl::Delay(Duration at_least) {
  const Time now = transport.Now();
  if (last_failure && now - *last_failure >= kBackoffReset) backoff.Reset();
  const Duration wait = std::max(backoff.Next(transport.Random()), at_least);
  last_failure = now + wait;
  return wait;
}

// At once, unless it keeps happening.
void Reflector::Impl::ListAnew(Duration at_least) {
  const bool seldom = !last_failure || transport.Now() - *last_failure >= kBackoffReset;
  const Duration delay = Delay(at_least);
  Pause(seldom ? at_least : delay, Phase::kStreamingList);
}

void Reflector::Impl::Pause(Duration delay, Phase next) {
  Reset();
  phase = Phase::kPause;
  timer = transport.After(delay, [this, next] {
    const auto keep = shared_from_this();
    timer = 0;
    if (next == Phase::kWatch) {
      Open(Phase::kWatch);
    } else {
      List();
    }
  });
}

void Reflector::Impl::OnMissing(const ApiError& error) {
  const uint64_t before = epoch;
  TellTrouble(error);
  if (epoch != before) return;
  ++missing_answers;
  if (!known.empty() && missing_answers < kMissingAnswers) {
    return Pause(Delay({}), Phase::kStreamingList);
  }
  synced = false;
  ++list;  // one that has nothing
  if (Sweep() && Tell()) Pause(kMissingRetry, Phase::kStreamingList);
}

// Leaves whatever we were about.
void Reflector::Impl::Reset() {
  ++epoch;
  transport.Cancel(std::exchange(call, 0));
  transport.Cancel(std::exchange(timer, 0));
  transport.Cancel(std::exchange(watchdog, 0));
  partial.clear();
  heard = false;
}

std::string Reflector::Impl::Query(const std::string& more) const {
  std::string path = CollectionPath(resource, options.ns) + "?" + more;
  if (!options.selector.empty()) path += "&" + options.selector;
  return path;
}

// Between once and twice kWatchTimeout, so that watches do not end together.
std::string Reflector::Impl::TimeoutSeconds() {
  const int64_t least = kWatchTimeout.ns / Seconds(1).ns;
  const auto more = transport.Random() % (static_cast<uint64_t>(least) + 1);
  return std::to_string(least + static_cast<int64_t>(more));
}

ApiError Reflector::Impl::OwnError(Failure failure, const std::string& what) const {
  ApiError error;
  error.failure = failure;
  error.message = "cannot " + std::string(phase == Phase::kPages ? "list " : "watch ") +
                  ResourceName(resource) + ": " + what;
  return error;
}

// --- the public side

Reflector::Reflector(Transport& transport, const Resource& resource, Options options,
                     Handlers handlers)
    : impl_(std::make_shared<Impl>(transport, resource, std::move(options), std::move(handlers))) {}

Reflector::~Reflector() { Stop(); }

void Reflector::Start() {
  if (impl_->phase == Impl::Phase::kStopped) impl_->List();
}

void Reflector::Stop() {
  impl_->Reset();
  impl_->phase = Impl::Phase::kStopped;
}

const Resource& Reflector::resource() const { return impl_->resource; }
bool Reflector::synced() const { return impl_->synced; }
size_t Reflector::known() const { return impl_->known.size(); }
uint64_t Reflector::lists() const { return impl_->lists; }

}  // namespace hopwise::kube
