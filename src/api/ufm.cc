#include "api/ufm.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

namespace hopwise::api {
namespace {

// "N/A" and "" mean the same.
std::string_view TextOf(simdjson::ondemand::value value) {
  std::string_view text;
  if (value.get_string().get(text) != simdjson::SUCCESS || text == "N/A") return {};
  return text;
}

std::string GuidOf(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::string guid(text);
  std::ranges::transform(guid, guid.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return guid;
}

// "b83fd20300aa0001_1": guid and number.
void SplitName(std::string_view name, std::string& guid, std::string& number) {
  const size_t mark = name.rfind('_');
  guid = GuidOf(name.substr(0, mark));
  if (mark != std::string_view::npos) number = name.substr(mark + 1);
}

simdjson::error_code ReadPort(simdjson::ondemand::object& object, UfmPort& port) {
  std::string guid;  // of the adapter or switch, where `name` does not tell it
  for (auto result : object) {
    simdjson::ondemand::field field;
    if (const auto error = std::move(result).get(field); error != simdjson::SUCCESS) return error;
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key); error != simdjson::SUCCESS) return error;
    if (key == "name") {
      SplitName(TextOf(field.value()), port.guid, port.number);
    } else if (key == "guid") {
      guid = GuidOf(TextOf(field.value()));
    } else if (key == "system_name") {
      port.system_name = TextOf(field.value());
    } else if (key == "description") {
      port.is_switch = TextOf(field.value()).find("Switch") != std::string_view::npos;
    } else if (key == "logical_state") {
      port.up = TextOf(field.value()) == "Active";
    } else if (key == "peer") {
      SplitName(TextOf(field.value()), port.peer_guid, port.peer_number);
    } else if (key == "peer_node_name") {
      port.peer_name = TextOf(field.value());
    }
  }
  if (!guid.empty()) port.guid = guid;
  return simdjson::SUCCESS;
}

}  // namespace

Result<UfmPorts> ReadUfmPorts(std::string& json) {
  json.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  simdjson::ondemand::array array;
  auto error = parser.iterate(json.data(), json.size(), json.capacity()).get(document);
  if (error == simdjson::SUCCESS) error = document.get_array().get(array);
  if (error != simdjson::SUCCESS) {
    return Invalid(fmt::format("the answer is no list of ports, or cut off: {}",
                               simdjson::error_message(error)));
  }
  UfmPorts out;
  size_t index = 0;
  for (auto result : array) {
    simdjson::ondemand::object object;
    error = result.get_object().get(object);
    UfmPort port;
    if (error == simdjson::SUCCESS) error = ReadPort(object, port);
    if (error != simdjson::SUCCESS) {
      return Invalid(fmt::format("the answer is cut off or malformed at port {}: {}", index,
                                 simdjson::error_message(error)));
    }
    ++index;
    if (port.guid.empty() || port.system_name.empty()) {
      ++out.unusable;
    } else {
      out.ports.push_back(std::move(port));
    }
  }
  if (document.current_location().error() == simdjson::SUCCESS) {
    return Invalid("the answer is malformed: text after the list");
  }
  // What a machine is cabled to is a switch, unless the answer has it as another machine.
  std::set<std::string_view> switches;
  std::set<std::string_view> machines;
  for (const UfmPort& port : out.ports) {
    (port.is_switch ? switches : machines).insert(port.guid);
  }
  for (UfmPort& port : out.ports) {
    port.peer_is_switch =
        switches.contains(port.peer_guid) ||
        (!port.is_switch && !port.peer_guid.empty() && !machines.contains(port.peer_guid));
  }
  return out;
}

}  // namespace hopwise::api
