package dra

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"neuron-agent.test/dra/claims"
	"neuron-agent.test/dra/pool"
)

// What pods ask for in the questions to kubectl-neuron, and the dump that it reads.

// expression draws a selector that holds for some devices.
func (f *askedFleet) expression(kind string) string {
	its := "device.attributes['" + pool.Driver + "']."
	all := []string{its + "lnc == 2", its + "instanceType == 'trn1.32xlarge'", its + "instanceType.startsWith('trn')", its + "deviceId < 5",
		its + "deviceId in [0, 2, 4, 6]", "!(" + its + "instanceType == 'inf2.24xlarge')", its + "?topology4_id.orValue(9) == 1",
		its + "neuronDriverVersion == '2.30.2.0' || " + its + "lnc == 1",
		"device.capacity['" + pool.Driver + "'].cores.compareTo(quantity('4')) >= 0"}
	if kind == pool.Group {
		all = append(all[:3:3], claims.GroupOf(4), claims.GroupOf(8), its+"size < 8", its+"first == 4", claims.GroupOf(2))
	}
	if kind == pool.EFA {
		all = append(all[:3:3], its+"rdmaDevice.contains('s2')")
	}
	return all[f.random.IntN(len(all))]
}

func (f *askedFleet) kind() string {
	all := []string{pool.Device, pool.Device, pool.Device, pool.EFA}
	if f.partitions.Cores || f.shares {
		all = append(all, pool.Core, pool.Core)
	}
	if f.partitions.Groups {
		all = append(all, pool.Group, pool.Group)
	}
	return all[f.random.IntN(len(all))]
}

// exact draws what one request asks for.
func (f *askedFleet) exact(name string, most int) *resourceapi.ExactDeviceRequest {
	kind := f.kind()
	if kind == pool.Group {
		most = 2
	}
	claim := claims.Claim(claims.Request(name, kind, 1+f.random.IntN(most)))
	if kind == pool.Core && f.shares {
		claim = claims.Claim(claims.Shares(name, 1+f.random.IntN(3), 1+f.random.IntN(4)))
	}
	exact := claim.Spec.Devices.Requests[0].Exactly
	if f.random.IntN(3) == 0 {
		exact.Selectors = append(exact.Selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: f.expression(kind)}})
	}
	if f.random.IntN(12) == 0 {
		exact.AllocationMode, exact.Count = resourceapi.DeviceAllocationModeAll, 0
	}
	if f.random.IntN(8) == 0 {
		exact.Tolerations = []resourceapi.DeviceToleration{{Key: taintKey, Operator: resourceapi.DeviceTolerationOpExists}}
	}
	if f.random.IntN(15) == 0 && most > 9 { // alternatives have no admin access
		exact.AdminAccess = &yes
	}
	return exact
}

// draw draws the claims of a pod.
func (f *askedFleet) draw() []*resourceapi.ResourceClaim {
	var all []*resourceapi.ResourceClaim
	f.number++
	for i := range 1 + f.random.IntN(5)/4 {
		claim := claims.Claim()
		claim.Name = fmt.Sprintf("claim-%d-%d", f.number, i)
		claim.UID = types.UID(fmt.Sprintf("00000000-0000-0000-%04d-%012d", i, f.number))
		for k := range 1 + f.random.IntN(5)/3 {
			request := resourceapi.DeviceRequest{Name: "r" + strconv.Itoa(k)}
			if f.random.IntN(6) == 0 {
				for alternative := range 2 {
					e := f.exact(request.Name, 9)
					request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{Name: "a" + strconv.Itoa(alternative),
						DeviceClassName: e.DeviceClassName, Selectors: e.Selectors, AllocationMode: e.AllocationMode, Count: e.Count, Capacity: e.Capacity, Tolerations: e.Tolerations})
				}
			} else {
				request.Exactly = f.exact(request.Name, 16)
			}
			claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, request)
		}
		f.constrain(&claim.Spec.Devices)
		all = append(all, claim)
	}
	return all
}

// constrain lets some claims demand that their devices have something in common, with few devices: the search grows with their number.
func (f *askedFleet) constrain(claim *resourceapi.DeviceClaim) {
	if f.random.IntN(4) > 0 {
		return
	}
	for i := range claim.Requests {
		if exact := claim.Requests[i].Exactly; exact != nil {
			exact.Count = min(exact.Count, 4)
		}
	}
	names := []string{claims.GroupID(4), claims.GroupID(8), claims.GroupID(1), claims.DeviceID, pool.Driver + "/lnc", claims.OwnID(2)}
	name := names[f.random.IntN(len(names))]
	if f.random.IntN(5) == 0 {
		distinct := resourceapi.FullyQualifiedName(name)
		claim.Constraints = append(claim.Constraints, resourceapi.DeviceConstraint{DistinctAttribute: &distinct})
		return
	}
	claims.Match(name)(claim)
}

type object = map[string]any

func (f *askedFleet) write(name string, content any) {
	text, err := json.Marshal(content)
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o600)); err != nil {
		f.Fatal(err)
	}
}

func podObject(name, on string, of []*resourceapi.ResourceClaim, templates bool) object {
	var uses []object
	for i, claim := range of {
		use := object{"name": "c" + strconv.Itoa(i), "resourceClaimName": claim.Name}
		if templates {
			use = object{"name": "c" + strconv.Itoa(i), "resourceClaimTemplateName": claim.Name}
		}
		uses = append(uses, use)
	}
	status := object{"phase": "Running"}
	if on == "" {
		status = object{"phase": "Pending", "conditions": []object{{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}}}
	}
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"namespace": "default", "name": name}, "status": status,
		"spec": object{"nodeName": on, "resourceClaims": uses, "containers": []object{{"name": "main"}}}}
}

func (f *askedFleet) writeDump(wanted []*resourceapi.ResourceClaim) {
	f.write("dump.json", object{"format": "kubectl-neuron-dump/1", "read_at": "2026-11-26T12:00:00Z", "namespace": "default"})
	var nodes, pods, made, templates []any
	for _, name := range f.nodes {
		nodes = append(nodes, object{"metadata": object{"name": name, "labels": object{"kubernetes.io/hostname": name}},
			"status": object{"conditions": []object{{"type": "Ready", "status": "True"}}}})
	}
	for _, h := range f.holders {
		pods = append(pods, podObject(h.name(), h.node, h.claims, false))
		made = append(made, h.allocated()...)
	}
	for _, claim := range wanted {
		templates = append(templates, object{"metadata": object{"namespace": "default", "name": claim.Name}, "spec": object{"spec": claim.Spec}})
	}
	pods = append(pods, podObject("asked", "", wanted, true))
	for name, items := range map[string]any{"nodes": nodes, "pods": pods, "resourceslices": f.slices, "resourceclaims": made,
		"resourceclaimtemplates": templates, "deviceclasses": claims.Classes(), "events": []any{}} {
		f.write(name+"/0.json", object{"items": items})
	}
}

// allocated are the holder's claims with what they were given.
func (h *holder) allocated() []any {
	var all []any
	for i, claim := range h.claims {
		one := claim.DeepCopy()
		one.Status.Allocation = &resourceapi.AllocationResult{}
		one.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: h.name(), UID: "1"}}
		devices := &one.Status.Allocation.Devices
		for _, r := range h.results {
			if r.Claim == i {
				devices.Results = append(devices.Results, resourceapi.DeviceRequestAllocationResult{
					Request: r.Request, Driver: pool.Driver, Pool: r.Pool, Device: r.Device, ShareID: r.ShareID, ConsumedCapacity: r.Consumed})
			}
		}
		all = append(all, one)
	}
	return all
}
