package karpenter

import (
	"fmt"
	"slices"
	"testing"

	core "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
)

type ask map[core.ResourceName]string

func asking(name string, a ask) *core.Pod {
	limits := core.ResourceList{}
	for resource, count := range a {
		limits[resource] = quantity.MustParse(count)
	}
	return &core.Pod{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default"}, Spec: core.PodSpec{Containers: []core.Container{
		{Name: "main", Image: "x", Resources: core.ResourceRequirements{Limits: limits, Requests: limits}}}}}
}

// TestOverlaysAreValid: one for each type, without interfaces for each with devices, all accepted by Karpenter's own controller.
func TestOverlaysAreValid(t *testing.T) {
	types := allTypes(t)
	withDevices := slices.DeleteFunc(slices.Clone(types), func(f facts) bool { return f.Devices.Count == 0 })
	for i, choice := range [][]string{nil, {"--lnc", "1"}, {"--core-devices", "none"}, {"--neurondevice", "--resources", "neurondevice"}} {
		all, want := overlays(t, choice...), types
		if i == 3 {
			want = withDevices
		}
		if len(all) != len(want) {
			t.Errorf("%v: %d overlays of %d types", choice, len(all), len(want))
		}
		s := start(t, all, nil, true)
		var list v1alpha1.NodeOverlayList
		if err := s.client.List(s.ctx, &list); err != nil {
			t.Fatal(err)
		}
		for _, one := range list.Items {
			if !one.StatusConditions().IsTrue(v1alpha1.ConditionTypeValidationSucceeded) {
				t.Errorf("%v: %s: %+v", choice, one.Name, one.Status.Conditions)
			}
		}
	}
}

// TestResources: with the overlays of some options of `run` Karpenter starts the cheapest type on which the agent registers what the pod
// asks for, and none where no type has it. Without overlays it counts physical cores.
func TestResources(t *testing.T) {
	none, usual := []v1alpha1.NodeOverlay{}, overlays(t)
	lnc1, whole, old := overlays(t, "--lnc", "1"), overlays(t, "--core-devices", "none"), overlays(t, "--neurondevice")
	for _, each := range []struct {
		placed []v1alpha1.NodeOverlay
		of     string
		ask    ask
		want   string // "": refused
	}{
		{usual, "usual", ask{neuronCore: "1"}, "inf1.xlarge"},
		{usual, "usual", ask{neuronCore: "5"}, "inf1.6xlarge"},
		{usual, "usual", ask{neuronCore: "32", efa: "8"}, "trn1.32xlarge"},
		{usual, "usual", ask{neuronCore: "65"}, ""},
		{usual, "usual", ask{neuron: "1"}, "inf1.xlarge"},
		{usual, "usual", ask{neuron: "6"}, "inf1.24xlarge"},
		{usual, "usual", ask{neuron: "16", efa: "8"}, "trn1.32xlarge"},
		{usual, "usual", ask{neuron: "16", efa: "16"}, "trn1n.32xlarge"},
		{usual, "usual", ask{neuron: "16", neuronCore: "64", efa: "16"}, "trn2.48xlarge"},
		{usual, "usual", ask{neuron: "17"}, ""},
		{usual, "usual", ask{efa: "1"}, "trn2.3xlarge"},
		{usual, "usual", ask{efa: "33"}, ""},
		{usual, "usual", ask{neuronDevice: "1"}, ""},
		{none, "none", ask{neuronCore: "5"}, "trn2.3xlarge"}, // has four logical cores: the pod would wait forever
		{none, "none", ask{neuronCore: "128"}, "trn2.48xlarge"},
		{usual, "usual", ask{neuronCore: "128"}, ""},
		{lnc1, "--lnc 1", ask{neuronCore: "128"}, "trn2.48xlarge"},
		{lnc1, "--lnc 1", ask{neuronCore: "5"}, "trn2.3xlarge"},
		{whole, "--core-devices none", ask{neuronCore: "1"}, ""},
		{whole, "--core-devices none", ask{neuron: "1"}, "inf1.xlarge"},
		{old, "--neurondevice", ask{neuronDevice: "16", efa: "8"}, "trn1.32xlarge"},
	} {
		t.Run(fmt.Sprint(each.of, each.ask), func(t *testing.T) {
			s := start(t, slices.Clone(each.placed), nil, true)
			got := s.schedule(t, asking("pod", each.ask))
			got.expect(t, each.want, "no instance type has enough resources")
			if each.want != "" {
				expectAllThatFit(t, got.nodes[0], each.placed, each.ask)
			}
		})
	}
}

// expectAllThatFit: among the types are all whose overlay has what is asked for, and no other.
func expectAllThatFit(t *testing.T, got []string, placed []v1alpha1.NodeOverlay, a ask) {
	t.Helper()
	for _, one := range placed {
		fits := true
		for name, count := range a {
			has, wants := one.Spec.Capacity[name], quantity.MustParse(count)
			fits = fits && has.Cmp(wants) >= 0
		}
		if name := one.Spec.Requirements[0].Values[0]; fits != slices.Contains(got, name) {
			t.Errorf("%s: fits %v, in %v", name, fits, got)
		}
	}
}

// TestPacking: pods that fit on one node share it, a further one gets another.
func TestPacking(t *testing.T) {
	s := start(t, overlays(t), nil, true)
	half := ask{neuron: "8", efa: "4"}
	onTwo := s.schedule(t, asking("a", half), asking("b", half))
	if len(onTwo.nodes) != 1 || onTwo.pods[0] != 2 || onTwo.nodes[0][0] != "trn1.32xlarge" {
		t.Errorf("%+v", onTwo)
	}
	var many []*core.Pod
	for i := range 9 {
		many = append(many, asking(fmt.Sprint("pod-", i), ask{neuron: "8", efa: "8"}))
	}
	if got := s.schedule(t, many...); len(got.nodes) != 5 || len(got.refused) > 0 {
		t.Errorf("%+v", got)
	}
}
