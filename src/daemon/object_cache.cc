#include "daemon/object_cache.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <variant>

namespace hopwise::daemon {
namespace {

using json::Json;

// The members named, of those that are there.
Json Part(const Json& object, std::initializer_list<const char*> fields) {
  Json part = Json::object();
  for (const char* field : fields) {
    if (const auto at = object.find(field); at != object.end()) {
      part[field] = *at;
    }
  }
  return part;
}

Json EachPart(const Json& list, std::initializer_list<const char*> fields) {
  Json parts = Json::array();
  for (const Json& item : list) {
    parts.push_back(Part(item, fields));
  }
  return parts;
}

Json TrimmedPodSpec(const Json& spec) {
  Json kept = Part(spec, {"schedulerName", "nodeName", "priorityClassName", "overhead", "resources",
                          "schedulingGates"});
  for (const char* field : {"containers", "initContainers"}) {
    if (spec.contains(field)) {
      kept[field] = EachPart(spec[field], {"name", "resources", "restartPolicy"});
    }
  }
  return kept;
}

Json TrimmedPodStatus(const Json& status) {
  Json kept = Part(status, {"phase"});
  for (const Json& condition : json::List(status, {"conditions"})) {
    if (json::Text(condition, {"type"}) == "Ready") {
      kept["conditions"] = Json::array({Part(condition, {"type", "status"})});
    }
  }
  for (const char* field : {"containerStatuses", "initContainerStatuses"}) {
    if (status.contains(field)) {
      kept[field] = EachPart(status[field], {"restartCount", "state"});
    }
  }
  return kept;
}

bool IsOwnerKind(const control::Key& key) {
  return key.group == control::kApps || key.group == control::kBatch;
}

}  // namespace

Json Trimmed(Json object) {
  json::Unset(object, {"metadata", "managedFields"});
  json::Unset(object,
              {"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"});
  const control::Key key = control::KeyOf(object);
  if (key.group.empty() && key.kind == "Pod") {
    object["spec"] = TrimmedPodSpec(json::Member(object, "spec"));
    object["status"] = TrimmedPodStatus(json::Member(object, "status"));
  } else if (IsOwnerKind(key)) {
    object["spec"] = Part(json::Member(object, "spec"), {"replicas", "parallelism"});
    object.erase("status");
  }
  return object;
}

void ObjectCache::Observe(const kube::Resource& resource, const kube::WatchEvent& event) {
  if (event.type == kube::WatchEvent::Type::kDeleted) {
    // Of whatever type, an identity is all that is told.
    const api::ObjectMeta& meta = api::MetaOf(event.decoded.object);
    gone_.erase(meta.uid);
    End(meta.uid);
    Remove({std::string(resource.group), std::string(resource.kind), meta.ns, meta.name}, meta.uid);
    return;
  }
  const auto* object = std::get_if<api::Unknown>(&event.decoded.object);
  if (object == nullptr) {
    return;
  }
  if (Has(resource, object->meta)) {
    return;  // most often our own write, known by its answer: not worth a tree
  }
  Json tree = json::ParseOrNull(object->json);
  // Items of a list name neither.
  tree["apiVersion"] = kube::ApiVersionOf(resource);
  tree["kind"] = resource.kind;
  Apply(std::move(tree));
}

bool ObjectCache::Has(const kube::Resource& resource, const api::ObjectMeta& meta) const {
  const Json* present = store_.FindObject(
      {std::string(resource.group), std::string(resource.kind), meta.ns, meta.name});
  return present != nullptr && json::Uid(*present) == meta.uid &&
         json::Text(*present, {"metadata", "resourceVersion"}) == meta.resource_version;
}

void ObjectCache::Wrote(const WriteResult& result) {
  const ObjectWrite& write = result.write;
  const control::Key key{std::string(write.resource.group), std::string(write.resource.kind),
                         write.ns, write.name};
  if (result.object.empty()) {
    const Json* present = store_.FindObject(key);
    if (write.verb == ObjectWrite::Verb::kDelete && present != nullptr &&
        (write.uid.empty() || json::Uid(*present) == write.uid)) {
      const std::string uid = json::Uid(*present);
      gone_.insert(uid);
      Remove(key, uid);
    }
    return;
  }
  Json tree = json::ParseOrNull(result.object);
  if (tree.is_object() && control::KeyOf(tree) == key && !ended_.contains(json::Uid(tree))) {
    Apply(std::move(tree));
  }
}

void ObjectCache::End(const std::string& uid) {
  if (!uid.empty() && ended_.insert(uid).second) {
    ended_order_.push_back(uid);
  }
  if (ended_order_.size() > kRememberEnded) {
    ended_.erase(ended_order_.front());
    ended_order_.pop_front();
  }
}

void ObjectCache::Apply(Json object) {
  const control::Key key = control::KeyOf(object);
  const std::string uid = json::Uid(object);
  if (gone_.contains(uid)) {
    return;
  }
  const Json* present = store_.FindObject(key);
  if (present != nullptr && json::Uid(*present) != uid) {
    Remove(key, json::Uid(*present));
    present = nullptr;
  }
  if (present != nullptr) {
    const std::string have = json::Text(*present, {"metadata", "resourceVersion"});
    const std::string come = json::Text(object, {"metadata", "resourceVersion"});
    if (come == have || kube::IsOlder(come, have)) {
      return;
    }
  }
  if (!keep_(key, object)) {
    return;
  }
  const bool known = present != nullptr;
  Json before;
  const control::Entry& entry = store_.Put(Trimmed(std::move(object)), before);
  changed_(key, known ? &before : nullptr, &entry.object);
}

void ObjectCache::Remove(const control::Key& key, const std::string& uid) {
  const Json* present = store_.FindObject(key);
  if (present == nullptr || json::Uid(*present) != uid) {
    return;
  }
  const Json before = *present;
  store_.Erase(key);
  store_.TakeChanges();  // its own log of changes is of no use here
  changed_(key, &before, nullptr);
}

}  // namespace hopwise::daemon
