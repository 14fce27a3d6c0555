// The topology that UFM tells of an InfiniBand fabric: volcano-controller.conf's source "ufm".
//
// Machines are nodes by their host names. Leaf switches that share most of their nodes are rails of
// one unit (tier 1): most, so that one cable in the wrong place does not melt two units into one. A
// node whose cables end in several units belongs to the one with most of them. Further up, a
// switch's level is its distance from the nodes; domains of one tier that share most of their
// switches of the next level lie in one domain above. What is connected at all lies in one tree: a
// last tier joins what the majorities left apart. A tier that joins nothing is left out.
//
// Domains are told by the least GUID of their switches, and found again by most of their members,
// so that an exchanged switch changes no name.
//
// A port that is down takes no node out of its unit as long as another port tells where it is. A
// node that UFM does not tell anything of any more stays in the HyperNode that it was in, with a
// warning, since a broken cable or a reboot is no move.
#pragma once

#include <string_view>
#include <vector>

#include "api/batch.h"
#include "api/ufm.h"
#include "base/result.h"
#include "control/discovery.h"

namespace hopwise::control {

inline constexpr std::string_view kUfmSource = "ufm";

// `nodes`: names of the cluster's nodes, sorted. `existing`: all HyperNodes, in the order of their
// names. An error where the answer cannot be whole: it has no link of any node, or more than
// `most_lost_percent` of the nodes that lie in HyperNodes of the source have vanished from it.
Result<Discovery> DiscoverByUfm(const api::UfmPorts& ports,
                                const std::vector<std::string_view>& nodes,
                                const std::vector<const api::HyperNode*>& existing,
                                int most_lost_percent);

}  // namespace hopwise::control
