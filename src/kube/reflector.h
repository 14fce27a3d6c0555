// Keeps a copy of one resource current: list, then watch from there, and again from the start when
// the server has forgotten where we were. Numbers and behaviour follow client-go 0.36's reflector.
//
// Lists come in pages of one version, the next one under way while one is read, or, where
// Options::streaming_list says so, as a stream: sendInitialEvents,
// resourceVersionMatch=NotOlderThan, allowWatchBookmarks; over at the bookmark annotated
// k8s.io/initial-events-end="true". A server that refuses it (400, 422, or a stream that does not
// begin with an event) is listed in pages after all. Objects that were known and are absent from a
// new list are told as deleted. So is one whose name was taken by another (another uid), before
// that one is told.
//
// An object whose new version does not decode keeps the old one until it is deleted. Where the
// server may have lost its data (a watch that broke, found nobody there, or went silent) all is
// listed anew: such a server would keep quiet until its versions reach the one we know. client-go
// trusts a broken watch and goes on from there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/decode.h"
#include "kube/errors.h"
#include "kube/resources.h"
#include "kube/transport.h"

namespace hopwise::kube {

// client-go: WatchListPageSize, reflector's minWatchTimeout (random in 5..10 min), its back-off
// (800 ms .. 30 s), and about one bookmark a minute from the server: none for three means that the
// connection is dead.
inline constexpr int kPageSize = 500;
inline constexpr Duration kWatchTimeout = Seconds(300);
inline constexpr Duration kFirstBackoff = Millis(800);
inline constexpr Duration kMostBackoff = Seconds(30);
inline constexpr Duration kSilence = Seconds(180);
// client-go: two minutes without a failure, and the back-off starts small again.
inline constexpr Duration kBackoffReset = Seconds(120);
// A resource that does not exist is asked for again this often: a CRD may come.
inline constexpr Duration kMissingRetry = Seconds(10);

struct WatchEvent {
  enum class Type : uint8_t { kApplied, kDeleted };
  Type type = Type::kApplied;
  // Applied: the object, with its warnings. Deleted: its namespace, name and uid, and nothing more
  // may be relied upon.
  api::Decoded decoded;
};

class Reflector {
 public:
  struct Handlers {
    // What changed, in order; a list is told in several calls. Objects that could not be decoded
    // are left out and told by `bad`.
    std::function<void(std::vector<WatchEvent>&&)> events;
    // The first list is complete (all its events were told); again after each further list.
    std::function<void()> synced;
    // A list or watch failed; it is tried again by itself. kNone when all is well again.
    std::function<void(const ApiError&)> trouble;
    // An object that does not decode: "PodGroup ml/x: spec.minMember: expected an integer…".
    std::function<void(std::string_view)> bad;
  };
  struct Options {
    std::string ns = {};         // of one namespace alone; "": of all
    std::string selector;        // query without "?": "fieldSelector=…", or ""
    bool as_text = false;        // objects as api::Unknown with their texts
    bool streaming_list = true;  // false: pages from the start
    // Events told at most in one call.
    size_t batch = 1000;
  };

  Reflector(Transport& transport, const Resource& resource, Options options, Handlers handlers);
  ~Reflector();  // stops
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  // Lists, then watches. After a Stop: lists anew, and tells what went missing meanwhile.
  void Start();
  // No handler is called any more; also from within one.
  void Stop();
  [[nodiscard]] const Resource& resource() const;
  // False again when the kind itself is gone.
  [[nodiscard]] bool synced() const;
  [[nodiscard]] size_t known() const;
  // How often it had to list from the start.
  [[nodiscard]] uint64_t lists() const;

 private:
  struct Impl;
  // Shared with the call under way, so that a handler may destroy the reflector.
  std::shared_ptr<Impl> impl_;
};

}  // namespace hopwise::kube
