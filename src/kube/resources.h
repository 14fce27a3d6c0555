// The resources we read and write, and the paths they live at.
#pragma once

#include <string>
#include <string_view>

namespace hopwise::kube {

struct Resource {
  std::string_view group;  // "" is core
  std::string_view version;
  std::string_view plural;
  std::string_view kind;
  bool namespaced = true;

  friend bool operator==(const Resource&, const Resource&) = default;
};

inline constexpr Resource kPods{"", "v1", "pods", "Pod"};
inline constexpr Resource kNodes{"", "v1", "nodes", "Node", false};
inline constexpr Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
inline constexpr Resource kSecrets{"", "v1", "secrets", "Secret"};
inline constexpr Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline constexpr Resource kEvents{"", "v1", "events", "Event"};
inline constexpr Resource kPriorityClasses{"scheduling.k8s.io", "v1", "priorityclasses",
                                           "PriorityClass", false};
inline constexpr Resource kServices{"", "v1", "services", "Service"};
inline constexpr Resource kClaims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"};
inline constexpr Resource kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies",
                                           "NetworkPolicy"};
inline constexpr Resource kReplicaSets{"apps", "v1", "replicasets", "ReplicaSet"};
inline constexpr Resource kStatefulSets{"apps", "v1", "statefulsets", "StatefulSet"};
inline constexpr Resource kBatchJobs{"batch", "v1", "jobs", "Job"};
inline constexpr Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};
inline constexpr Resource kPodGroups{"scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"};
inline constexpr Resource kPluginPodGroups{"scheduling.x-k8s.io", "v1alpha1", "podgroups",
                                           "PodGroup"};
inline constexpr Resource kQueues{"scheduling.volcano.sh", "v1beta1", "queues", "Queue", false};
inline constexpr Resource kHyperNodes{"topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode",
                                      false};
inline constexpr Resource kVcJobs{"batch.volcano.sh", "v1alpha1", "jobs", "Job"};
inline constexpr Resource kCommands{"bus.volcano.sh", "v1alpha1", "commands", "Command"};
inline constexpr Resource kMutatingWebhooks{"admissionregistration.k8s.io", "v1",
                                            "mutatingwebhookconfigurations",
                                            "MutatingWebhookConfiguration", false};
inline constexpr Resource kValidatingWebhooks{"admissionregistration.k8s.io", "v1",
                                              "validatingwebhookconfigurations",
                                              "ValidatingWebhookConfiguration", false};

// "/api/v1/pods", "/apis/scheduling.volcano.sh/v1beta1/namespaces/ml/podgroups": of all namespaces
// where `ns` is "".
std::string CollectionPath(const Resource& resource, std::string_view ns = "");
// "/api/v1/namespaces/ml/pods/a", "…/a/status" with the subresource.
std::string ObjectPath(const Resource& resource, std::string_view ns, std::string_view name,
                       std::string_view subresource = "");
// "v1", "scheduling.volcano.sh/v1beta1", as objects name it.
std::string ApiVersionOf(const Resource& resource);
// "podgroups.scheduling.volcano.sh", as RBAC and error messages name it.
std::string ResourceName(const Resource& resource);
// Whether a resourceVersion is before another: they are decimal numbers that grow. False when one
// is not known.
bool IsOlder(std::string_view version, std::string_view than);
// Percent-encoding for one value of a query or one segment of a path.
std::string UrlEscape(std::string_view text);

}  // namespace hopwise::kube
