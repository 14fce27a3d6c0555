#include "json_text.h"

#include <string_view>
#include <vector>

#include "cluster_builder.h"

namespace hopwise::bench {
namespace {

// Line breaks and the blanks after them are not part of the text; @n stands for the item's number,
// @g for its gang, @h for its node, @p for its place in the gang.
constexpr std::string_view kNode = R"json({
"metadata":{"name":"node-@n","uid":"8a1f6c1e-52c7-4d0e-9a57-00000000@n",
  "resourceVersion":"48120@n","creationTimestamp":"2026-01-02T03:04:05Z",
  "labels":{"beta.kubernetes.io/arch":"amd64","beta.kubernetes.io/os":"linux",
    "failure-domain.beta.kubernetes.io/region":"eu-north-1",
    "failure-domain.beta.kubernetes.io/zone":"eu-north-1a","kubernetes.io/arch":"amd64",
    "kubernetes.io/hostname":"node-@n","kubernetes.io/os":"linux",
    "node.kubernetes.io/instance-type":"gpu-8x.h100","nvidia.com/cuda.driver.major":"550",
    "nvidia.com/gpu.count":"8","nvidia.com/gpu.family":"hopper","nvidia.com/gpu.memory":"81559",
    "nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3","nvidia.com/mig.capable":"true",
    "topology.kubernetes.io/region":"eu-north-1","topology.kubernetes.io/zone":"eu-north-1a"},
  "annotations":{"csi.volume.kubernetes.io/nodeid":"{\"csi.example.com\":\"node-@n\"}",
    "kubeadm.alpha.kubernetes.io/cri-socket":"unix:///run/containerd/containerd.sock",
    "node.alpha.kubernetes.io/ttl":"0",
    "volumes.kubernetes.io/controller-managed-attach-detach":"true"},
  "managedFields":[
    {"manager":"kubeadm","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z",
      "fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{
        "f:kubeadm.alpha.kubernetes.io/cri-socket":{}}}}},
    {"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1",
      "time":"2026-01-02T03:05:05Z","fieldsType":"FieldsV1","fieldsV1":{
        "f:metadata":{"f:annotations":{"f:node.alpha.kubernetes.io/ttl":{}}},
        "f:spec":{"f:podCIDR":{},"f:podCIDRs":{".":{},"v:\"10.244.0.0/24\"":{}}}}},
    {"manager":"node-feature-discovery","operation":"Update","apiVersion":"v1",
      "time":"2026-01-02T03:06:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{
        "f:nvidia.com/cuda.driver.major":{},"f:nvidia.com/gpu.count":{},
        "f:nvidia.com/gpu.family":{},"f:nvidia.com/gpu.memory":{},"f:nvidia.com/gpu.product":{},
        "f:nvidia.com/mig.capable":{}}}}},
    {"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-02-02T03:04:05Z",
      "fieldsType":"FieldsV1","fieldsV1":{
        "f:metadata":{"f:annotations":{".":{},"f:csi.volume.kubernetes.io/nodeid":{},
          "f:volumes.kubernetes.io/controller-managed-attach-detach":{}},
          "f:labels":{".":{},"f:beta.kubernetes.io/arch":{},"f:beta.kubernetes.io/os":{},
            "f:kubernetes.io/arch":{},"f:kubernetes.io/hostname":{},"f:kubernetes.io/os":{}}},
        "f:status":{"f:allocatable":{"f:cpu":{},"f:memory":{},"f:nvidia.com/gpu":{}},
          "f:capacity":{"f:cpu":{},"f:memory":{},"f:nvidia.com/gpu":{}},
          "f:conditions":{
            "k:{\"type\":\"DiskPressure\"}":{"f:lastHeartbeatTime":{}},
            "k:{\"type\":\"MemoryPressure\"}":{"f:lastHeartbeatTime":{}},
            "k:{\"type\":\"PIDPressure\"}":{"f:lastHeartbeatTime":{}},
            "k:{\"type\":\"Ready\"}":{"f:lastHeartbeatTime":{},"f:lastTransitionTime":{},
              "f:message":{},"f:reason":{},"f:status":{}}},"f:images":{}}},
      "subresource":"status"}]},
"spec":{"podCIDR":"10.244.0.0/24","podCIDRs":["10.244.0.0/24"],
  "providerID":"example://eu-north-1a/node-@n"},
