#include "api/decode.h"

#include <array>
#include <utility>

#include "api/decode_parts.h"

namespace hopwise::api {
namespace {

struct Kind {
  std::string_view group, kind;
  bool (*decode)(JsonObject& object, Object& out);
  bool namespaced;
};
constexpr std::array<Kind, 19> kKinds = {{
    {"", "Pod", DecodePod, true},
    {"", "Node", DecodeNode, false},
    {"", "Namespace", DecodeNamespace, false},
    {"", "PersistentVolume", DecodePersistentVolume, false},
    {"", "PersistentVolumeClaim", DecodePersistentVolumeClaim, true},
    {"", "ResourceQuota", DecodeResourceQuota, true},
    {"scheduling.k8s.io", "PriorityClass", DecodePriorityClass, false},
    {"policy", "PodDisruptionBudget", DecodePodDisruptionBudget, true},
    {"scheduling.volcano.sh", "PodGroup", DecodePodGroup, true},
    {"scheduling.volcano.sh", "Queue", DecodeQueue, false},
    {"scheduling.x-k8s.io", "PodGroup", DecodeSchedulerPluginsPodGroup, true},
    {"topology.volcano.sh", "HyperNode", DecodeHyperNode, false},
    {"batch.volcano.sh", "Job", DecodeVcJob, true},
    {"batch", "Job", DecodeBatchJob, true},
    {"apps", "Deployment", DecodeDeployment, true},
    {"apps", "ReplicaSet", DecodeReplicaSet, true},
    {"apps", "StatefulSet", DecodeStatefulSet, true},
    {"apps", "DaemonSet", DecodeDaemonSet, true},
    {"leaderworkerset.x-k8s.io", "LeaderWorkerSet", DecodeLeaderWorkerSet, true},
}};

const Kind* FindKind(std::string_view api_version, std::string_view name) {
  const size_t slash = api_version.find('/');
  const std::string_view group =
      slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
  for (const Kind& kind : kKinds) {
    if (kind.kind == name && kind.group == group) return &kind;
  }
  return nullptr;
}

ObjectMeta& MutableMetaOf(Object& object) {
  return std::visit([](auto& typed) -> ObjectMeta& { return typed.meta; }, object);
}

// Which kind an object is; what it leaves out is taken from the List it stands in.
struct TypeMeta {
  std::string api_version, kind;
};

// Walks the root only as far as both are found; they come first as a rule.
bool PeekTypeMeta(JsonObject& object, TypeMeta& out) {
  bool has_version = false;
  bool has_kind = false;
  return object.Peek([&](std::string_view key, JsonValue& value) {
    if (key == "apiVersion" && !has_version) {
      has_version = true;
      if (!Decode(value, out.api_version)) return false;
    } else if (key == "kind" && !has_kind) {
      has_kind = true;
      if (!Decode(value, out.kind)) return false;
    }
    return !(has_version && has_kind);
  });
}

bool DecodeText(JsonObject& object, Object& out) {
  std::string_view text;
  if (!object.ReadWhole(text) || !DecodeUnknown(object, out)) return false;
  std::get<Unknown>(out).json = text;
  return true;
}

// `type` holds what stands in for a missing kind or apiVersion.
bool DecodeAny(JsonObject& object, TypeMeta type, Decoder::As as, Decoded& out) {
  if (!PeekTypeMeta(object, type)) return false;
  JsonContext& context = object.context();
  if (type.kind.empty()) return context.Fail(object.path(), "the kind is missing");
  if (type.api_version.empty()) return context.Fail(object.path(), "the apiVersion is missing");
  const Kind* kind = FindKind(type.api_version, type.kind);
  const auto decode = as == Decoder::As::kText ? DecodeText
                      : kind == nullptr        ? DecodeUnknown
                                               : kind->decode;
  if (!decode(object, out.object)) return false;
  ObjectMeta& meta = MutableMetaOf(out.object);
  if (meta.name.empty()) return context.Fail(object.path(), "metadata.name is missing");
  if (kind != nullptr && !kind->namespaced) meta.ns.clear();
  if (kind != nullptr && kind->namespaced && meta.ns.empty()) meta.ns = "default";
  out.api_version = std::move(type.api_version);
  out.kind = std::move(type.kind);
  out.warnings = std::move(context.warnings);
  return true;
}

// A List's own metadata.
bool ReadListMeta(JsonValue& value, ListMeta& out) {
  return value.ForEachField([&](std::string_view key, JsonValue& field) {
    if (key == "resourceVersion") return Decode(field, out.resource_version);
    if (key == "continue") return Decode(field, out.continue_token);
    if (key == "remainingItemCount") return Decode(field, out.remaining_items);
    return true;
  });
}

// What the items of such a List are when they do not say it themselves.
TypeMeta ItemType(const ListMeta& list) {
  static constexpr std::string_view kSuffix = "List";
  if (list.kind == kSuffix || !list.kind.ends_with(kSuffix)) return {};
  return {list.api_version, list.kind.substr(0, list.kind.size() - kSuffix.size())};
}

// False only when the text is broken, so that no further item can be found.
bool DecodeItem(JsonValue& value, const TypeMeta& type, Decoder::As as,
                const Decoder::ItemVisitor& visit) {
  const auto index = static_cast<size_t>(value.path()->index);
  JsonContext context;
  Decoded decoded;
  const bool ok = value.WithObject(
      context, nullptr, [&](JsonObject& object) { return DecodeAny(object, type, as, decoded); });
  if (ok) {
    visit(index, std::move(decoded));
    return true;
  }
  if (context.malformed) return value.Fail(context.error);
  visit(index, Invalid(std::move(context.error)));
  return true;
}

}  // namespace

struct Decoder::Impl {
  explicit Impl(As how) : as(how) {}

