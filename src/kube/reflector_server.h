// For the tests of the reflector: an API server of PodGroups, with its faults.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kube/fake_transport.h"
#include "kube/reflector_view.h"

namespace hopwise::kube {

inline std::string PodGroupText(const std::string& key, const std::string& uid, int version,
                                int members) {
  const size_t slash = key.find('/');
  return R"({"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":")" +
         key.substr(slash + 1) + R"(","namespace":")" + key.substr(0, slash) + R"(","uid":")" +
         uid + R"(","resourceVersion":")" + std::to_string(version) + R"("},"spec":{"minMember":)" +
         std::to_string(members) + "}}";
}

inline std::string EventLine(std::string_view type, const std::string& object) {
  return R"({"type":")" + std::string(type) + R"(","object":)" + object + "}\n";
}

inline std::string Bookmark(int version, bool initial_end = false) {
  return EventLine(
      "BOOKMARK",
      R"({"kind":"PodGroup","apiVersion":"scheduling.volcano.sh/v1beta1",)"
      R"("metadata":{"resourceVersion":")" +
          std::to_string(version) + R"(","creationTimestamp":null)" +
          (initial_end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "") +
          R"(},"spec":{}})");
}

inline std::string StatusText(int code, const std::string& reason,
                              const std::string& message = "so") {
  return R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":")" +
         message + R"(","reason":")" + reason + R"(","code":)" + std::to_string(code) + "}";
}

inline std::string ParameterOf(const std::string& path, const std::string& name) {
  const size_t at = path.find(name + "=");
  if (at == std::string::npos || (path[at - 1] != '?' && path[at - 1] != '&')) return "";
  const size_t begin = at + name.size() + 1;
  return path.substr(begin, path.find('&', begin) - begin);
}

