package karpenter

import (
	"os"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	dynamic "k8s.io/api/resource/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/yaml"
)

const deviceClass, coreClass, efaClass = "neuron.aws.com", "core.neuron.aws.com", "efa.neuron.aws.com"

func claim(name, class string, adjust func(*dynamic.ExactDeviceRequest)) *dynamic.ResourceClaim {
	request := dynamic.DeviceRequest{Name: "devices", Exactly: &dynamic.ExactDeviceRequest{DeviceClassName: class, Count: 1,
		AllocationMode: dynamic.DeviceAllocationModeExactCount}}
	if adjust != nil {
		adjust(request.Exactly)
	}
	return claimOf(name, dynamic.ResourceClaimSpec{Devices: dynamic.DeviceClaim{Requests: []dynamic.DeviceRequest{request}}})
}

// claimOf has the values that the API server fills in.
func claimOf(name string, spec dynamic.ResourceClaimSpec) *dynamic.ResourceClaim {
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if request.Exactly != nil {
			request.Exactly.AllocationMode, request.Exactly.Count = filled(request.Exactly.AllocationMode, request.Exactly.Count)
		}
		for j := range request.FirstAvailable {
			one := &request.FirstAvailable[j]
			one.AllocationMode, one.Count = filled(one.AllocationMode, one.Count)
		}
	}
	return &dynamic.ResourceClaim{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default"}, Spec: spec}
}

func filled(mode dynamic.DeviceAllocationMode, count int64) (dynamic.DeviceAllocationMode, int64) {
	if mode == "" {
		mode = dynamic.DeviceAllocationModeExactCount
	}
	if mode == dynamic.DeviceAllocationModeExactCount {
		count = max(count, 1)
	}
	return mode, count
}

// claiming is a pod with claims, which are stored.
func (s *simulation) claiming(t *testing.T, name string, claims ...*dynamic.ResourceClaim) *core.Pod {
	t.Helper()
	pod := asking(name, ask{})
	for _, one := range claims {
		if err := s.client.Create(s.ctx, one); err != nil {
			t.Fatal(err)
		}
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, core.PodResourceClaim{Name: one.Name, ResourceClaimName: &one.Name})
		pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, core.ResourceClaim{Name: one.Name})
	}
	return pod
}

func counting(count int64, expressions ...string) func(*dynamic.ExactDeviceRequest) {
	return func(request *dynamic.ExactDeviceRequest) {
		request.Count = count
		for _, expression := range expressions {
			request.Selectors = append(request.Selectors, dynamic.DeviceSelector{CEL: &dynamic.CELDeviceSelector{Expression: expression}})
		}
	}
}

// TestClaims: where the provider knows the slices that the catalogue prints, claims find the cheapest type that has the devices.
func TestClaims(t *testing.T) {
	plain := slicesByType(t, "--dra-shares", "off")
	for name, each := range map[string]struct {
		claim *dynamic.ResourceClaim
		want  string // "": refused
	}{
		"a device":                {claim("c", deviceClass, nil), "inf1.xlarge"},
		"six":                     {claim("c", deviceClass, counting(6)), "inf1.24xlarge"},
		"sixteen of a family":     {claim("c", deviceClass, counting(16, "device.attributes['neuron.aws.com'].family == 'Trainium2'")), "trn2.48xlarge"},
		"by memory":               {claim("c", deviceClass, counting(1, "device.capacity['neuron.aws.com'].memory.compareTo(quantity('100Gi')) > 0")), "trn3.3xlarge"},
		"two of a type":           {claim("c", deviceClass, counting(2, "device.attributes['neuron.aws.com'].instanceType == 'inf2.48xlarge'")), "inf2.48xlarge"},
		"of a type that has none": {claim("c", deviceClass, counting(2, "device.attributes['neuron.aws.com'].instanceType == 'inf2.xlarge'")), ""},
		"too many interfaces":     {claim("c", efaClass, counting(33)), ""},
		"cores, not offered":      {claim("c", coreClass, nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, nil, plain, false)
			s.schedule(t, s.claiming(t, "pod", each.claim.DeepCopy())).expect(t, each.want, "")
		})
	}
}

// TestLargeClaims: among many types the search for many devices runs into Karpenter's limit of 5 s, and nothing is started; a NodePool of
// one type has it at once.
func TestLargeClaims(t *testing.T) {
	plain := slicesByType(t, "--dra-shares", "off")
	for name, each := range map[string]struct {
		claim      *dynamic.ResourceClaim
		only, want string
	}{
		"interfaces": {claim("c", efaClass, counting(32)), "p5.48xlarge", "p5.48xlarge"},
		"devices":    {claim("c", deviceClass, counting(16)), "trn2.48xlarge", "trn2.48xlarge"},
		"too many":   {claim("c", deviceClass, counting(17)), "trn2.48xlarge", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, nil, plain, false, each.only)
			s.schedule(t, s.claiming(t, "pod", each.claim)).expect(t, each.want, "")
		})
	}
}

