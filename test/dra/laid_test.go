// Package dra holds slices and claims against the code that decides about them: the API server's validation and the
// scheduler's allocator, both of the pinned Kubernetes.
package dra

import (
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"

	"neuron-agent.test/dra/check"
	"neuron-agent.test/dra/node"
	"neuron-agent.test/dra/pool"
)

const nodeName = "n1"

func title(t node.Type, p pool.Partitions) string {
	return fmt.Sprintf("%s-lnc%d-%s", t.Name, t.LNC, p)
}

// kinds are all types with each LNC; or one of each structure, which is all that a scheduler sees.
func kinds(every bool) []node.Type {
	var some []node.Type
	seen := map[string]bool{}
	for _, kind := range node.AllLNC() {
		key := fmt.Sprint(kind.Devices, kind.Cores(), kind.Shape, len(kind.EFAs))
		if every || !seen[key] {
			some = append(some, kind)
		}
		seen[key] = true
	}
	return some
}

// eachShape runs for every type, LNC and kind of partitions.
func eachShape(t *testing.T, run func(*testing.T, node.Type, pool.Partitions)) {
	for _, kind := range node.AllLNC() {
		for _, partitions := range pool.AllPartitions {
			t.Run(title(kind, partitions), func(t *testing.T) { run(t, kind, partitions) })
		}
	}
}

// accepted by servers and usable by schedulers from 1.35 on, also when everything on the node is ill at once.
func accepted(t *testing.T, all []*resourceapi.ResourceSlice) {
	t.Helper()
	for _, slice := range all {
		stored, err := check.Stored(slice)
		if err != nil {
			t.Errorf("%s: %v", slice.Name, err)
			continue
		}
		if !check.Kept(slice, stored) {
			t.Errorf("%s: the server keeps something else", slice.Name)
		}
		ill := slice.DeepCopy()
		for i := range ill.Spec.Devices {
			ill.Spec.Devices[i].Taints = []resourceapi.DeviceTaint{{Key: pool.Driver + "/unhealthy", Value: "sram_ecc", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		}
		if _, err := check.Stored(ill); err != nil {
			t.Errorf("%s, all ill: %v", slice.Name, err)
		}
		for _, minor := range []int{35, 36} {
			if err := check.ByMinor[minor].Within(ill); err != nil {
				t.Errorf("1.%d, all ill: %v", minor, err)
			}
		}
	}
	if err := check.Usable(nodeName, all); err != nil {
		t.Error(err)
	}
}

func TestLaidOutForToday(t *testing.T) {
	eachShape(t, func(t *testing.T, kind node.Type, p pool.Partitions) {
		accepted(t, pool.Slices(nodeName, kind, p, pool.Default(), pool.Split))
	})
}

// What does not fit into the one slice of 1.34, and by how much: the agent has to leave something out there.
func TestLaidOutForOneSlice(t *testing.T) {
	tooMany := map[string]string{
		"trn2.48xlarge-lnc1-cores":  "144 devices of 128",
		"trn2.48xlarge-lnc1-all":    "151 devices of 128",
		"inf2.48xlarge-lnc1-all":    "157 devices of 128",
		"inf2.48xlarge-lnc1-groups": "133 devices of 128",
		"inf1.24xlarge-lnc1-all":    "200 devices of 128",
		"inf1.24xlarge-lnc1-groups": "136 devices of 128",
	}
	for _, name := range []string{"trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge", "inf1.24xlarge"} {
		for _, kind := range node.AllLNC() {
			for _, p := range pool.AllPartitions {
				if kind.Name != name {
					continue
				}
				all := pool.Slices(nodeName, kind, p, pool.Default(), pool.Combined)
				// Interfaces use no counters, so a slice of their own may have them.
				first := all[0].DeepCopy()
				first.Spec.Devices = nil
				for _, slice := range all {
					for _, device := range slice.Spec.Devices {
						if len(device.ConsumesCounters) > 0 || !p.Cores && !p.Groups {
							first.Spec.Devices = append(first.Spec.Devices, device)
						}
					}
				}
				got := ""
				if err := check.ByMinor[34].Within(first); err != nil {
					_, got, _ = strings.Cut(err.Error(), ": ")
				}
				if want := tooMany[title(kind, p)]; got != want {
					t.Errorf("%s: %q instead of %q", title(kind, p), got, want)
				}
			}
		}
	}
}

// A server whose gate is off keeps the devices and drops what keeps them apart, without a word.
func TestGateOffStripsCounters(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.DRAPartitionableDevices, false)
	kind, _ := node.Find("trn1.32xlarge")
	for i, slice := range pool.Slices(nodeName, kind, pool.Partitions{Cores: true, Groups: true}, pool.Default(), pool.Split) {
		stored, err := check.Stored(slice)
		switch {
		case err != nil:
			t.Error(err)
		case check.Kept(slice, stored):
			t.Errorf("%s was kept as it is", slice.Name)
		case i == 0 && stored.Spec.SharedCounters != nil:
			t.Error("the counters are there")
		case i > 0 && len(stored.Spec.Devices) != len(slice.Spec.Devices):
			t.Error("devices are gone too")
		}
	}
}

// The checks find what they are for.
func TestChecksBite(t *testing.T) {
	kind, _ := node.Find("trn2.48xlarge")
	both := pool.Partitions{Cores: true, Groups: true}
	fresh := func() []*resourceapi.ResourceSlice {
		return pool.Slices(nodeName, kind, both, pool.Default(), pool.Split)
	}
	refused := func(what, want string, slice *resourceapi.ResourceSlice) {
		if _, err := check.Stored(slice); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("one slice", "only one of `sharedCounters` or `devices`", pool.Slices(nodeName, kind, both, pool.Default(), pool.Combined)[0])
	full := fresh()
	full[1].Spec.Devices = append(full[1].Spec.Devices, full[2].Spec.Devices[0])
	refused("65 devices", "must have at most 64 items", full[1])
	twice := fresh()
	twice[1].Spec.Devices[1].Name = twice[1].Spec.Devices[0].Name
	refused("a name twice", "Duplicate value", twice[1])
	long := fresh()
	text := strings.Repeat("x", 65)
	long[1].Spec.Devices[0].Attributes["serial"] = resourceapi.DeviceAttribute{StringValue: &text}
	refused("a long text", "may not be more than 64 bytes", long[1])
	if _, err := check.StoredText([]byte(`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"a"},"spec":{"drivr":"x"}}`)); err == nil {
		t.Error("an unknown field went through")
	}

	unusable := func(what, want string, all []*resourceapi.ResourceSlice) {
		if err := check.Usable(nodeName, all); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	unusable("one is missing", "there are", fresh()[1:])
	other := fresh()
	other[1].Name, other[2].Name = other[2].Name, other[1].Name
	unusable("another order", "sort in another order", other)
	across := fresh()
	across[2].Spec.Devices[0].Name = across[1].Spec.Devices[0].Name
	unusable("a name in two slices", "invalid", across)
	unknown := fresh()
	delete(unknown[0].Spec.SharedCounters[0].Counters, "device-3")
	unusable("a counter that is not there", "invalid", unknown)
}
