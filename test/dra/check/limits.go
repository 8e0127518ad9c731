package check

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
)

// Limits of a server's version, for versions whose validation is not at hand (docs/reference/dra.md#limits).
type Limits struct {
	Devices, Advanced      int  // in a slice; when one of them uses counters or has a taint
	Counters               int  // in a slice, over all sets
	Sets                   int  // in a slice
	SetsUsed, CountersUsed int  // by one device: sets, counters of each
	CountersUsedInSlice    int  // by all devices of a slice; 0: no limit
	Taints                 int  // of a device
	Split                  bool // counters and devices in different slices, else in one
}

// By minor version of Kubernetes.
var ByMinor = map[int]Limits{
	34: {128, 128, 32, 32, 32, 32, 1024, 4, false},
	35: {128, 64, 8 * 32, 8, 2, 32, 0, 16, true},
	36: {128, 64, 8 * 32, 8, 2, 32, 0, 16, true},
}

// Within gives the first limit that the slice breaks, nil when none.
func (l Limits) Within(slice *resourceapi.ResourceSlice) error {
	spec := slice.Spec
	counters := 0
	for _, set := range spec.SharedCounters {
		counters += len(set.Counters)
	}
	advanced, used := false, 0
	for _, device := range spec.Devices {
		advanced = advanced || len(device.Taints)+len(device.ConsumesCounters) > 0
		if err := l.device(device); err != nil {
			return err
		}
		for _, use := range device.ConsumesCounters {
			used += len(use.Counters)
		}
	}
	room := l.Devices
	if advanced {
		room = l.Advanced
	}
	for _, rule := range []struct {
		what      string
		is, limit int
	}{
		{"devices", len(spec.Devices), room},
		{"counters", counters, l.Counters},
		{"counter sets", len(spec.SharedCounters), l.Sets},
		{"counters used", used, l.CountersUsedInSlice},
	} {
		if rule.is > rule.limit && rule.limit > 0 {
			return fmt.Errorf("%s: %d %s of %d", slice.Name, rule.is, rule.what, rule.limit)
		}
	}
	if l.Split && counters > 0 && len(spec.Devices) > 0 {
		return fmt.Errorf("%s: counters and devices", slice.Name)
	}
	if !l.Split && counters == 0 && used > 0 {
		return fmt.Errorf("%s: devices without their counters", slice.Name)
	}
	return nil
}

func (l Limits) device(device resourceapi.Device) error {
	if len(device.Taints) > l.Taints {
		return fmt.Errorf("%s: %d taints", device.Name, len(device.Taints))
	}
	if len(device.ConsumesCounters) > l.SetsUsed {
		return fmt.Errorf("%s: %d sets", device.Name, len(device.ConsumesCounters))
	}
	for _, use := range device.ConsumesCounters {
		if len(use.Counters) > l.CountersUsed {
			return fmt.Errorf("%s: %d counters", device.Name, len(use.Counters))
		}
	}
	if n := len(device.Attributes) + len(device.Capacity); n > resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		return fmt.Errorf("%s: %d attributes and capacities", device.Name, n)
	}
	return nil
}
