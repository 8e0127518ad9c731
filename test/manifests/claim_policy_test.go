package manifests

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// claimConfig is a row of test/fixtures/claims/configs.json, which the driver's own decoder is held to as well (claim_check_test.cpp).
type claimConfig struct {
	Name, Driver, Verdict, Says string
	Parameters                  json.RawMessage
}

func claimConfigs(t *testing.T) []claimConfig {
	t.Helper()
	var rows []claimConfig
	text, err := os.ReadFile("../fixtures/claims/configs.json")
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	if err != nil || len(rows) < 30 {
		t.Fatalf("%d configurations: %v", len(rows), err)
	}
	return rows
}

func opaque(driver string, parameters json.RawMessage) resourcev1.DeviceConfiguration {
	return resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: driver, Parameters: runtime.RawExtension{Raw: parameters}}}
}

// configured are a claim, a template and a class with these configurations.
func configured(configs ...resourcev1.DeviceConfiguration) []metav1.Object {
	claim := resourcev1.ResourceClaimSpec{}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	for _, one := range configs {
		claim.Devices.Config = append(claim.Devices.Config, resourcev1.DeviceClaimConfiguration{DeviceConfiguration: one})
		class.Spec.Config = append(class.Spec.Config, resourcev1.DeviceClassConfiguration{DeviceConfiguration: one})
	}
	meta := metav1.ObjectMeta{Namespace: "default", Name: "c"}
	return []metav1.Object{&resourcev1.ResourceClaim{ObjectMeta: meta, Spec: claim}, class,
		&resourcev1.ResourceClaimTemplate{ObjectMeta: meta, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claim}}}
}

func TestClaimPolicyRefusesWhatPrepareWould(t *testing.T) {
	policy := only[*admissionv1.ValidatingAdmissionPolicy](t, claimPolicy)
	const good = `{"apiVersion": "neuron.aws.com/v1", "kind": "NeuronConfig", "logicalNeuronCore": 1}`
	for _, row := range claimConfigs(t) {
		t.Run(row.Name, func(t *testing.T) {
			driver := row.Driver
			if driver == "" {
				driver = "neuron.aws.com"
			}
			for _, object := range configured(opaque("gpu.example.com", []byte(`{"a": 1}`)), opaque("neuron.aws.com", []byte(good)), opaque(driver, row.Parameters)) {
				refused := denials(t, policy, "anyone", "", object, nil)
				if row.Verdict != "refused" {
					if len(refused) != 0 {
						t.Errorf("%T: %q", object, refused)
					}
				} else if len(refused) != 1 || !strings.HasPrefix(refused[0], "error applying config: config[2]: ") || !strings.Contains(refused[0], row.Says) {
					t.Errorf("%T: %q, want %q", object, refused, row.Says)
				}
			}
		})
	}
}

// A row of test/fixtures/claims/requests.json, to which `neuron-agent check --claim` is held as well.
type claimRequest struct {
	Name, Refused, Unreadable string
	Request                   json.RawMessage
}

// requesting are a claim and a template with these requests.
func requesting(requests ...resourcev1.DeviceRequest) []metav1.Object {
	claim, meta := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}}, metav1.ObjectMeta{Namespace: "default", Name: "c"}
	return []metav1.Object{&resourcev1.ResourceClaim{ObjectMeta: meta, Spec: claim},
		&resourcev1.ResourceClaimTemplate{ObjectMeta: meta, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claim}}}
}

func TestClaimPolicyRefusesRequestsForNoCores(t *testing.T) {
	policy := only[*admissionv1.ValidatingAdmissionPolicy](t, claimPolicy)
	var rows []claimRequest
	text, err := os.ReadFile("../fixtures/claims/requests.json")
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	if err != nil || len(rows) < 10 {
		t.Fatalf("%d requests: %v", len(rows), err)
	}
	device := resourcev1.DeviceRequest{Name: "q", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "neuron.aws.com"}}
	for _, row := range rows {
		request := resourcev1.DeviceRequest{}
		if err := json.Unmarshal(row.Request, &request); (err != nil) != (row.Unreadable != "") {
			t.Errorf("%s: the API server reads it as %v, %v", row.Name, request, err)
		}
		if row.Unreadable != "" {
			continue // which no policy sees
		}
		request.Name = "r"
		for _, object := range requesting(device, request) {
			refused := denials(t, policy, "anyone", "", object, nil)
			if want := `the request "r" has no core of its device; request at least one`; row.Refused == "" && len(refused) != 0 ||
				row.Refused != "" && !slices.Equal(refused, []string{want}) {
				t.Errorf("%s, %T: %q", row.Name, object, refused)
			}
		}
	}
}