// TestClaimsArePacked: devices of a node that is to be started are given once.
func TestClaimsArePacked(t *testing.T) {
	s := start(t, nil, slicesByType(t, "--dra-shares", "off"), false)
	var pods []*core.Pod
	for _, name := range []string{"a", "b", "c"} {
		of := counting(8, "device.attributes['neuron.aws.com'].instanceType == 'trn1.32xlarge'")
		pods = append(pods, s.claiming(t, name, claim("eight-"+name, deviceClass, of)))
	}
	got := s.schedule(t, pods...)
	if len(got.nodes) != 2 || len(got.refused) > 0 || got.pods[0]+got.pods[1] != 3 {
		t.Errorf("%+v", got)
	}
}

// TestExampleClaims: the templates of manifests/examples, with all partitions. What asks for a driver version finds none: the catalogue
// knows no node's.
func TestExampleClaims(t *testing.T) {
	want := map[string]string{"neuron-1": "inf1.xlarge", "neuron-2": "trn1.32xlarge", "neuron-4": "trn1.32xlarge", "neuron-8": "trn1.32xlarge",
		"neuron-16": "trn2.48xlarge", "neuron-all": "trn1.32xlarge", "neuron-driver-version": "", "neuron-lnc-2": "inf1.xlarge",
		"neuron-ultraserver-node": "trn2u.48xlarge", "neuron-8-efa-8": "trn2.48xlarge", "neuron-16-efa-8": "trn1.32xlarge",
		"core-1": "inf1.xlarge", "cores-3": "inf1.xlarge", "cores-2-together": "inf1.xlarge", "group-of-4": "inf1.6xlarge",
		"group-or-device": "inf1.xlarge", "group-of-4-efa-1": "trn1.32xlarge", "efa-1": "trn2.3xlarge", "inferentia-2": "inf2.48xlarge"}
	only := map[string][]string{"neuron-16": {"trn2.48xlarge"}, "neuron-8-efa-8": {"trn2.48xlarge"}} // see TestLargeClaims
	tried := 0
	parts := slicesByType(t, "--dra-partitions", "all")
	for _, file := range []string{"claims-whole-devices.yaml", "claims-parts.yaml"} {
		text, err := os.ReadFile("../../manifests/examples/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			template := &dynamic.ResourceClaimTemplate{}
			if !strings.Contains(document, "kind: ResourceClaimTemplate") {
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(document), template); err != nil {
				t.Fatal(err)
			}
			t.Run(template.Name, func(t *testing.T) {
				s := start(t, nil, parts, false, only[template.Name]...)
				got := s.schedule(t, s.claiming(t, "pod", claimOf("c", template.Spec.Spec)))
				got.expect(t, want[template.Name], "")
			})
			tried++
		}
	}
	if tried != len(want) {
		t.Errorf("%d examples, want %d", tried, len(want))
	}
}

// TestSharedDevices: claims for a few cores of a device, from 1.37, share it.
func TestSharedDevices(t *testing.T) {
	s := start(t, nil, slicesByType(t, "--dra-shares", "on"), false)
	cores := func(count string) func(*dynamic.ExactDeviceRequest) {
		return func(request *dynamic.ExactDeviceRequest) {
			counting(1, "device.attributes['neuron.aws.com'].family == 'Trainium2'")(request)
			request.Capacity = &dynamic.CapacityRequirements{Requests: ofCores(count)}
		}
	}
	pods := []*core.Pod{s.claiming(t, "a", claim("two-a", coreClass, cores("2"))), s.claiming(t, "b", claim("two-b", coreClass, cores("2")))}
	if got := s.schedule(t, pods...); len(got.nodes) != 1 || got.nodes[0][0] != "trn2.3xlarge" {
		t.Errorf("%+v", got) // one device with four logical cores
	}
	third := append(pods, s.claiming(t, "c", claim("two-c", coreClass, cores("2"))))
	if got := s.schedule(t, third...); len(got.refused) > 0 || !slices.Equal(got.pods, []int{3}) && len(got.nodes) != 2 {
		t.Errorf("%+v", got)
	}
	s.schedule(t, s.claiming(t, "d", claim("five", coreClass, cores("5")))).expect(t, "", "")
}

// TestClaimsByDefault: Karpenter leaves pods with claims alone unless --ignore-dra-requests=false.
func TestClaimsByDefault(t *testing.T) {
	s := start(t, nil, slicesByType(t), true)
	got := s.schedule(t, s.claiming(t, "pod", claim("c", deviceClass, nil)))
	if err := got.refused["pod"]; err == nil || !scheduling.IsDRAError(err) || len(got.nodes) > 0 {
		t.Errorf("%+v", got)
	}
}

func ofCores(count string) map[dynamic.QualifiedName]quantity.Quantity {
	return map[dynamic.QualifiedName]quantity.Quantity{"cores": quantity.MustParse(count)}
}
