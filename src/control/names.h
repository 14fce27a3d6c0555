// Names and ids that controllers make up at random, here a function of what they are for: runs
// replay.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "control/json.h"

namespace hopwise::control {

// A mixed 64-bit hash of the parts; {"ab","c"} and {"a","bc"} differ.
uint64_t HashOf(std::initializer_list<std::string_view> parts, uint64_t number = 0);

// Like a random UUID: of the n-th object of this kind and name.
std::string MakeUid(std::string_view kind, std::string_view ns, std::string_view name,
                    uint64_t incarnation);

// Five characters from the alphabet that Kubernetes uses for generated names.
std::string MakeSuffix(uint64_t hash);
// Ten characters, as a pod-template-hash.
std::string TemplateHash(const Json& pod_template);
std::string Hex(uint64_t value);

// `name` cut so that name and suffix together keep to a name's 253 (or another limit of) bytes.
std::string Joined(std::string_view name, std::string_view suffix, size_t limit = 253);

}  // namespace hopwise::control
