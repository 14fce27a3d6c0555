// All selectors of all HyperNodes on nodes, indexed, so that one node meets only those that could
// want it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta.h"
#include "topology/lookup.h"
#include "topology/members.h"
#include "topology/patterns.h"

namespace hopwise::topology {

class Matcher {
 public:
  struct PatternError {
    std::string pattern, message;
  };

  // Registers the Node selectors of a HyperNode. Returns the patterns that do not compile.
  std::vector<PatternError> Add(uint32_t slot, const MemberSpec& spec);
  // `spec` is what was added.
  void Remove(uint32_t slot, const MemberSpec& spec);

  // To be called before Match with the number of nodes that are coming.
  void Prepare(size_t nodes) { patterns_.Prepare(nodes); }
  // Replaces `slots` by those of the HyperNodes that select the node, sorted and unique.
  void Match(std::string_view name, const api::StringMap& labels,
             std::vector<uint32_t>& slots) const;
  // Whether a pattern or a label selector (not an exact name) of the registered `spec` selects it.
  [[nodiscard]] bool Scans(const MemberSpec& spec, std::string_view name,
                           const api::StringMap& labels) const;

 private:
  struct LabelEntry {
    uint32_t slot = 0;
    api::LabelSelector selector;
    std::vector<std::string> buckets;  // where it is filed; empty: in wide_
    bool wide = false;
  };

  void AddLabels(uint32_t slot, const api::LabelSelector& selector);
  void RemoveLabels(uint32_t entry);
  // The requirement to file the selector under, or nullptr when none pins a value.
  [[nodiscard]] const api::Requirement* Pin(const api::LabelSelector& selector) const;
  void MatchLabels(const std::vector<uint32_t>& entries, const api::StringMap& labels,
                   std::vector<uint32_t>& slots) const;

  NameMap<std::vector<uint32_t>> exact_;  // node name -> slots
  PatternTable patterns_;
  std::vector<LabelEntry> label_entries_;
  std::vector<uint32_t> free_label_entries_;
  boost::unordered_flat_map<uint32_t, std::vector<uint32_t>> label_entries_of_;  // by slot
  NameMap<std::vector<uint32_t>> buckets_;  // "key=value" -> label entries that demand it
  std::vector<uint32_t> wide_;              // label entries that demand no particular value
};

}  // namespace hopwise::topology
