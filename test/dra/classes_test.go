package dra

import (
	"context"
	"os"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"sigs.k8s.io/yaml"

	"neuron-agent.test/dra/claims"
	"neuron-agent.test/dra/node"
	"neuron-agent.test/dra/pool"
)

// The classes of the manifests select each kind of device and no other, and say nothing, not even an error, of the devices
// of other drivers.
func TestClassesOfTheManifests(t *testing.T) {
	classes := classesOfTheManifests(t)
	kind, _ := node.Find("trn2.48xlarge")
	for _, slice := range pool.Slices(nodeName, kind, pool.Partitions{Cores: true, Groups: true}, pool.Default(), pool.Split) {
		for _, device := range slice.Spec.Devices {
			for of, name := range claims.Class {
				want := *device.Attributes["resourceType"].StringValue == of
				if got := selects(t, classes[name], slice.Spec.Driver, device); got != want {
					t.Errorf("%s selects %s: %v", name, device.Name, got)
				}
				if selects(t, classes[name], "gpu.example.com", resourceapi.Device{Name: "gpu-0"}) {
					t.Errorf("%s selects another driver's", name)
				}
			}
		}
	}
}

func classesOfTheManifests(t *testing.T) map[string]resourceapi.DeviceClass {
	t.Helper()
	text, err := os.ReadFile("../../manifests/static/neuron-agent-dra.yaml")
	if err != nil {
		t.Fatal(err)
	}
	classes := map[string]resourceapi.DeviceClass{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var class resourceapi.DeviceClass
		if strings.Contains(document, "\nkind: DeviceClass\n") {
			if err := yaml.UnmarshalStrict([]byte(document), &class); err != nil {
				t.Fatal(err)
			}
			classes[class.Name] = class
		}
	}
	return classes
}

// On an UltraServer the class that stands for aws.amazon.com/neuron has the whole node as its one device (docs/dra.md).
func TestTheNodeOfAnUltraServerIsADeviceOfTheClassNeuron(t *testing.T) {
	kind := "neuron_node"
	whole := resourceapi.Device{Name: "neuron-node", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"resourceType": {StringValue: &kind}}}
	for name, class := range classesOfTheManifests(t) {
		if got, want := selects(t, class, "neuron.aws.com", whole), name == "neuron.aws.com"; got != want {
			t.Errorf("%s selects neuron-node: %v", name, got)
		}
	}
}

func selects(t *testing.T, class resourceapi.DeviceClass, driver string, device resourceapi.Device) bool {
	t.Helper()
	if len(class.Spec.Selectors) == 0 {
		t.Fatalf("class %q has no selectors", class.Name)
	}
	for _, selector := range class.Spec.Selectors {
		compiled := cel.GetCompiler(cel.Features{}).CompileCELExpression(selector.CEL.Expression, cel.Options{})
		if compiled.Error != nil {
			t.Fatalf("%s: %v", class.Name, compiled.Error)
		}
		matches, _, err := compiled.DeviceMatches(context.Background(), cel.Device{Driver: driver, Attributes: device.Attributes, Capacity: device.Capacity})
		if err != nil {
			t.Fatalf("%s, %s: %v", class.Name, device.Name, err)
		}
		if !matches {
			return false
		}
	}
	return true
}
