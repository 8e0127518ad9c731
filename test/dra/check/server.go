// Package check says what an API server would do with ResourceSlices, with the server's own code, and what a scheduler
// would.
package check

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/resource"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"

	"neuron-agent.test/dra/claims"
	"neuron-agent.test/dra/pool"
)

// Versions of the API that a server serves; each has its own declarative rules.
var versions = []string{"v1", "v1beta2", "v1beta1"}

// Stored gives what the server keeps of a slice that a client creates: decoded strictly, with defaults, without the fields
// of gates that are off. Errors: whatever the server would answer with.
func Stored(slice *resourceapi.ResourceSlice) (*resourceapi.ResourceSlice, error) {
	text, err := json.Marshal(slice)
	if err != nil {
		return nil, err
	}
	return StoredText(text)
}

// StoredText is Stored for what a client sends.
func StoredText(text []byte) (*resourceapi.ResourceSlice, error) {
	decoder := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDecoder(resource.SchemeGroupVersion)
	object, _, err := decoder.Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	internal, ok := object.(*resource.ResourceSlice)
	if !ok {
		return nil, fmt.Errorf("a %T", object)
	}
	for _, version := range versions {
		ctx := genericapirequest.WithRequestInfo(genericapirequest.NewDefaultContext(),
			&genericapirequest.RequestInfo{APIGroup: resource.GroupName, APIVersion: version, Resource: "resourceslices"})
		resourceslice.Strategy.PrepareForCreate(ctx, internal)
		if problems := resourceslice.Strategy.Validate(ctx, internal); len(problems) > 0 {
			return nil, fmt.Errorf("%s: %w", version, problems.ToAggregate())
		}
		if warnings := resourceslice.Strategy.WarningsOnCreate(ctx, internal); len(warnings) > 0 {
			return nil, fmt.Errorf("%s: %s", version, warnings[0])
		}
	}
	stored := &resourceapi.ResourceSlice{}
	if err := legacyscheme.Scheme.Convert(internal, stored, nil); err != nil {
		return nil, err
	}
	return stored, nil
}

// Kept: the server keeps all that the spec says.
func Kept(sent, stored *resourceapi.ResourceSlice) bool {
	return apiequality.Semantic.DeepEqual(sent.Spec, stored.Spec)
}

// Usable says what a scheduler finds wrong with the pool of one node, whose slices these are in the order in which they are
// meant to be tried: a pool that is incomplete or contradicts itself, names that sort in another order.
func Usable(nodeName string, all []*resourceapi.ResourceSlice) error {
	byName := func(a, b *resourceapi.ResourceSlice) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) }
	if !slices.IsSortedFunc(all, byName) {
		return fmt.Errorf("slices sort in another order by name")
	}
	for _, slice := range all {
		if slice.Spec.Pool.ResourceSliceCount != int64(len(all)) || slice.Spec.Pool.Generation != all[0].Spec.Pool.Generation {
			return fmt.Errorf("%s: pool %+v, and there are %d slices", slice.Name, slice.Spec.Pool, len(all))
		}
	}
	// A claim for all of something is refused with the reason when the pool is not whole, a plain one says nothing.
	claim := claims.Claim(claims.Request(claims.Units, pool.Device, 0))
	claim.Spec.Devices.Requests[0].Exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
	pass, err := claims.NewScheduler(all).NewPass(context.Background(), claim)
	if err == nil {
		_, err = pass.Try(context.Background(), nodeName)
	}
	return err
}
