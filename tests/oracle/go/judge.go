package main

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// lister lends the plugins the snapshot of the case at hand.
type lister struct {
	*cache.Snapshot
}

// judge holds the plugins, made once; each case only swaps what they see.
type judge struct {
	validate bool
	factory  *stillFactory
	lister   *lister
	// The default profile, and the scorers of nodeorder whose arguments are not its defaults.
	profile, nodeOrder framework.Framework
}

type answer struct {
	Passes  []string                    `json:"passes"`
	Reasons map[string]string           `json:"reasons"`
	Scores  map[string]map[string]int64 `json:"scores"`
	Invalid []string                    `json:"invalid,omitempty"`
	Error   string                      `json:"error,omitempty"`
}

func newJudge(validate bool) (*judge, error) {
	metrics.Register()
	client := fake.NewSimpleClientset()
	j := &judge{
		validate: validate,
		factory:  newStillFactory(client),
		lister:   &lister{cache.NewEmptySnapshot()},
	}
	ctx := klog.NewContext(context.Background(), klog.Background())
	claims := assumecache.NewAssumeCache(klog.Background(),
		j.factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	slices, err := resourceslicetracker.StartTracker(ctx, resourceslicetracker.Options{
		SliceInformer: j.factory.Resource().V1().ResourceSlices(),
		KubeClient:    client,
	})
	if err != nil {
		return nil, err
	}
	options := []runtime.Option{
		runtime.WithClientSet(client),
		runtime.WithInformerFactory(j.factory),
		runtime.WithSnapshotSharedLister(j.lister),
		runtime.WithEventRecorder(&events.FakeRecorder{}),
		runtime.WithParallelism(1),
		runtime.WithSharedDRAManager(dynamicresources.NewDRAManager(ctx, claims, slices, j.factory)),
		runtime.WithSharedCSIManager(
			nodevolumelimits.NewCSIManager(j.factory.Storage().V1().CSINodes().Lister())),
		runtime.WithWaitingPods(runtime.NewWaitingPodsMap()),
		runtime.WithPodsInPreBind(runtime.NewPodsInPreBindMap()),
	}
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	profile := &defaults.Profiles[0]
	registry := plugins.NewInTreeRegistry()
	if j.profile, err = runtime.NewFramework(ctx, registry, unweighted(profile), options...); err != nil {
		return nil, err
	}
	j.nodeOrder, err = runtime.NewFramework(ctx, registry, nodeOrderProfile(), options...)
	return j, err
}

// unweighted makes every score count once, so that a sum over plugins hides none.
func unweighted(profile *config.KubeSchedulerProfile) *config.KubeSchedulerProfile {
	for i := range profile.Plugins.MultiPoint.Enabled {
		profile.Plugins.MultiPoint.Enabled[i].Weight = 1
	}
	return profile
}

// nodeOrderProfile has what nodeorder asks of kube-scheduler's scorers besides the defaults: the
// fullest node first, and GPUs in the balance.
func nodeOrderProfile() *config.KubeSchedulerProfile {
	both := []config.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}}
	enabled := []config.Plugin{
		{Name: names.PrioritySort}, {Name: names.DefaultBinder},
		{Name: names.NodeResourcesFit, Weight: 1},
		{Name: names.NodeResourcesBalancedAllocation, Weight: 1},
	}
	return &config.KubeSchedulerProfile{
		SchedulerName: "nodeorder",
		Plugins:       &config.Plugins{MultiPoint: config.PluginSet{Enabled: enabled}},
		PluginConfig: []config.PluginConfig{
			{Name: names.NodeResourcesFit, Args: &config.NodeResourcesFitArgs{
				ScoringStrategy: &config.ScoringStrategy{Type: config.MostAllocated, Resources: both},
			}},
			{Name: names.NodeResourcesBalancedAllocation,
				Args: &config.NodeResourcesBalancedAllocationArgs{
					Resources: append(both, config.ResourceSpec{Name: "nvidia.com/gpu", Weight: 1}),
				}},
		},
	}
}

