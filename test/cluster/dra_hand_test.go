package scenarios

import (
	"context"
	"fmt"
	"testing"

	resource "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

// Slices of a trn1.32xlarge as docs/dra.md describes them, written by hand: what server and scheduler make of classes, policy and
// claims is seen without any driver.

// ofTrn1 are the ids of the aligned groups of 4, 8 and 16 (docs/reference/topology.md#device-groups).
var ofTrn1 = map[int][]string{
	4:  {"88a3c6ad1661fe1d", "69b2225fd72a59dd", "e3c29faa0cd11323", "178a9e264a26793e"},
	8:  {"86c451036f622685", "aa86c05423d6e8cd"},
	16: {"fb838249c99a6341"},
}

// nearestOfTrn1 are the interfaces by pairs of devices, as PCI addresses without domain.
var nearestOfTrn1 = []string{"10:1a.0", "a0:1a.0", "20:19.0", "90:19.0", "20:1a.0", "90:1a.0", "10:19.0", "a0:19.0"}

type attributes = map[resource.QualifiedName]resource.DeviceAttribute

func text(value string) resource.DeviceAttribute {
	return resource.DeviceAttribute{StringValue: &value}
}
func whole(value int) resource.DeviceAttribute {
	number := int64(value)
	return resource.DeviceAttribute{IntValue: &number}
}

// alignedWith are the attributes of what belongs to one device, or to `size` devices from there on.
func alignedWith(kind string, device, size int) attributes {
	all := attributes{"resourceType": text(kind), "instanceType": text("trn1.32xlarge"), "neuronDriverVersion": text("2.26.5.0"),
		"deviceId": whole(device), "size": whole(size)}
	for of, ids := range ofTrn1 {
		if of >= size {
			all[resource.QualifiedName(fmt.Sprintf("resource.aws.com/devicegroup%d_id", of))] = text(ids[device/of])
		}
	}
	if size == 1 {
		all["resource.aws.com/devicegroup1_id"] = text("0000:" + nearestOfTrn1[device/2])
	}
	return all
}

// consuming are the counters of `size` devices, all their cores or one.
func consuming(device, size int, cores string) []resource.DeviceCounterConsumption {
	counters := map[string]resource.Counter{}
	for i := device; i < device+size; i++ {
		counters[fmt.Sprintf("device-%d", i)] = counterOf(cores)
	}
	return []resource.DeviceCounterConsumption{{CounterSet: "cores", Counters: counters}}
}

// rdmaName of an interface by its PCI address: "10:1a.0" is rdmap16s26.
func rdmaName(address string) string {
	var bus, slot int
	_, _ = fmt.Sscanf(address, "%x:%x.0", &bus, &slot)
	return fmt.Sprintf("rdmap%ds%d", bus, slot)
}

func capacityOf(cores string) map[resource.QualifiedName]resource.DeviceCapacity {
	return map[resource.QualifiedName]resource.DeviceCapacity{"cores": {Value: quantity(cores)}}
}

func counterOf(cores string) resource.Counter { return resource.Counter{Value: quantity(cores)} }

// slicesByHand makes the pool of a node: counters, devices with cores and groups, interfaces.
func slicesByHand(node string) []*resource.ResourceSlice {
	counters := map[string]resource.Counter{}
	var devices, efas []resource.Device
	for i := range 16 {
		counters[fmt.Sprintf("device-%d", i)] = counterOf("2")
		devices = append(devices, resource.Device{Name: fmt.Sprintf("neuron-device-%d", i), Capacity: capacityOf("2"), Attributes: alignedWith("neuron_device", i, 1),
			ConsumesCounters: consuming(i, 1, "2")})
		for core := range 2 {
			devices = append(devices, resource.Device{Name: fmt.Sprintf("neuron-device-%d-core-%d", i, core), Capacity: capacityOf("1"),
				Attributes: alignedWith("neuron_core", i, 1), ConsumesCounters: consuming(i, 1, "1")})
		}
		if i%2 == 0 {
			efas = append(efas, resource.Device{Name: "efa-" + rdmaName(nearestOfTrn1[i/2]), Attributes: alignedWith("efa", i, 1)})
		}
	}
	for _, size := range []int{4, 8, 16} {
		for first := 0; first < 16; first += size {
			devices = append(devices, resource.Device{Name: fmt.Sprintf("neuron-group-%d-%d", first, first+size-1),
				Attributes: alignedWith("neuron_group", first, size), ConsumesCounters: consuming(first, size, "2")})
		}
	}
	all := []*resource.ResourceSlice{
		{Spec: resource.ResourceSliceSpec{SharedCounters: []resource.CounterSet{{Name: "cores", Counters: counters}}}},
		{Spec: resource.ResourceSliceSpec{Devices: devices}}, {Spec: resource.ResourceSliceSpec{Devices: efas}},
	}
	for i, slice := range all {
		slice.Name = fmt.Sprintf("%05x-%s-%s", i, cluster.Driver, node) // as the driver names them, and the policy wants it
		slice.Spec.Driver, slice.Spec.NodeName = cluster.Driver, &node
		slice.Spec.Pool = resource.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(len(all))}
	}
	return all
}

// writeByHand creates the slices as an administrator and deletes them after the test.
func writeByHand(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	t.Helper()
	for _, slice := range slicesByHand(n.Name) {
		stored, err := c.Client.ResourceV1().ResourceSlices().Create(context.Background(), slice, meta.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Kubectl(t, "delete", "--ignore-not-found", "resourceslice", slice.Name) })
		// A gate that is off would strip the counters without an error.
		if len(stored.Spec.SharedCounters) != len(slice.Spec.SharedCounters) ||
			len(slice.Spec.Devices) > 0 && len(stored.Spec.Devices[0].ConsumesCounters) != len(slice.Spec.Devices[0].ConsumesCounters) {
			t.Fatalf("the server stored %+v", stored.Spec)
		}
	}
}

func quantity(value string) apiresource.Quantity { return apiresource.MustParse(value) }
