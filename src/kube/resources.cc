#include "kube/resources.h"

#include <utility>

#include "base/check.h"

namespace hopwise::kube {
namespace {

// RFC 3986, 2.3: what never needs an escape.
bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

bool IsOlder(std::string_view version, std::string_view than) {
  return std::pair(version.size(), version) < std::pair(than.size(), than) && !version.empty();
}

std::string UrlEscape(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (IsUnreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4U];
    out += kHex[byte & 15U];
  }
  return out;
}

std::string CollectionPath(const Resource& resource, std::string_view ns) {
  std::string path = resource.group.empty() ? "/api/" : "/apis/";
  if (!resource.group.empty()) {
    path += resource.group;
    path += '/';
  }
  path += resource.version;
  if (resource.namespaced && !ns.empty()) path += "/namespaces/" + UrlEscape(ns);
  path += '/';
  path += resource.plural;
  return path;
}

std::string ObjectPath(const Resource& resource, std::string_view ns, std::string_view name,
                       std::string_view subresource) {
  // Without a name this would be the path of all objects of the kind.
  HOPWISE_CHECK(!name.empty());
  std::string path = CollectionPath(resource, ns) + '/' + UrlEscape(name);
  if (!subresource.empty()) {
    path += '/';
    path += subresource;
  }
  return path;
}

std::string ApiVersionOf(const Resource& resource) {
  std::string version(resource.group);
  version += version.empty() ? "" : "/";
  version += resource.version;
  return version;
}

std::string ResourceName(const Resource& resource) {
  std::string name(resource.plural);
  if (!resource.group.empty()) {
    name += '.';
    name += resource.group;
  }
  return name;
}

}  // namespace hopwise::kube
