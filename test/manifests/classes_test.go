package manifests

import (
	"context"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// classes maps the names of the classes in a file to what they are.
func classes(t *testing.T, path string) map[string]*resourcev1.DeviceClass {
	t.Helper()
	found := map[string]*resourcev1.DeviceClass{}
	for _, object := range objects(t, path) {
		if class, is := object.(*resourcev1.DeviceClass); is {
			found[class.Name] = class
		}
	}
	return found
}

func TestClassesHaveNoExtendedNameByDefault(t *testing.T) {
	for name, class := range classes(t, draPath) {
		if class.Spec.ExtendedResourceName != nil {
			t.Errorf("%s serves %s", name, *class.Spec.ExtendedResourceName) // a kubelet before 1.36 would start pods without devices
		}
	}
}

// matching is the class's own expression, evaluated for one device as the scheduler does.
func matching(t *testing.T, class *resourcev1.DeviceClass, device dracel.Device) bool {
	t.Helper()
	compiled := dracel.GetCompiler(dracel.Features{}).CompileCELExpression(class.Spec.Selectors[0].CEL.Expression, dracel.Options{})
	if compiled.Error != nil {
		t.Fatal(class.Name, compiled.Error)
	}
	matches, _, err := compiled.DeviceMatches(context.Background(), device)
	if err != nil {
		t.Errorf("%s: %v: it would end the scheduling of the pod on every node", class.Name, err)
	}
	return matches
}

// Whole devices, cores, groups and interfaces each have one class, and no class fails at somebody else's device.
func TestEachDeviceHasItsClass(t *testing.T) {
	all := classes(t, draPath)
	all["efa.networking.k8s.aws"] = classes(t, extraClass)["efa.networking.k8s.aws"]
	want := map[string][]string{
		"neuron_device": {"neuron.aws.com"}, "neuron_node": {"neuron.aws.com"}, "neuron_core": {"core.neuron.aws.com"},
		"neuron_group": {"group.neuron.aws.com"}, "efa": {"efa.neuron.aws.com", "efa.networking.k8s.aws"},
	}
	for kind, names := range want {
		device := dracel.Device{Driver: "neuron.aws.com", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"resourceType": {StringValue: &kind}}}
		for name, class := range all {
			expected := name == names[0] || name == names[len(names)-1]
			if got := matching(t, class, device); got != expected {
				t.Errorf("%s takes a %s: %v", name, kind, got)
			}
		}
	}
	// A device that claims may share is in the class of cores too; one with an unhealthy core only there.
	kind, yes, no := "neuron_device", true, false
	for whole, want := range map[*bool]string{&yes: "core.neuron.aws.com neuron.aws.com", &no: "core.neuron.aws.com"} {
		device := dracel.Device{Driver: "neuron.aws.com", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"resourceType": {StringValue: &kind}, "whole": {BoolValue: whole}}}
		var got []string
		for name, class := range all {
			if matching(t, class, device) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("whole %v: classes %v, want %s", *whole, got, want)
		}
	}
	for _, foreign := range []dracel.Device{{Driver: "gpu.nvidia.com"}, {Driver: "dra.net"}} {
		for name, class := range all {
			if matching(t, class, foreign) {
				t.Errorf("%s takes a device of %s", name, foreign.Driver)
			}
		}
	}
}
