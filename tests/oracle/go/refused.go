package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	coreconversion "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
)

// refused names what an API server would not take of a case: about such objects nothing is promised.
func refused(given *givenCase) []string {
	var found []string
	note := func(kind, name string, errors field.ErrorList) {
		for _, err := range errors {
			found = append(found, fmt.Sprintf("%s %s: %v", kind, name, err))
		}
	}
	for _, node := range given.Nodes {
		internal := &core.Node{}
		if err := coreconversion.Convert_v1_Node_To_core_Node(node, internal, nil); err != nil {
			found = append(found, err.Error())
			continue
		}
		note("node", node.Name, validation.ValidateNode(internal))
	}
	for _, pod := range append([]*corev1.Pod{given.Pod}, given.Pods...) {
		internal := &core.Pod{}
		if err := coreconversion.Convert_v1_Pod_To_core_Pod(pod, internal, nil); err != nil {
			found = append(found, err.Error())
			continue
		}
		options := podutil.GetValidationOptionsFromPodSpecAndMeta(
			&internal.Spec, nil, &internal.ObjectMeta, nil)
		options.ResourceIsPod = true
		note("pod", pod.Name, validation.ValidatePodCreate(internal, options))
	}
	for _, claim := range given.Claims {
		internal := &core.PersistentVolumeClaim{}
		if err := coreconversion.Convert_v1_PersistentVolumeClaim_To_core_PersistentVolumeClaim(
			claim, internal, nil); err != nil {
			found = append(found, err.Error())
			continue
		}
		options := validation.ValidationOptionsForPersistentVolumeClaimCreate()
		note("claim", claim.Name, validation.ValidatePersistentVolumeClaim(internal, options))
	}
	for _, volume := range given.Volumes {
		internal := &core.PersistentVolume{}
		if err := coreconversion.Convert_v1_PersistentVolume_To_core_PersistentVolume(
			volume, internal, nil); err != nil {
			found = append(found, err.Error())
			continue
		}
		options := validation.ValidationOptionsForPersistentVolume(internal, nil)
		note("volume", volume.Name, validation.ValidatePersistentVolume(internal, options))
	}
	return found
}
