package karpenter

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unique"

	core "k8s.io/api/core/v1"
	dynamic "k8s.io/api/resource/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/yaml"
)

const (
	neuron       = "aws.amazon.com/neuron"
	neuronCore   = "aws.amazon.com/neuroncore"
	neuronDevice = "aws.amazon.com/neurondevice"
	efa          = "vpc.amazonaws.com/efa"
)

// facts of a type, of the document neuron-catalogue/1.
type facts struct {
	Name          string
	VCPUs         int64
	HostMemoryGiB int64
	Devices       struct{ Count, PhysicalCores int64 }
	Interfaces    struct{ Count int64 }
}

func catalogue(t *testing.T, words ...string) []byte {
	t.Helper()
	command := exec.Command(filepath.Join(os.Getenv("NEURON_BIN"), "neuron-agent"), append([]string{"catalogue"}, words...)...)
	command.Stderr = t.Output()
	text, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return text
}

func allTypes(t *testing.T) []facts {
	t.Helper()
	var document struct{ Types []facts }
	if err := json.Unmarshal(catalogue(t, "-o", "json"), &document); err != nil || len(document.Types) < 40 {
		t.Fatalf("%d types: %v", len(document.Types), err)
	}
	return document.Types
}

// overlays are what `catalogue -o overlays` prints; a field that Karpenter does not know is an error.
func overlays(t *testing.T, options ...string) []v1alpha1.NodeOverlay {
	t.Helper()
	var list struct {
		APIVersion string                 `json:"apiVersion"`
		Kind       string                 `json:"kind"`
		Items      []v1alpha1.NodeOverlay `json:"items"`
	}
	if err := yaml.UnmarshalStrict(catalogue(t, append([]string{"-o", "overlays"}, options...)...), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// capacity is a type's as Karpenter's AWS provider computes it of EC2's answers: physical cores, whatever the LNC.
func (f facts) capacity() core.ResourceList {
	memory := f.HostMemoryGiB
	if memory == 0 {
		memory = 128 // not public
	}
	list := core.ResourceList{core.ResourceCPU: *quantity.NewQuantity(f.VCPUs, quantity.DecimalSI),
		core.ResourceMemory: *quantity.NewQuantity(memory<<30, quantity.BinarySI), core.ResourcePods: quantity.MustParse("110")}
	for name, count := range map[core.ResourceName]int64{neuron: f.Devices.Count, neuronCore: f.Devices.Count * f.Devices.PhysicalCores,
		efa: f.Interfaces.Count} {
		if count > 0 {
			list[name] = *quantity.NewQuantity(count, quantity.DecimalSI)
		}
	}
	return list
}

// slicesByType are what `catalogue -o slices` prints, by type, as a provider of Karpenter's gives them to the simulation.
func slicesByType(t *testing.T, options ...string) map[string]cloudprovider.DynamicResources {
	t.Helper()
	var list struct{ Items []dynamic.ResourceSlice }
	if err := json.Unmarshal(catalogue(t, append([]string{"-o", "slices"}, options...)...), &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]cloudprovider.DynamicResources{}
	for _, slice := range list.Items {
		template := &cloudprovider.ResourceSliceTemplate{Driver: unique.Make(slice.Spec.Driver),
			Pool: cloudprovider.ResourcePool{Name: unique.Make(slice.Spec.Pool.Name)}, SharedCounters: slice.Spec.SharedCounters}
		for _, device := range slice.Spec.Devices {
			template.Devices = append(template.Devices, cloudprovider.Device{Name: unique.Make(device.Name), Attributes: device.Attributes,
				Capacity: device.Capacity, ConsumesCounters: device.ConsumesCounters,
				AllowMultipleAllocations: device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations})
		}
		of := all[*slice.Spec.NodeName]
		of.ResourceSliceTemplates = append(of.ResourceSliceTemplates, template)
		all[*slice.Spec.NodeName] = of
	}
	return all
}
