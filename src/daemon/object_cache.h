// Objects as JSON trees, as the watches and the answers to our own writes tell of them, whichever
// comes first: what is written counts as seen at once, and the watch's later news of it is none.
//
// Trees are trimmed to what the controllers read, since all pods of a cluster are held: managed
// fields go, of a pod all but scheduler, node, requests, phase and exit codes, of owners all but
// their metadata and counts.
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>

#include "control/store.h"
#include "daemon/carrier.h"
#include "kube/reflector.h"
#include "kube/resources.h"

namespace hopwise::daemon {

// Uids remembered after their end. Answers come within seconds; a cluster deletes fewer objects in
// that time.
inline constexpr size_t kRememberEnded = 20'000;

class ObjectCache {
 public:
  // What became of an object: as it was and as it is, nullptr where it was not or is not. Called
  // when the store has it.
  using Changed =
      std::function<void(const control::Key&, const json::Json* before, const json::Json* now)>;
  // `keep`: whether an object is of interest at all, asked before it is stored.
  ObjectCache(std::function<bool(const control::Key&, const json::Json&)> keep, Changed changed)
      : keep_(std::move(keep)), changed_(std::move(changed)) {}

  // Of a reflector that reads texts.
  void Observe(const kube::Resource& resource, const kube::WatchEvent& event);
  // Of a write that went well.
  void Wrote(const WriteResult& result);

  [[nodiscard]] const control::Store& store() const { return store_; }

 private:
  // In this very version.
  [[nodiscard]] bool Has(const kube::Resource& resource, const api::ObjectMeta& meta) const;
  void Apply(json::Json object);
  void End(const std::string& uid);
  void Remove(const control::Key& key, const std::string& uid);

  std::function<bool(const control::Key&, const json::Json&)> keep_;
  Changed changed_;
  control::Store store_;
  // Deleted by us, by uid, until the watch tells of it.
  std::set<std::string, std::less<>> gone_;
  // Uids that the watch told the end of, the newest last: an answer to a write may come after it.
  std::set<std::string, std::less<>> ended_;
  std::deque<std::string> ended_order_;
};

// What is kept of an object.
json::Json Trimmed(json::Json object);

}  // namespace hopwise::daemon