// plugins lists, by extension point, what takes part in judging a pod.
func (j *judge) plugins() map[string][]string {
	profile := j.profile.ListPlugins()
	listed := map[string][]string{
		"registry": slices.Sorted(maps.Keys(plugins.NewInTreeRegistry())),
	}
	for point, set := range map[string]config.PluginSet{
		"preEnqueue": profile.PreEnqueue,
		"preFilter":  profile.PreFilter,
		"filter":     profile.Filter,
		"preScore":   profile.PreScore,
		"score":      profile.Score,
	} {
		for _, plugin := range set.Enabled {
			listed[point] = append(listed[point], plugin.Name)
		}
		sort.Strings(listed[point])
	}
	return listed
}

// answer judges the pod of the case on every node. A panic of a plugin is told, not passed on.
func (j *judge) answer(given *givenCase) (out *answer) {
	out = &answer{
		Passes:  []string{},
		Reasons: map[string]string{},
		Scores:  map[string]map[string]int64{},
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			out.Error = fmt.Sprintf("panic: %v\n%s", panicked, debug.Stack())
		}
	}()
	given.setDefaults()
	if j.validate {
		out.Invalid = refused(given)
	}
	if err := given.tellAll(j.factory); err != nil {
		out.Error = err.Error()
		return out
	}
	j.lister.Snapshot = cache.NewSnapshot(given.placed(), given.Nodes)
	ctx := context.Background()
	state := framework.NewCycleState()
	passed := j.filter(ctx, state, given, out)
	for _, info := range passed {
		out.Passes = append(out.Passes, info.Node().Name)
	}
	if len(passed) > 0 {
		score(ctx, j.profile, state, given.Pod, passed, "", out)
		score(ctx, j.nodeOrder, framework.NewCycleState(), given.Pod, passed, "nodeorder/", out)
	}
	return out
}

// filter gives the nodes that pass all filters, in their order in the case.
func (j *judge) filter(
	ctx context.Context, state fwk.CycleState, given *givenCase, out *answer,
) []fwk.NodeInfo {
	for _, plugin := range j.profile.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(ctx, given.Pod); !status.IsSuccess() {
			refuseAll(given, status.WithPlugin(plugin.Name()), out)
			return nil
		}
	}
	wanted, status, _ := j.profile.RunPreFilterPlugins(ctx, state, given.Pod)
	if !status.IsSuccess() {
		refuseAll(given, status, out)
		return nil
	}
	var passed []fwk.NodeInfo
	for _, node := range given.Nodes {
		if !wanted.AllNodes() && !wanted.NodeNames.Has(node.Name) {
			out.Reasons[node.Name] = "PreFilter: not among the nodes that a plugin asks for"
			continue
		}
		info, err := j.lister.Get(node.Name)
		if err != nil {
			out.Error = err.Error()
			return nil
		}
		if status := j.profile.RunFilterPlugins(ctx, state, given.Pod, info); !status.IsSuccess() {
			out.Reasons[node.Name] = reason(status)
		} else {
			passed = append(passed, info)
		}
	}
	return passed
}

func refuseAll(given *givenCase, status *fwk.Status, out *answer) {
	for _, node := range given.Nodes {
		out.Reasons[node.Name] = reason(status)
	}
}

func reason(status *fwk.Status) string {
	text := status.Plugin() + ": " + strings.Join(status.Reasons(), ", ")
	if !status.IsRejected() {
		text = "error: " + text
	}
	return text
}

// score adds the normalised scores of the profile's plugins under their names.
func score(
	ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *corev1.Pod,
	nodes []fwk.NodeInfo, prefix string, out *answer,
) {
	status := profile.RunPreScorePlugins(ctx, state, pod, nodes)
	if !status.IsSuccess() {
		out.Error = reason(status)
		return
	}
	scored, status := profile.RunScorePlugins(ctx, state, pod, nodes)
	if !status.IsSuccess() {
		out.Error = reason(status)
		return
	}
	for _, node := range scored {
		for _, one := range node.Scores {
			if out.Scores[prefix+one.Name] == nil {
				out.Scores[prefix+one.Name] = map[string]int64{}
			}
			out.Scores[prefix+one.Name][node.Name] = one.Score
		}
	}
}