// A server of PodGroups as the real one behaves: versions count up, a history that may be
// compacted, lists that stream or come in pages, bookmarks once a minute. Faults are members.
class Server {
 public:
  explicit Server(FakeTransport& transport) : transport_(transport) {
    transport.on_send = [this](const Request& request) { return Page(request); };
    transport.on_stream = [this](Transport::Id id, const Request& request) { Watch(id, request); };
    Tick();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // --- its contents
  void Set(const std::string& key, int members) {
    auto [at, is_new] = contents.try_emplace(key);
    if (is_new) at->second.uid = "uid-" + std::to_string(++uids_);
    at->second.members = members;
    ++version;
    Record(is_new ? "ADDED" : "MODIFIED", key, at->second);
  }
  void Remove(const std::string& key) {
    const auto at = contents.find(key);
    if (at == contents.end()) return;
    const Stored stored = at->second;
    contents.erase(at);
    ++version;
    Record("DELETED", key, stored);
  }
  void Compact() { history_.clear(), oldest_ = version; }
  // The process starts anew with an empty etcd: versions begin again.
  void LoseData() {
    CutAll();
    contents.clear();
    history_.clear();
    version = oldest_ = 1;
  }
  // The CRD goes, its objects with it; it comes back empty.
  void SetServed(bool now_served) {
    served = now_served;
    if (served) return;
    while (!contents.empty()) Remove(std::string(contents.begin()->first));
    CutAll();
  }

  // --- its streams
  void CutAll() {
    for (const auto& [id, watcher] : std::exchange(watchers_, {})) {
      transport_.End(id, Reply(200));
    }
  }
  // As when the process or the network dies: no orderly end.
  void BreakAll() {
    for (const auto& [id, watcher] : std::exchange(watchers_, {})) {
      transport_.End(id, NoReply("the connection was reset"));
    }
  }
  void SayErrorToAll(int code, const std::string& reason) {
    for (const auto& [id, watcher] : std::exchange(watchers_, {})) {
      transport_.Feed(id, EventLine("ERROR", StatusText(code, reason)));
    }
  }
  // Half-open: nothing comes any more, and nobody says so.
  void GoSilent() { watchers_.clear(); }
  // Sends the first bytes of the next event to all and ends their streams there.
  void CutWithin(const std::string& key, size_t bytes) {
    for (auto& [id, watcher] : watchers_) watcher.cut_after = bytes;
    Set(key, 7);
    CutAll();
  }

  Contents contents;
  int version = 1;
  // Faults: what the next requests are answered with instead.
  std::vector<Response> failures;
  bool down = false, served = true, streaming = true;
  size_t page = 2;   // objects a page, whatever limit asks for
  size_t split = 0;  // of streams: bytes a piece; 0: whole lines
  int page_requests = 0, streams = 0;

 private:
  struct Watcher {
    int from = 0;
    size_t cut_after = std::string::npos;
  };
  struct Change {
    int version;
    std::string line;
  };

  void Record(std::string_view type, const std::string& key, const Stored& stored) {
    history_.push_back(
        {version, EventLine(type, PodGroupText(key, stored.uid, version, stored.members))});
    for (auto& [id, watcher] : watchers_) {
      if (version <= watcher.from) continue;  // so does the real one, of versions it takes for old
      const std::string line = history_.back().line.substr(0, watcher.cut_after);
      Say(id, line);
    }
  }
  void Say(Transport::Id id, const std::string& text) {
    const size_t step = split == 0 ? text.size() : split;
    for (size_t at = 0; at < text.size(); at += step) transport_.Feed(id, text.substr(at, step));
  }
  void Tick() {
    for (const auto& [id, watcher] : watchers_) {
      if (version >= watcher.from) Say(id, Bookmark(version));
    }
    transport_.After(Seconds(60), [this] { Tick(); });
  }

  // The fault that a request meets, if any.
  std::optional<Response> Fault() {
    if (down) return NoReply("cannot connect to 127.0.0.1:6443: refused");
    if (!failures.empty()) {
      Response response = std::move(failures.front());
      failures.erase(failures.begin());
      return response;
    }
    if (!served) return Reply(404, "404 page not found\n");
    return std::nullopt;
  }

  std::optional<Response> Page(const Request& request) {
    ++page_requests;
    if (auto fault = Fault()) return fault;
    EXPECT_EQ(ParameterOf(request.path, "limit"), "500");
    EXPECT_EQ(ParameterOf(request.path, "resourceVersion"), "");
    // A token is "version:offset" of a snapshot; compaction forgets the snapshots.
    int at_version = version;
    size_t offset = 0;
    if (const std::string token = ParameterOf(request.path, "continue"); !token.empty()) {
      at_version = std::stoi(token);
      offset = static_cast<size_t>(std::stoi(token.substr(token.find("%3A") + 3)));
      if (at_version < oldest_) return Reply(410, StatusText(410, "Expired"));
    } else {
      snapshots_[version] = contents;
    }
    const Contents& snapshot = snapshots_[at_version];
    std::string items;
    size_t index = 0;
    for (const auto& [key, stored] : snapshot) {
      if (index++ < offset) continue;
      if (index > offset + page) break;
      if (!items.empty()) items += ",";
      items += PodGroupText(key, stored.uid, at_version, stored.members);
    }
    std::string token;
    if (offset + page < snapshot.size()) {
      token = R"(,"continue":")" + std::to_string(at_version) + ":" +
              std::to_string(offset + page) + "\"";
    }
    return Reply(200, R"({"kind":"PodGroupList","apiVersion":"scheduling.volcano.sh/v1beta1",)"
                      R"("metadata":{"resourceVersion":")" +
                          std::to_string(at_version) + "\"" + token + R"(},"items":[)" + items +
                          "]}");
  }

  void Watch(Transport::Id id, const Request& request) {
    ++streams;
    EXPECT_EQ(ParameterOf(request.path, "watch"), "true");
    EXPECT_EQ(ParameterOf(request.path, "allowWatchBookmarks"), "true");
    if (auto fault = Fault()) return transport_.End(id, std::move(*fault));
    const bool list = ParameterOf(request.path, "sendInitialEvents") == "true";
    if (list && !streaming) {
      return transport_.End(id, Reply(422, StatusText(422, "Invalid", "sendInitialEvents")));
    }
    transport_.Begin(id);
    if (list) {
      EXPECT_EQ(ParameterOf(request.path, "resourceVersionMatch"), "NotOlderThan");
      for (const auto& [key, stored] : contents) {
        Say(id, EventLine("ADDED", PodGroupText(key, stored.uid, version, stored.members)));
      }
      Say(id, Bookmark(version, true));
      watchers_[id] = {.from = version};
      return;
    }
    const int from = std::stoi(ParameterOf(request.path, "resourceVersion"));
    if (from < oldest_) {
      Say(id, EventLine("ERROR", StatusText(410, "Expired", "too old resource version")));
      return transport_.End(id);
    }
    watchers_[id] = {.from = from};
    for (const Change& change : history_) {
      if (change.version > from) Say(id, change.line);
    }
  }

  FakeTransport& transport_;
  int uids_ = 0;
  int oldest_ = 1;
  std::vector<Change> history_;
  std::map<int, Contents> snapshots_;
  std::map<Transport::Id, Watcher> watchers_;
};

}  // namespace hopwise::kube
