// Package claims asks the scheduler's own allocator (k8s.io/dynamic-resource-allocation/structured) for devices, as its plugin
// DynamicResources asks it: everything allocated so far, all slices of the cluster, one node.
package claims

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"neuron-agent.test/dra/pool"
)

// Features of the allocator with 1.36's gates as they are by default (pkg/features and AllocatorFeatures of the plugin).
var Features = structured.Features{
	AdminAccess:            true,
	PrioritizedList:        true,
	PartitionableDevices:   true,
	DeviceTaints:           true,
	DeviceBindingAndStatus: true,
	ConsumableCapacity:     true,
}

// Class name of each kind.
var Class = map[string]string{
	pool.Device: pool.Driver,
	pool.Core:   "core." + pool.Driver,
	pool.Group:  "group." + pool.Driver,
	pool.EFA:    "efa." + pool.Driver,
}

type classes map[string]*resourceapi.DeviceClass

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class := c[name]; class != nil {
		return class, nil
	}
	return nil, fmt.Errorf("no class %s", name)
}

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	var all []*resourceapi.DeviceClass
	for _, class := range c {
		all = append(all, class)
	}
	return all, nil
}

// Selector of a class: the driver first, as a missing attribute of another driver's device is an error for every node. What can
// give cores are cores and devices that claims may share, which say whether they are whole; so is what does not say.
func Selector(kind string) string {
	its := fmt.Sprintf("device.attributes['%s']", pool.Driver)
	switch kind {
	case pool.Core:
		return fmt.Sprintf("device.driver == '%[1]s' && (%[2]s.resourceType == '%[3]s' || %[2]s.?whole.hasValue())", pool.Driver, its, kind)
	case pool.Device:
		return fmt.Sprintf("device.driver == '%[1]s' && %[2]s.resourceType == '%[3]s' && %[2]s.?whole.orValue(true)", pool.Driver, its, kind)
	}
	return fmt.Sprintf("device.driver == '%[1]s' && device.attributes['%[1]s'].resourceType == '%[2]s'", pool.Driver, kind)
}

// Classes are those of the manifests, as the API server has them.
func Classes() []*resourceapi.DeviceClass {
	all, _ := allClasses().List()
	return all
}

func allClasses() classes {
	all := classes{}
	for kind, name := range Class {
		all[name] = &resourceapi.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourceapi.DeviceClassSpec{
				Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: Selector(kind)}}},
			},
		}
	}
	return all
}

// Scheduler knows a cluster's slices and what is allocated. One goroutine.
type Scheduler struct {
	slices  []*resourceapi.ResourceSlice
	classes classes
	cache   *cel.Cache
	taken   sets.Set[structured.DeviceID]
	shares  sets.Set[structured.SharedDeviceID]
	used    structured.ConsumedCapacityCollection
	Steps   int64 // of the search, in the last pass
}

// NewScheduler of a cluster with these slices.
func NewScheduler(slices []*resourceapi.ResourceSlice) *Scheduler {
	return &Scheduler{
		slices:  slices,
		classes: allClasses(),
		cache:   cel.NewCache(100, cel.Features{EnableConsumableCapacity: true}),
		taken:   sets.New[structured.DeviceID](),
		shares:  sets.New[structured.SharedDeviceID](),
		used:    structured.NewConsumedCapacityCollection(),
	}
}

// Result is one device that a claim got; of one that claims share also the id of the share, and of how much.
type Result struct {
	Claim                 int // position among those of the pod
	Request, Pool, Device string
	ShareID               *types.UID
	AdminAccess           bool // it holds nothing
	Consumed              map[resourceapi.QualifiedName]resource.Quantity
}

// Cores that it has of a shared device; 0: all of a device that is not shared.
func (r Result) Cores() int {
	cores := r.Consumed[pool.Cores]
	return int(cores.Value())
}

// A Pass is the scheduling of one pod: an allocator over the state of this moment, asked for one node after the other.
type Pass struct {
	allocator structured.Allocator
	claims    []*resourceapi.ResourceClaim
}

// NewPass for a pod with these claims.
func (s *Scheduler) NewPass(ctx context.Context, claims ...*resourceapi.ResourceClaim) (*Pass, error) {
	state := structured.AllocatedState{
		AllocatedDevices:         s.taken,
		AllocatedSharedDeviceIDs: s.shares,
		AggregatedCapacity:       s.used,
	}
	allocator, err := structured.NewAllocator(ctx, Features, state, s.classes, s.slices, s.cache)
	return &Pass{allocator, claims}, err
}

// Try gives what the claims would get on the node, one after the other; nil: nothing. Nothing is taken.
func (p *Pass) Try(ctx context.Context, nodeName string) ([]Result, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	answers, err := p.allocator.Allocate(ctx, node, p.claims)
	if err != nil || len(answers) == 0 {
		return nil, err
	}
	var results []Result
	for i, answer := range answers {
		for _, device := range answer.Devices.Results {
			results = append(results, Result{i, device.Request, device.Pool, device.Device, device.ShareID, device.AdminAccess != nil && *device.AdminAccess, device.ConsumedCapacity})
		}
	}
	return results, nil
}

// Steps that the search took so far; the type of the statistics is internal to the module.
func (p *Pass) Steps() int64 {
	return reflect.ValueOf(p.allocator).MethodByName("GetStats").Call(nil)[0].FieldByName("NumAllocateOneInvocations").Int()
}

// Allocate serves a claim on the node and takes what it got; nil: not to be had.
func (s *Scheduler) Allocate(ctx context.Context, nodeName string, claim *resourceapi.ResourceClaim) ([]Result, error) {
	pass, err := s.NewPass(ctx, claim)
	if err != nil {
		return nil, err
	}
	results, err := pass.Try(ctx, nodeName)
	s.Steps = pass.Steps()
	if err == nil {
		s.Take(results)
	}
	return results, err
}

// Take marks as allocated.
func (s *Scheduler) Take(results []Result) {
	for _, r := range results {
		id := structured.MakeDeviceID(pool.Driver, r.Pool, r.Device)
		if r.AdminAccess {
			continue
		}
		if r.ShareID == nil {
			s.taken.Insert(id)
			continue
		}
		s.shares.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
		s.used.Insert(structured.NewDeviceConsumedCapacity(id, r.Consumed))
	}
}

// Release gives back.
func (s *Scheduler) Release(results []Result) {
	for _, r := range results {
		id := structured.MakeDeviceID(pool.Driver, r.Pool, r.Device)
		if r.AdminAccess {
			continue
		}
		if r.ShareID == nil {
			s.taken.Delete(id)
			continue
		}
		s.shares.Delete(structured.MakeSharedDeviceID(id, r.ShareID))
		s.used.Remove(structured.NewDeviceConsumedCapacity(id, r.Consumed))
	}
}