"status":{
  "capacity":{"cpu":"128","ephemeral-storage":"7501476528Ki","hugepages-1Gi":"0",
    "hugepages-2Mi":"0","memory":"2113411308Ki","nvidia.com/gpu":"8","pods":"110",
    "rdma/hca":"8"},
  "allocatable":{"cpu":"127500m","ephemeral-storage":"6913360763425","hugepages-1Gi":"0",
    "hugepages-2Mi":"0","memory":"2112000Mi","nvidia.com/gpu":"8","pods":"110","rdma/hca":"8"},
  "conditions":[
    {"type":"MemoryPressure","status":"False","lastHeartbeatTime":"2026-02-02T03:04:05Z",
      "lastTransitionTime":"2026-01-02T03:04:05Z","reason":"KubeletHasSufficientMemory",
      "message":"kubelet has sufficient memory available"},
    {"type":"DiskPressure","status":"False","lastHeartbeatTime":"2026-02-02T03:04:05Z",
      "lastTransitionTime":"2026-01-02T03:04:05Z","reason":"KubeletHasNoDiskPressure",
      "message":"kubelet has no disk pressure"},
    {"type":"PIDPressure","status":"False","lastHeartbeatTime":"2026-02-02T03:04:05Z",
      "lastTransitionTime":"2026-01-02T03:04:05Z","reason":"KubeletHasSufficientPID",
      "message":"kubelet has sufficient PID available"},
    {"type":"Ready","status":"True","lastHeartbeatTime":"2026-02-02T03:04:05Z",
      "lastTransitionTime":"2026-01-02T03:05:05Z","reason":"KubeletReady",
      "message":"kubelet is posting ready status"}],
  "addresses":[{"type":"InternalIP","address":"10.0.0.1"},
    {"type":"Hostname","address":"node-@n"}],
  "daemonEndpoints":{"kubeletEndpoint":{"Port":10250}},
  "nodeInfo":{"machineID":"4b2a9c51d0","systemUUID":"6f1c9e02-11aa-4c5e-b0c3-0000@n",
    "bootID":"0f4d2c6e","kernelVersion":"6.1.0-18-amd64",
    "osImage":"Debian GNU/Linux 12 (bookworm)","containerRuntimeVersion":"containerd://1.7.13",
    "kubeletVersion":"v1.33.1","kubeProxyVersion":"v1.33.1","operatingSystem":"linux",
    "architecture":"amd64"},
  "images":[
    {"names":["registry.example.com/ml/train@sha256:5d0da3dc976460b72c77d94c8a1ad043720b0416",
      "registry.example.com/ml/train:24.05"],"sizeBytes":21474836480},
    {"names":["registry.example.com/cni/agent@sha256:7e7451fb2d4ac2a8c3b1f0f6a8e6d1a3",
      "registry.example.com/cni/agent:v1.16"],"sizeBytes":251658240},
    {"names":["registry.k8s.io/pause:3.9"],"sizeBytes":321520}]}})json";

constexpr std::string_view kPod = R"json({
"metadata":{"name":"train-@g-worker-@p","generateName":"train-@g-worker-","namespace":"bench",
  "uid":"c1d7b3e2-9c1a-4f0e-8a57-00000000@n","resourceVersion":"58120@n",
  "creationTimestamp":"2026-02-02T03:04:05Z",
  "labels":{"app.kubernetes.io/component":"worker","app.kubernetes.io/managed-by":"volcano",
    "app.kubernetes.io/name":"train","app.kubernetes.io/version":"24.05",
    "bench.hopwise.dev/team":"research","volcano.sh/job-name":"train-@g",
    "volcano.sh/job-namespace":"bench","volcano.sh/queue-name":"default",
    "volcano.sh/task-index":"@p","volcano.sh/task-spec":"worker"},
  "annotations":{"scheduling.k8s.io/group-name":"train-@g","volcano.sh/task-spec":"worker"},
  "ownerReferences":[{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","name":"train-@g",
    "uid":"0a7f6c1e-52c7-4d0e-9a57-00000000@g","controller":true,"blockOwnerDeletion":true}],
  "managedFields":[
    {"manager":"vc-controller-manager","operation":"Update","apiVersion":"v1",
      "time":"2026-02-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{
        "f:metadata":{"f:annotations":{".":{},"f:scheduling.k8s.io/group-name":{},
          "f:volcano.sh/task-spec":{}},"f:generateName":{},
          "f:labels":{".":{},"f:app.kubernetes.io/component":{},
            "f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},
            "f:app.kubernetes.io/version":{},"f:bench.hopwise.dev/team":{},
            "f:volcano.sh/job-name":{},"f:volcano.sh/job-namespace":{},
            "f:volcano.sh/queue-name":{},"f:volcano.sh/task-index":{},"f:volcano.sh/task-spec":{}},
          "f:ownerReferences":{".":{},
            "k:{\"uid\":\"0a7f6c1e-52c7-4d0e-9a57-00000000@g\"}":{}}},
        "f:spec":{"f:containers":{"k:{\"name\":\"worker\"}":{".":{},"f:command":{},"f:env":{".":{},
          "k:{\"name\":\"NCCL_DEBUG\"}":{".":{},"f:name":{},"f:value":{}},
          "k:{\"name\":\"RANK\"}":{".":{},"f:name":{},"f:value":{}},
          "k:{\"name\":\"WORLD_SIZE\"}":{".":{},"f:name":{},"f:value":{}}},
          "f:image":{},"f:imagePullPolicy":{},"f:name":{},
          "f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{},
            "f:nvidia.com/gpu":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{},
            "f:nvidia.com/gpu":{}}},
          "f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},
          "f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},
          "f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}},
    {"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-02-02T03:05:05Z",
      "fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{
        "k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:status":{},"f:type":{}},
        "k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:status":{},"f:type":{}},
        "k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:status":{},"f:type":{}}},
        "f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},
          "k:{\"ip\":\"10.244.1.17\"}":{".":{},"f:ip":{}}},"f:startTime":{}}},
      "subresource":"status"}]},
