package dra

import (
	"context"
	"os"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"neuron-agent.test/dra/claims"
	"neuron-agent.test/dra/node"
	"neuron-agent.test/dra/pool"
)

// sharedNode has so many devices that are held as a whole, of a trn2.48xlarge whose devices claims may share.
func sharedNode(t *testing.T, held int) *claims.Scheduler {
	t.Helper()
	kind, _ := node.Find("trn2.48xlarge")
	s := claims.NewScheduler(pool.Share(pool.Slices(nodeName, kind, pool.Partitions{}, pool.Default(), pool.Split)))
	for range held {
		if results, err := s.Allocate(context.Background(), nodeName, claims.Claim(claims.Request(claims.Units, pool.Device, 1))); err != nil || len(results) != 1 {
			t.Fatalf("%v, %v", results, err)
		}
	}
	return s
}

// devicesFor a claim, of which nothing is taken.
func devicesFor(t *testing.T, s *claims.Scheduler, parts ...func(*resourceapi.DeviceClaim)) int {
	t.Helper()
	pass, err := s.NewPass(context.Background(), claims.Claim(parts...))
	if err != nil {
		t.Fatal(err)
	}
	results, err := pass.Try(context.Background(), nodeName)
	if err != nil {
		t.Fatal(err)
	}
	return len(results)
}

// exampleClaims are those of the templates in manifests/examples/claims-parts.yaml, by name.
func exampleClaims(t *testing.T) map[string]*resourceapi.ResourceClaim {
	t.Helper()
	text, err := os.ReadFile("../../manifests/examples/claims-parts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*resourceapi.ResourceClaim{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		template := &resourceapi.ResourceClaimTemplate{}
		if !strings.Contains(document, "kind: ResourceClaimTemplate") {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(document), template); err != nil {
			t.Fatal(err)
		}
		claim := claims.Claim()
		claim.Spec = template.Spec.Spec
		for i := range claim.Spec.Devices.Requests { // as the API server does
			if exactly := claim.Spec.Devices.Requests[i].Exactly; exactly != nil && exactly.AllocationMode == "" {
				exactly.AllocationMode, exactly.Count = resourceapi.DeviceAllocationModeExactCount, max(exactly.Count, 1)
			}
		}
		all[template.Name] = claim
	}
	return all
}

// The examples for cores get single cores, whether claims share devices or each core is a device.
func TestExamplesForCores(t *testing.T) {
	kind, _ := node.Find("trn2.48xlarge")
	examples := exampleClaims(t)
	for name, want := range map[string]struct{ cores, devices int }{"core-1": {1, 1}, "cores-3": {3, 3}, "cores-2-together": {2, 1}} {
		shared := claims.NewScheduler(pool.Share(pool.Slices(nodeName, kind, pool.Partitions{}, pool.Default(), pool.Split)))
		apart := claims.NewScheduler(pool.Slices(nodeName, kind, pool.Partitions{Cores: true}, pool.Default(), pool.Split))
		for way, s := range map[string]*claims.Scheduler{"shared": shared, "apart": apart} {
			results, err := s.Allocate(context.Background(), nodeName, examples[name])
			if err != nil {
				t.Fatal(err)
			}
			cores, devices := 0, map[string]bool{}
			for _, result := range results {
				device, _, isCore := strings.Cut(result.Device, "-core-")
				devices[device] = true
				if cores += result.Cores(); isCore {
					cores++
				}
			}
			if cores != want.cores || way == "shared" && len(devices) != want.devices || want.devices == 1 && len(devices) != 1 {
				t.Errorf("%s, %s: %d cores of %v", name, way, cores, results)
			}
		}
	}
}

// Admin access wants capacity like any request. One for 0 cores has it on every device, however full.
func TestAdminAccessToSharedDevices(t *testing.T) {
	for _, held := range []int{0, 1, 15, 16} {
		s := sharedNode(t, held)
		if got := devicesFor(t, s, claims.All(claims.Units, pool.Device), claims.AdminAccess(true)); got != 16 {
			t.Errorf("%d held: all for 0 cores: %d devices", held, got)
		}
		if got := devicesFor(t, s, claims.Request(claims.Units, pool.Device, 1), claims.AdminAccess(true)); got != 1 {
			t.Errorf("%d held: one for 0 cores: %d devices", held, got)
		}
	}
	if got := devicesFor(t, sharedNode(t, 16), claims.Request(claims.Units, pool.Device, 1), claims.AdminAccess(false)); got != 0 {
		t.Errorf("on a full node without a capacity: %d devices", got)
	}
}

// What follows for claims with allocationMode All is why --dra-shares=auto begins with 1.37, whose allocator lets them wait.
func TestAllOfSharedDevicesIsTheRestInOneThirtySix(t *testing.T) {
	if got := devicesFor(t, sharedNode(t, 0), claims.All(claims.Units, pool.Device)); got != 16 {
		t.Errorf("all of an idle node: %d devices", got)
	}
	if got := devicesFor(t, sharedNode(t, 3), claims.All(claims.Units, pool.Device)); got != 13 {
		t.Errorf("all of a node with 3 held: %d devices: docs/dra-partitions.md#shares says otherwise", got)
	}
	if got := devicesFor(t, sharedNode(t, 3), claims.Request(claims.Units, pool.Device, 16)); got != 0 {
		t.Errorf("16 of a node with 3 held: %d devices", got)
	}
}
