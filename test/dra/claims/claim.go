package claims

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"neuron-agent.test/dra/pool"
)

// Names of requests.
const (
	Units = "units" // devices, cores or a group
	EFAs  = "efas"
)

// Claim of requests and constraints; built by the functions below.
func Claim(parts ...func(*resourceapi.DeviceClaim)) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "default", UID: "1"}}
	for _, part := range parts {
		part(&claim.Spec.Devices)
	}
	return claim
}

// Request so many of one kind that match all the expressions.
func Request(name, kind string, count int, expressions ...string) func(*resourceapi.DeviceClaim) {
	exact := &resourceapi.ExactDeviceRequest{
		DeviceClassName: Class[kind],
		AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
		Count:           int64(count),
	}
	for _, expression := range expressions {
		exact.Selectors = append(exact.Selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}})
	}
	return func(claim *resourceapi.DeviceClaim) {
		claim.Requests = append(claim.Requests, resourceapi.DeviceRequest{Name: name, Exactly: exact})
	}
}

// Shares of that many devices, each with so many cores of its own.
func Shares(name string, count, cores int, expressions ...string) func(*resourceapi.DeviceClaim) {
	return func(claim *resourceapi.DeviceClaim) {
		Request(name, pool.Core, count, expressions...)(claim)
		claim.Requests[len(claim.Requests)-1].Exactly.Capacity = capacity(cores)
	}
}

// First of these requests that can be had.
func First(name string, requests ...func(*resourceapi.DeviceClaim)) func(*resourceapi.DeviceClaim) {
	var all resourceapi.DeviceClaim
	for _, request := range requests {
		request(&all)
	}
	first := resourceapi.DeviceRequest{Name: name}
	for _, r := range all.Requests {
		first.FirstAvailable = append(first.FirstAvailable, resourceapi.DeviceSubRequest{Name: r.Name, DeviceClassName: r.Exactly.DeviceClassName,
			Selectors: r.Exactly.Selectors, AllocationMode: r.Exactly.AllocationMode, Count: r.Exactly.Count, Capacity: r.Exactly.Capacity})
	}
	return func(claim *resourceapi.DeviceClaim) { claim.Requests = append(claim.Requests, first) }
}

// All devices of one kind.
func All(name, kind string) func(*resourceapi.DeviceClaim) {
	return func(claim *resourceapi.DeviceClaim) {
		Request(name, kind, 0)(claim)
		claim.Requests[len(claim.Requests)-1].Exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
	}
}

// AdminAccess of the last request, for 0 cores of each device, which fits although all of them are held; or for what a device gives
// by default.
func AdminAccess(noCores bool) func(*resourceapi.DeviceClaim) {
	yes := true
	return func(claim *resourceapi.DeviceClaim) {
		exact := claim.Requests[len(claim.Requests)-1].Exactly
		exact.AdminAccess = &yes
		if noCores {
			exact.Capacity = capacity(0)
		}
	}
}

func capacity(cores int) *resourceapi.CapacityRequirements {
	return &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{
		pool.Cores: *resource.NewQuantity(int64(cores), resource.DecimalSI)}}
}

// GroupOf selects groups of that many devices.
func GroupOf(size int) string {
	return fmt.Sprintf("device.attributes['%s'].size == %d", pool.Driver, size)
}

// Match demands one value of the attribute over all devices of these requests; of none: over all of the claim.
func Match(attribute string, requests ...string) func(*resourceapi.DeviceClaim) {
	name := resourceapi.FullyQualifiedName(attribute)
	return func(claim *resourceapi.DeviceClaim) {
		claim.Constraints = append(claim.Constraints, resourceapi.DeviceConstraint{Requests: requests, MatchAttribute: &name})
	}
}

// GroupID is the attribute that AWS's aligned claims match on.
func GroupID(size int) string { return fmt.Sprintf("resource.aws.com/devicegroup%d_id", size) }

// OwnID is the attribute of ours for sizes and nodes that AWS has no id for.
func OwnID(size int) string { return pool.Driver + "/" + fmt.Sprintf(pool.OwnID, size) }

// DeviceID is the attribute that keeps cores on one device.
const DeviceID = pool.Driver + "/deviceId"