"spec":{
  "volumes":[{"name":"shm","emptyDir":{"medium":"Memory","sizeLimit":"64Gi"}},
    {"name":"kube-api-access-7xk2p","projected":{"sources":[
      {"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},
      {"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},
      {"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1",
        "fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],
  "containers":[{"name":"worker","image":"registry.example.com/ml/train:24.05",
    "command":["torchrun","--nnodes=8","--nproc-per-node=4","train.py"],
    "env":[{"name":"NCCL_DEBUG","value":"WARN"},{"name":"RANK","value":"@p"},
      {"name":"WORLD_SIZE","value":"8"}],
    "resources":{"limits":{"cpu":"32","memory":"512Gi","nvidia.com/gpu":"4"},
      "requests":{"cpu":"32","memory":"512Gi","nvidia.com/gpu":"4"}},
    "volumeMounts":[{"name":"shm","mountPath":"/dev/shm"},{"name":"kube-api-access-7xk2p",
      "readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],
    "terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",
    "imagePullPolicy":"IfNotPresent"}],
  "restartPolicy":"OnFailure","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",
  "serviceAccountName":"default","serviceAccount":"default","nodeName":"node-@h",
  "securityContext":{},"schedulerName":"volcano",
  "tolerations":[
    {"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"},
    {"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",
      "tolerationSeconds":300},
    {"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute",
      "tolerationSeconds":300}],
  "priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},
"status":{"phase":"Running",
  "conditions":[
    {"type":"Initialized","status":"True","lastProbeTime":null,
      "lastTransitionTime":"2026-02-02T03:04:05Z"},
    {"type":"Ready","status":"True","lastProbeTime":null,
      "lastTransitionTime":"2026-02-02T03:05:05Z"},
    {"type":"ContainersReady","status":"True","lastProbeTime":null,
      "lastTransitionTime":"2026-02-02T03:05:05Z"},
    {"type":"PodScheduled","status":"True","lastProbeTime":null,
      "lastTransitionTime":"2026-02-02T03:04:05Z"}],
  "hostIP":"10.0.0.1","hostIPs":[{"ip":"10.0.0.1"}],"podIP":"10.244.1.17",
  "podIPs":[{"ip":"10.244.1.17"}],"startTime":"2026-02-02T03:04:05Z",
  "containerStatuses":[{"name":"worker","state":{"running":{"startedAt":"2026-02-02T03:05:04Z"}},
    "lastState":{},"ready":true,"restartCount":0,"image":"registry.example.com/ml/train:24.05",
    "imageID":"registry.example.com/ml/train@sha256:5d0da3dc976460b72c77d94c8a1ad043720b0416",
    "containerID":"containerd://b6a1d6e0c84f3c9d0c3d5e0a@n","started":true}],
  "qosClass":"Guaranteed"}})json";

// A template cut at its marks: fixed text, then what to write.
struct Piece {
  std::string text;
  char mark = 0;  // 0: nothing, the text ends here
};

std::vector<Piece> Cut(std::string_view text) {
  std::vector<Piece> pieces(1);
  for (size_t i = 0; i < text.size(); ++i) {
    const bool marked = text[i] == '@' && i + 1 < text.size() &&
                        std::string_view("nghp").find(text[i + 1]) != std::string_view::npos;
    if (text[i] == '\n') {
      while (i + 1 < text.size() && text[i + 1] == ' ') {
        ++i;
      }
    } else if (marked) {
      pieces.back().mark = text[++i];
      pieces.emplace_back();
    } else {
      pieces.back().text += text[i];
    }
  }
  return pieces;
}

std::string MakePage(const std::vector<Piece>& item, std::string_view kind, size_t first,
                     size_t count) {
  std::string page = R"({"kind":")" + std::string(kind) +
                     R"(","apiVersion":"v1","metadata":{"resourceVersion":"99999"},"items":[)";
  for (size_t i = first; i < first + count; ++i) {
    if (i > first) {
      page += ',';
    }
    for (const Piece& piece : item) {
      page += piece.text;
      switch (piece.mark) {
        case 'n':
          page += std::to_string(i);
          break;
        case 'g':
          page += std::to_string(i / kPodsPerGang);
          break;
        case 'h':
          page += std::to_string(i / 2);
          break;
        case 'p':
          page += std::to_string(i % kPodsPerGang);
          break;
        default:
          break;
      }
    }
  }
  page += "]}";
  return page;
}

}  // namespace

std::string GangName(size_t gang) { return "train-" + std::to_string(gang); }

std::string NodePage(size_t first, size_t count) {
  static const std::vector<Piece> kItem = Cut(kNode);
  return MakePage(kItem, "NodeList", first, count);
}

std::string PodPage(size_t first, size_t count) {
  static const std::vector<Piece> kItem = Cut(kPod);
  return MakePage(kItem, "PodList", first, count);
}

}  // namespace hopwise::bench
