// Asking the admission rules as the API server would: manifests in YAML, changes as merge patches.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/decode.h"
#include "control/admission.h"

namespace hopwise::control::testing {

inline Json FromYaml(std::string_view text) {
  const std::vector<api::Document> documents = api::SplitDocuments(text);
  EXPECT_EQ(documents.size(), 1U);
  EXPECT_EQ(documents.at(0).error, "");
  return json::ParseOrNull(documents.at(0).json);
}

// The object with a change, in YAML; "" changes nothing.
inline Json With(Json object, std::string_view change) {
  if (!change.empty()) object.merge_patch(FromYaml(change));
  return object;
}

// Who asks: the settings, and the objects that there are.
struct Desk {
  AdmissionSettings settings;
  AdmissionView view;

  // A Queue's manifest without kind and apiVersion.
  Desk& Queue(std::string_view yaml) {
    Json object = FromYaml(yaml);
    object["apiVersion"] = "scheduling.volcano.sh/v1beta1";
    object["kind"] = "Queue";
    Result<api::Decoded> decoded = api::DecodeObject(Dump(object));
    EXPECT_TRUE(decoded.has_value()) << decoded.error().message;
    auto& queue = std::get<api::Queue>(decoded->object);
    view.queues[queue.meta.name] = queue;
    return *this;
  }

  [[nodiscard]] AdmissionAnswer Ask(std::string_view path, std::string_view operation,
                                    const Json& object, const Json& old_object = nullptr) const {
    const AdmissionService* service = FindAdmissionService(path);
    EXPECT_NE(service, nullptr) << path;
    AdmissionRequest request;
    request.uid = "u1";
    request.operation = operation;
    const Json& named = object.is_object() ? object : old_object;
    request.ns = Namespace(named);
    request.name = Name(named);
    request.group = service->group;
    request.resource = service->resource;
    request.object = object;
    request.old_object = old_object;
    return Admit(*service, request, {settings, view});
  }
  [[nodiscard]] AdmissionAnswer Create(std::string_view path, const Json& object) const {
    return Ask(path, "CREATE", object);
  }
  [[nodiscard]] AdmissionAnswer Update(std::string_view path, const Json& before,
                                       const Json& after) const {
    return Ask(path, "UPDATE", after, before);
  }
  // The object with what is filled into it.
  [[nodiscard]] Json Fill(std::string_view path, const Json& object) const {
    return object.patch(Create(path, object).patch);
  }
};

// A change of a good object, and what is found of it: "" for nothing, else how the message begins,
// path first.
struct RuleCase {
  std::string name, change, problem;
};

inline void ExpectProblem(const AdmissionAnswer& answer, const RuleCase& rule) {
  SCOPED_TRACE(rule.name);
  EXPECT_EQ(answer.allowed, rule.problem.empty()) << answer.message;
  EXPECT_THAT(answer.message, ::testing::StartsWith(rule.problem));
  if (rule.problem.empty()) EXPECT_EQ(answer.message, "");
}

}  // namespace hopwise::control::testing
