package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/conversion"
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
	checkEach(&found, given.Nodes, coreconversion.Convert_v1_Node_To_core_Node,
		func(node *core.Node) {
			note("node", node.Name, validation.ValidateNode(node))
		})
	checkEach(&found, append([]*corev1.Pod{given.Pod}, given.Pods...),
		coreconversion.Convert_v1_Pod_To_core_Pod,
		func(pod *core.Pod) {
			options := podutil.GetValidationOptionsFromPodSpecAndMeta(
				&pod.Spec, nil, &pod.ObjectMeta, nil)
			options.ResourceIsPod = true
			note("pod", pod.Name, validation.ValidatePodCreate(pod, options))
		})
	checkEach(&found, given.Claims,
		coreconversion.Convert_v1_PersistentVolumeClaim_To_core_PersistentVolumeClaim,
		func(claim *core.PersistentVolumeClaim) {
			options := validation.ValidationOptionsForPersistentVolumeClaimCreate()
			note("claim", claim.Name, validation.ValidatePersistentVolumeClaim(claim, options))
		})
	checkEach(&found, given.Volumes, coreconversion.Convert_v1_PersistentVolume_To_core_PersistentVolume,
		func(volume *core.PersistentVolume) {
			options := validation.ValidationOptionsForPersistentVolume(volume, nil)
			note("volume", volume.Name, validation.ValidatePersistentVolume(volume, options))
		})
	return found
}

// checkEach shows each object to check in the form in which an API server validates it. What has no such
// form is found at fault.
func checkEach[Given, Internal any](found *[]string, objects []*Given,
	convert func(*Given, *Internal, conversion.Scope) error, check func(*Internal)) {
	for _, object := range objects {
		internal := new(Internal)
		if err := convert(object, internal, nil); err != nil {
			*found = append(*found, err.Error())
			continue
		}
		check(internal)
	}
}
