// Nodes and bound pods as an API server writes them, managedFields and all.
#pragma once

#include <cstddef>
#include <string>

namespace hopwise::bench {

inline constexpr size_t kPodsPerGang = 8;

std::string GangName(size_t gang);
// A NodeList of nodes first, first + 1, …
std::string NodePage(size_t first, size_t count);
// A PodList: pod i belongs to gang i / kPodsPerGang and is bound to node i / 2. 10 labels, 2
// annotations.
std::string PodPage(size_t first, size_t count);

}  // namespace hopwise::bench
