// Manifest text -> objects that are fit for the store, with every complaint tied to file, document,
// object and field.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/objects.h"

namespace hopwise::sim {

struct Origin {
  std::string file;
  size_t document = 0;  // 1-based
  size_t item = 0;      // in a List; 0: none
  size_t line = 0;
};

struct ManifestObject {
  Origin origin;
  Key key;
  Json object;
  bool remove = false;  // hopwise.dev/simulate: delete
};

struct Problem {
  Origin origin;
  std::string object;  // "Kind ns/name", "" when that is not known
  std::string message;
};
// "FILE: document N (line L), Kind ns/name: message".
std::string ToText(const Problem& problem);

// One step.
struct Manifest {
  std::vector<ManifestObject> objects;  // in file order
  std::vector<Problem>
      problems;  // documents that cannot be used; their objects are not in `objects`
  std::vector<std::string> warnings;
  std::map<std::string, int64_t> other_kinds;  // kinds that take no part, with how many
};

// Adds the objects of one file. Never fails as a whole.
void AddManifest(std::string_view file, std::string_view text, Manifest& manifest);
// To be called after the last file: of objects that occur twice the last one stays, with a warning;
// kinds that take no part are named.
void FinishManifest(Manifest& manifest);

// Whether the API server would take the object, as far as the simulator relies on it: decodable,
// sane replica counts, templates that make decodable pods, readable annotations of ours. The error
// begins with the field.
Status CheckObject(const Json& object);

}  // namespace hopwise::sim
