// What UFM says of the ports of an InfiniBand fabric: GET <endpoint>/ufmRest/resources/ports.
// Format: UFM Enterprise's REST guide, "Ports REST API".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hopwise::api {

// One end of a link. Of what is behind it ("peer") nothing is known where the port is not cabled,
// or UFM has lost sight of it.
struct UfmPort {
  std::string guid;         // of the switch or adapter, without "0x"
  std::string system_name;  // of the switch, or of the machine: its host name
  std::string number;       // of the port: with the guid it names it
  bool is_switch = false;
  bool up = false;  // logical_state Active
  std::string peer_guid, peer_name, peer_number;
  bool peer_is_switch = false;  // as the rest of the answer tells
};

struct UfmPorts {
  std::vector<UfmPort> ports;  // in the order of the answer
  size_t unusable = 0;         // entries without a guid or a system name
};

// An answer that is no JSON, cut off, or no list of objects is an error that says where.
Result<UfmPorts> ReadUfmPorts(std::string& json);

}  // namespace hopwise::api