  As as;
  simdjson::ondemand::parser parser;
  std::string buffer;

  // Points `document` at `text`, which has room for simdjson to read past its end.
  bool Open(std::string& text, simdjson::ondemand::document& document,
            simdjson::ondemand::object& root, JsonContext& context) {
    if (text.capacity() < text.size() + simdjson::SIMDJSON_PADDING) {
      text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
    }
    auto error = parser.iterate(text.data(), text.size(), text.capacity()).get(document);
    if (error == simdjson::SUCCESS) error = document.get_object().get(root);
    if (error == simdjson::INCORRECT_TYPE) return context.Fail(nullptr, "expected an object");
    return error == simdjson::SUCCESS || context.FailSyntax(nullptr, error);
  }
};

namespace {

void CheckEnd(simdjson::ondemand::document& document, JsonContext& context) {
  if (document.current_location().error() == simdjson::SUCCESS) {
    context.Fail(nullptr, "malformed JSON: text after the object");
  }
}

}  // namespace

Decoder::Decoder(As as) : impl_(std::make_unique<Impl>(as)) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

Result<Decoded> Decoder::Decode(std::string_view json) {
  impl_->buffer.assign(json);
  return DecodeInPlace(impl_->buffer);
}

Result<Decoded> Decoder::DecodeInPlace(std::string& json) {
  JsonContext context;
  simdjson::ondemand::document document;
  simdjson::ondemand::object root;
  Decoded decoded;
  if (impl_->Open(json, document, root, context)) {
    JsonObject object(root, nullptr, context);
    if (DecodeAny(object, {}, impl_->as, decoded)) CheckEnd(document, context);
  }
  if (!context.error.empty()) return Invalid(std::move(context.error));
  return decoded;
}

Result<ListMeta> Decoder::DecodeList(std::string& json, const ItemVisitor& visit) {
  JsonContext context;
  simdjson::ondemand::document document;
  simdjson::ondemand::object root;
  ListMeta meta;
  TypeMeta type;
  if (!impl_->Open(json, document, root, context)) return Invalid(std::move(context.error));
  JsonObject object(root, nullptr, context);
  bool ok = PeekTypeMeta(object, type);
  meta.kind = std::move(type.kind);
  meta.api_version = std::move(type.api_version);
  if (ok && !meta.kind.ends_with("List")) {
    ok = context.Fail(nullptr, "expected a List, found kind \"" + meta.kind + "\"");
  }
  type = ItemType(meta);
  ok = ok && object.ForEachField([&](std::string_view key, JsonValue& value) {
    if (key == "metadata") return ReadListMeta(value, meta);
    if (key != "items") return true;
    return value.ForEachItem(
        [&](JsonValue& item) { return DecodeItem(item, type, impl_->as, visit); });
  });
  if (ok) CheckEnd(document, context);
  if (!context.error.empty()) return Invalid(std::move(context.error));
  return meta;
}

Result<Decoded> DecodeObject(std::string_view json) { return Decoder().Decode(json); }

const ObjectMeta& MetaOf(const Object& object) {
  return std::visit([](const auto& typed) -> const ObjectMeta& { return typed.meta; }, object);
}

}  // namespace hopwise::api
