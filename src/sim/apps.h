// Deployment, ReplicaSet, StatefulSet, batch Job and LeaderWorkerSet: the objects their controllers
// make, by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/objects.h"

namespace hopwise::sim {

// The ReplicaSet of the Deployment's present template: <name>-<hash>.
Json DeploymentReplicaSet(const Json& deployment);
// Whether a ReplicaSet was made from this very template.
bool HasTemplateOf(const Json& replica_set, const Json& deployment);

// <replica set>-<five characters>; `salt` tells the pods apart.
Json ReplicaSetPod(const Json& replica_set, uint64_t salt);

std::string StatefulSetRevision(const Json& stateful_set);
// <name>-<ordinal>.
Json StatefulSetPod(const Json& stateful_set, int64_t ordinal);

// <name>-<index>-<five characters> when the Job is indexed, else <name>-<five characters>; index
// -1: not indexed.
Json BatchJobPod(const Json& job, int64_t index, uint64_t salt);
bool IsIndexed(const Json& job);

// A LeaderWorkerSet's pod: <name>-<group> for index 0, the leader; <name>-<group>-<index> for a
// worker. `pod_group` "" leaves the pod as its template says.
Json LwsPod(const Json& lws, int64_t group, int64_t index, std::string_view pod_group);
int64_t LwsSize(const Json& lws);
// <name>-<group>-<revision>, one per group of `size` pods. As v0.8.0 of their controller makes it:
// the set's own annotations tell the queue, and no topology and no priority are written into it.
Json LwsPodGroup(const Json& lws, int64_t group);
// Whether the set's groups get PodGroups of ours: the template names no group itself.
bool LwsWantsPodGroups(const Json& lws);

}  // namespace hopwise::sim
