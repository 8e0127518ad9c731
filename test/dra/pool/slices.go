package pool

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"neuron-agent.test/dra/node"
)

const (
	counterSet = "cores"
	groupAWS   = "resource.aws.com/devicegroup%d_id"
	// MaxDevices of a slice of which one uses counters or has a taint.
	MaxDevices = resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures
)

// Shape of the slices, by the server's version.
type Shape int

const (
	Split    Shape = iota // from 1.35: counters in a slice of their own
	Combined              // 1.34: counters and all that uses them in one slice
)

// Slices of one node in the given order: as many as the limits ask for, named so that they sort in this order.
func Slices(nodeName string, t node.Type, p Partitions, order Order, shape Shape) []*resourceapi.ResourceSlice {
	entries := Entries(t, p)
	order.Sort(entries)
	return Lay(nodeName, t, entries, shape)
}

// Lay puts entries into slices.
func Lay(nodeName string, t node.Type, entries []Entry, shape Shape) []*resourceapi.ResourceSlice {
	// Counters only where something overlaps.
	counted := slices.ContainsFunc(entries, func(e Entry) bool { return e.Kind == Core || e.Kind == Group })
	var specs []resourceapi.ResourceSliceSpec
	counters := []resourceapi.CounterSet{{Name: counterSet, Counters: map[string]resourceapi.Counter{}}}
	for device := range t.Devices {
		counters[0].Counters[counter(device)] = count(t.Cores())
	}
	room := MaxDevices
	switch {
	case counted && shape == Combined:
		specs, room = []resourceapi.ResourceSliceSpec{{SharedCounters: counters}}, resourceapi.ResourceSliceMaxDevices
	case counted:
		specs = []resourceapi.ResourceSliceSpec{{SharedCounters: counters}, {}}
	default:
		specs = []resourceapi.ResourceSliceSpec{{}}
	}
	for _, e := range entries {
		last := &specs[len(specs)-1]
		if len(last.Devices) == room {
			specs = append(specs, resourceapi.ResourceSliceSpec{})
			last = &specs[len(specs)-1]
		}
		last.Devices = append(last.Devices, device(t, e, counted))
	}
	var all []*resourceapi.ResourceSlice
	for i, spec := range specs {
		spec.Driver, spec.NodeName = Driver, &nodeName
		spec.Pool = resourceapi.ResourcePool{Name: nodeName, Generation: 1, ResourceSliceCount: int64(len(specs))}
		all = append(all, &resourceapi.ResourceSlice{
			TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice"},
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%02d", nodeName, Driver, i)},
			Spec:       spec,
		})
	}
	return all
}

// Share lets claims share the whole devices of slices without counters by their cores, as --dra-shares does.
func Share(all []*resourceapi.ResourceSlice) []*resourceapi.ResourceSlice {
	yes := true
	for _, slice := range all {
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			if *device.Attributes["resourceType"].StringValue != Device {
				continue
			}
			device.AllowMultipleAllocations = &yes
			device.Attributes["whole"] = resourceapi.DeviceAttribute{BoolValue: &yes}
			cores := device.Capacity[Cores]
			cores.RequestPolicy = policy(cores.Value, cores.Value, resource.NewQuantity(1, resource.DecimalSI))
			device.Capacity[Cores] = cores
			if memory, has := device.Capacity["memory"]; has {
				memory.RequestPolicy = policy(resource.MustParse("0"), memory.Value, nil)
				device.Capacity["memory"] = memory
			}
		}
	}
	return all
}

// Cores is the capacity that shares have of a device.
const Cores = resourceapi.QualifiedName("cores")

// A request for 0 cores fits on a device that is held: what admin access asks for.
func policy(otherwise, most resource.Quantity, step *resource.Quantity) *resourceapi.CapacityRequestPolicy {
	rule := &resourceapi.CapacityRequestPolicyRange{Min: resource.NewQuantity(0, resource.DecimalSI), Max: &most, Step: step}
	return &resourceapi.CapacityRequestPolicy{Default: &otherwise, ValidRange: rule}
}

func counter(device int) string { return fmt.Sprintf("device-%d", device) }

func count(cores int) resourceapi.Counter {
	return resourceapi.Counter{Value: *resource.NewQuantity(int64(cores), resource.DecimalSI)}
}

func device(t node.Type, e Entry, counted bool) resourceapi.Device {
	d := resourceapi.Device{Name: e.Name, Attributes: attributes(t, e)}
	if e.Kind == EFA {
		return d
	}
	uses := map[string]resourceapi.Counter{}
	each := t.Cores()
	if e.Kind == Core {
		each = 1
	}
	for _, device := range e.Devices {
		uses[counter(device)] = count(each)
	}
	if counted {
		d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: counterSet, Counters: uses}}
	}
	d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"cores": {Value: *resource.NewQuantity(int64(each*len(e.Devices)), resource.DecimalSI)}}
	return d
}

// OwnID is ours, of the driver's domain: the aligned group of that size that a device or interface is in, where AWS has no id.
const OwnID = "group%d_id"

// OwnSizes are the sizes that have one. On Trainium AWS has topology4_id and topology8_id, whether or not there are interfaces.
func OwnSizes(t node.Type) []int {
	candidates := []int{2, 3, 4, 6, 8}
	if t.Shape.Grouped() {
		candidates = []int{2}
	}
	return slices.DeleteFunc(candidates, func(size int) bool { return size > t.Devices/2 })
}

// Devices count themselves, cores and interfaces are not a whole one.
var sizeOf = map[string]int{Device: 1, Group: 1}

type attributeMap = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute

func attributes(t node.Type, e Entry) attributeMap {
	all := attributeMap{}
	text := func(name, value string) {
		all[resourceapi.QualifiedName(name)] = resourceapi.DeviceAttribute{StringValue: &value}
	}
	number := func(name string, value int) {
		wide := int64(value)
		all[resourceapi.QualifiedName(name)] = resourceapi.DeviceAttribute{IntValue: &wide}
	}
	text("resourceType", e.Kind)
	text("instanceType", t.Name)
	text("neuronDriverVersion", "2.30.2.0")
	number("lnc", t.LNC)
	number("deviceId", -1)
	number("size", sizeOf[e.Kind]*len(e.Devices))
	devices := e.Devices
	switch e.Kind {
	case Group:
		number("first", e.Devices[0])
	case EFA:
		text("rdmaDevice", t.EFAs[e.EFA].Name)
		devices = t.EFAs[e.EFA].Near
	default:
		number("deviceId", e.Devices[0])
		if t.Shape.Grouped() { // Trainium
			number("topology_x", e.Devices[0]/4)
			number("topology_y", e.Devices[0]%4)
			number("topology4_id", e.Devices[0]/4)
			number("topology8_id", e.Devices[0]/8)
		}
	}
	for _, size := range []int{1, 4, 8, 16} {
		if id := GroupID(t, devices[0], size); id != "" && (e.Kind != Group || len(e.Devices) <= size) {
			text(fmt.Sprintf(groupAWS, size), id)
		}
	}
	for _, size := range OwnSizes(t) {
		if e.Kind != Group {
			number(fmt.Sprintf(OwnID, size), devices[0]/size)
		}
	}
	return all
}
