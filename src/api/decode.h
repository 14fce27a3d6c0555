// Bytes -> typed objects. One document is one object or a List of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/batch.h"
#include "api/core.h"
#include "base/result.h"

namespace hopwise::api {

// A kind that is well-formed but not one of ours, or any kind of a decoder that reads texts.
struct Unknown {
  ObjectMeta meta;
  std::string json;  // the object's text, of a decoder that reads texts; else ""
};

using Object = std::variant<Unknown, Node, Pod, Namespace, PriorityClass, ResourceQuota,
                            PodDisruptionBudget, PersistentVolume, PersistentVolumeClaim, PodGroup,
                            Queue, HyperNode, VcJob, Workload, LeaderWorkerSet>;

struct Decoded {
  std::string api_version, kind;
  Object object;
  // What is well-formed but senseless, each with its path: "spec.networkTopology:
  // highestTierAllowed and highestTierName exclude each other; the number counts".
  std::vector<std::string> warnings;
};

const ObjectMeta& MetaOf(const Object& object);

// What a List says about itself, for the client that pages and watches.
struct ListMeta {
  std::string api_version, kind;  // of the List
  std::string resource_version;
  std::string continue_token;   // "" on the last page
  int64_t remaining_items = 0;  // as the server estimates it
};

// Reads one JSON text after the other into the same buffers. Not for two threads at once.
//
// Decoding tolerates unknown fields and takes null as absent. A missing kind, apiVersion or
// metadata.name, or a field of the wrong type, is an error whose message begins with the field's
// path ("spec.containers[0].resources.requests.cpu: …"). Objects of a namespaced kind without a
// namespace get "default", those of a cluster-wide kind "".
class Decoder {
 public:
  // kText: every object is an Unknown with its text; of its fields only metadata is read. Items of
  // a List may leave out kind and apiVersion there, too: the text is as it stands.
  enum class As : uint8_t { kTyped, kText };
  explicit Decoder(As as = As::kTyped);
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  // One object (not a List). The text is copied to a padded buffer.
  Result<Decoded> Decode(std::string_view json);
  // The same without the copy: `json` may grow in capacity, its content stays.
  Result<Decoded> DecodeInPlace(std::string& json);

  // The items of a v1 List or <Kind>List one by one, in place, in their order. Items may leave out
  // kind and apiVersion, as in the API server's lists: a PodList's are Pods. A bad item is handed
  // on as its error and the next one follows; only text that is no JSON, or no List, ends it.
  using ItemVisitor = std::function<void(size_t index, Result<Decoded>&& item)>;
  Result<ListMeta> DecodeList(std::string& json, const ItemVisitor& visit);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Decoder().Decode(json), for single objects.
Result<Decoded> DecodeObject(std::string_view json);

// A document of a manifest as JSON text, with where it began.
struct Document {
  size_t line = 1;    // 1-based line of its first content
  size_t index = 1;   // 1-based number among the documents with content; items of a List share it
  size_t item = 0;    // 1-based number in a List, Lists within it counted; 0 outside of Lists
  std::string json;   // one object
  std::string error;  // not empty: json is empty and this says why, "line 12: …" or
                      // "line 12, item 3: …"
};

// Splits a file into objects.
//
// JSON: one object, or several one after the other. YAML: any number of documents, read as kubectl
// reads them (go-yaml v2 and sigs.k8s.io/yaml: yes, no, on, off, y and n are booleans, 010 is 8,
// keys become text), except that duplicate keys and unknown tags are errors. v1 List and
// <Kind>List are flattened. Depth, aliases and merge keys have limits.
//
// Never fails as a whole: what is bad is a Document with an error, and the documents around it are
// there. Documents without content are left out; a file without any yields none.
std::vector<Document> SplitDocuments(std::string_view text);

}  // namespace hopwise::api
