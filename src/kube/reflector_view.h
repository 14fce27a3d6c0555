// For the tests of the reflector: what it told, kept as its users would keep it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "kube/reflector.h"

namespace hopwise::kube {

struct Stored {
  std::string uid;
  int members = 0;
  friend bool operator==(const Stored&, const Stored&) = default;
};
using Contents = std::map<std::string, Stored>;

// Checks on the way what each telling promises: what is deleted was there, by its uid.
struct View {
  Contents contents;
  int synced = 0, troubles = 0;
  std::vector<ApiError> errors;
  std::vector<std::string> bad;
  std::vector<std::string> log;  // "+ml/a", "-ml/a/uid"

  void Take(std::vector<WatchEvent>&& events) {
    ASSERT_FALSE(events.empty());
    for (const WatchEvent& event : events) {
      const api::ObjectMeta& meta = api::MetaOf(event.decoded.object);
      const std::string key = meta.ns + "/" + meta.name;
      const auto at = contents.find(key);
      if (event.type == WatchEvent::Type::kDeleted) {
        log.push_back("-" + key + "/" + meta.uid);
        ASSERT_NE(at, contents.end()) << "deleted, but was not there: " << key;
        ASSERT_EQ(at->second.uid, meta.uid) << "another one was there: " << key;
        contents.erase(at);
        continue;
      }
      log.push_back("+" + key);
      if (at != contents.end()) {
        ASSERT_EQ(at->second.uid, meta.uid) << "replaced without a deletion: " << key;
      }
      const auto* group = std::get_if<api::PodGroup>(&event.decoded.object);
      ASSERT_NE(group, nullptr);
      contents[key] = {meta.uid, group->min_member};
    }
  }
  [[nodiscard]] Reflector::Handlers Handlers() {
    return {.events = [this](std::vector<WatchEvent>&& events) { Take(std::move(events)); },
            .synced = [this] { ++synced; },
            .trouble =
                [this](const ApiError& error) {
                  ++troubles;
                  errors.push_back(error);
                },
            .bad = [this](std::string_view text) { bad.emplace_back(text); }};
  }
};

}  // namespace hopwise::kube
