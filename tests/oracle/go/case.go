package main

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	coredefaults "k8s.io/kubernetes/pkg/apis/core/v1"
	resourcedefaults "k8s.io/kubernetes/pkg/apis/resource/v1"
	storagedefaults "k8s.io/kubernetes/pkg/apis/storage/v1"
)

// givenCase is a cluster and the pod to be judged on it. Objects are as an API server stores them,
// but for defaults, which are set here.
type givenCase struct {
	Nodes                []*corev1.Node                  `json:"nodes"`
	Pods                 []*corev1.Pod                   `json:"pods"`
	Namespaces           []*corev1.Namespace             `json:"namespaces"`
	Services             []*corev1.Service               `json:"services"`
	Claims               []*corev1.PersistentVolumeClaim `json:"pvcs"`
	Volumes              []*corev1.PersistentVolume      `json:"pvs"`
	StorageClasses       []*storagev1.StorageClass       `json:"storageClasses"`
	CSINodes             []*storagev1.CSINode            `json:"csiNodes"`
	CSIDrivers           []*storagev1.CSIDriver          `json:"csiDrivers"`
	CSIStorageCapacities []*storagev1.CSIStorageCapacity `json:"csiStorageCapacities"`
	VolumeAttachments    []*storagev1.VolumeAttachment   `json:"volumeAttachments"`
	ResourceClaims       []*resourcev1.ResourceClaim     `json:"resourceClaims"`
	ResourceSlices       []*resourcev1.ResourceSlice     `json:"resourceSlices"`
	DeviceClasses        []*resourcev1.DeviceClass       `json:"deviceClasses"`
	Pod                  *corev1.Pod                     `json:"pod"`
}

func each[T any](items []*T, do func(*T)) {
	for _, item := range items {
		do(item)
	}
}

func (c *givenCase) setDefaults() {
	each(c.Nodes, coredefaults.SetObjectDefaults_Node)
	each(c.Pods, coredefaults.SetObjectDefaults_Pod)
	each(c.Namespaces, coredefaults.SetObjectDefaults_Namespace)
	each(c.Services, coredefaults.SetObjectDefaults_Service)
	each(c.Claims, coredefaults.SetObjectDefaults_PersistentVolumeClaim)
	each(c.Volumes, coredefaults.SetObjectDefaults_PersistentVolume)
	each(c.StorageClasses, storagedefaults.SetObjectDefaults_StorageClass)
	each(c.CSIDrivers, storagedefaults.SetObjectDefaults_CSIDriver)
	each(c.ResourceClaims, resourcedefaults.SetObjectDefaults_ResourceClaim)
	each(c.ResourceSlices, resourcedefaults.SetObjectDefaults_ResourceSlice)
	coredefaults.SetObjectDefaults_Pod(c.Pod)
}

// placed are the pods that the scheduler's cache would hold: assigned to a node that exists, and
// not ended. Its informer does not even hear of those that ended.
func (c *givenCase) placed() []*corev1.Pod {
	exists := map[string]bool{}
	for _, node := range c.Nodes {
		exists[node.Name] = true
	}
	var placed []*corev1.Pod
	for _, pod := range c.Pods {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !ended && exists[pod.Spec.NodeName] {
			placed = append(placed, pod)
		}
	}
	return placed
}

func (c *givenCase) tellAll(factory *stillFactory) error {
	return errors.Join(
		tell(factory, c.Nodes),
		tell(factory, append([]*corev1.Pod{c.Pod}, c.Pods...)),
		tell(factory, c.Namespaces),
		tell(factory, c.Services),
		tell(factory, c.StorageClasses),
		tell(factory, c.Volumes),
		tell(factory, c.Claims),
		tell(factory, c.CSINodes),
		tell(factory, c.CSIDrivers),
		tell(factory, c.CSIStorageCapacities),
		tell(factory, c.VolumeAttachments),
		tell(factory, c.DeviceClasses),
		tell(factory, c.ResourceSlices),
		tell(factory, c.ResourceClaims),
	)
}