func TestClaimPolicyLeavesTheRestAlone(t *testing.T) {
	policy := only[*admissionv1.ValidatingAdmissionPolicy](t, claimPolicy)
	for _, object := range configured() {
		if refused := denials(t, policy, "anyone", "", object, nil); len(refused) != 0 {
			t.Errorf("%T without configuration: %q", object, refused)
		}
	}
	for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
		updates := slices.Contains(rule.Operations, admissionv1.Update)
		if isClass := slices.Equal(rule.Resources, []string{"deviceclasses"}); updates != isClass || !slices.Equal(rule.APIVersions, []string{"*"}) {
			t.Errorf("rule %v: a claim from before the policy has to be let go", rule)
		}
	}
	binding := only[*admissionv1.ValidatingAdmissionPolicyBinding](t, claimPolicy)
	if binding.Spec.PolicyName != policy.Name || *policy.Spec.FailurePolicy != admissionv1.Ignore {
		t.Errorf("binding of %s, on failure %s", binding.Spec.PolicyName, *policy.Spec.FailurePolicy)
	}
}

// The API's bounds, 32 entries of 10 KiB, are within the cost that the API server allows; a message that is too long has a short one.
func TestClaimPolicyEndsAtTheBoundsOfTheApi(t *testing.T) {
	policy := only[*admissionv1.ValidatingAdmissionPolicy](t, claimPolicy)
	fields := map[string]any{"apiVersion": "neuron.aws.com/v1", "kind": "NeuronConfig", "logicalNeuronCore": 1}
	for i := range 1250 {
		fields[fmt.Sprintf("%03x", i)] = 1
	}
	many, err := json.Marshal(fields)
	if err != nil || len(many) > 10<<10 {
		t.Fatal(len(many), err)
	}
	long := []byte(`{"apiVersion": "neuron.aws.com/v1", "kind": "NeuronConfig", "` + strings.Repeat("x", 10000) + `": 1}`)
	for name, parameters := range map[string][]byte{"unknown field": many, "is not one that the driver accepts": long} {
		var all []resourcev1.DeviceConfiguration
		for range 32 {
			all = append(all, opaque("neuron.aws.com", parameters))
		}
		for _, object := range configured(all...) {
			if refused := denials(t, policy, "anyone", "", object, nil); len(refused) != 1 || !strings.Contains(refused[0], name) {
				t.Errorf("%T: %.200q, want %q", object, refused, name)
			}
		}
	}
	alternatives := make([]resourcev1.DeviceSubRequest, 8)
	for i := range alternatives {
		alternatives[i] = resourcev1.DeviceSubRequest{Name: fmt.Sprint("a", i), DeviceClassName: "core.neuron.aws.com", Capacity: cores("1")}
	}
	requests := make([]resourcev1.DeviceRequest, 32)
	for i := range requests {
		requests[i] = resourcev1.DeviceRequest{Name: fmt.Sprint("r", i), FirstAvailable: slices.Clone(alternatives)}
	}
	requests[31].FirstAvailable[7].Capacity = cores("0")
	for _, object := range requesting(requests...) {
		if refused := denials(t, policy, "anyone", "", object, nil); len(refused) != 1 || !strings.HasPrefix(refused[0], `the request "r31"`) {
			t.Errorf("%T: %.200q", object, refused)
		}
	}
}

func cores(count string) *resourcev1.CapacityRequirements {
	return &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"cores": resource.MustParse(count)}}
}
