package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	resource "k8s.io/api/resource/v1"
	amount "k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"neuron-agent.test/cluster/cluster"
)

// claimConfig is a row of the table that the driver's own decoder and the policy's expressions are held to as well.
type claimConfig struct {
	Name, Driver, Verdict, Says string
	Parameters                  json.RawMessage
}

func (one claimConfig) devices() resource.DeviceClaim {
	if one.Driver == "" {
		one.Driver = "neuron.aws.com"
	}
	return resource.DeviceClaim{
		Requests: []resource.DeviceRequest{{Name: "r", Exactly: &resource.ExactDeviceRequest{DeviceClassName: "neuron.aws.com"}}},
		Config: []resource.DeviceClaimConfiguration{{DeviceConfiguration: resource.DeviceConfiguration{
			Opaque: &resource.OpaqueDeviceConfiguration{Driver: one.Driver, Parameters: runtime.RawExtension{Raw: one.Parameters}}}}}}
}

// create makes a claim, a template and a class with the configuration, none of which is kept, and returns their errors by kind.
func (one claimConfig) create(c *cluster.Cluster) map[string]error {
	ctx, dry, name := context.Background(), meta.CreateOptions{DryRun: []string{meta.DryRunAll}}, meta.ObjectMeta{Name: "configured"}
	spec, all := resource.ResourceClaimSpec{Devices: one.devices()}, c.Client.ResourceV1()
	_, claim := all.ResourceClaims("default").Create(ctx, &resource.ResourceClaim{ObjectMeta: name, Spec: spec}, dry)
	_, template := all.ResourceClaimTemplates("default").Create(ctx,
		&resource.ResourceClaimTemplate{ObjectMeta: name, Spec: resource.ResourceClaimTemplateSpec{Spec: spec}}, dry)
	class := resource.DeviceClassSpec{Config: []resource.DeviceClassConfiguration{{DeviceConfiguration: spec.Devices.Config[0].DeviceConfiguration}}}
	_, made := all.DeviceClasses().Create(ctx, &resource.DeviceClass{ObjectMeta: name, Spec: class}, dry)
	return map[string]error{"claim": claim, "template": template, "class": made}
}

// TestClaimPolicy: the real API server refuses, with the policy, the configuration that Prepare would refuse, and says what Prepare would
// say; without it none that is an object. A claim from before is not held up.
func TestClaimPolicy(t *testing.T) {
	c := cluster.Get(t)
	var configs []claimConfig
	text, err := os.ReadFile(cluster.Manifest("../test/fixtures/claims/configs.json"))
	if err == nil {
		err = json.Unmarshal(text, &configs)
	}
	if err != nil || len(configs) < 30 {
		t.Fatalf("%d configurations: %v", len(configs), err)
	}
	byName := map[string]claimConfig{}
	for i := range configs { // as kubectl sends them: the API server compares a claim's parameters byte by byte when it is patched
		compact := &bytes.Buffer{}
		if err := json.Compact(compact, configs[i].Parameters); err != nil {
			t.Fatal(err)
		}
		configs[i].Parameters = compact.Bytes()
		byName[configs[i].Name] = configs[i]
	}
	wrong := byName["LNC 3"]
	ctx, claims := context.Background(), c.Client.ResourceV1().ResourceClaims("default")
	old := &resource.ResourceClaim{ObjectMeta: meta.ObjectMeta{Name: "from-before"}, Spec: resource.ResourceClaimSpec{Devices: wrong.devices()}}
	if _, err := claims.Create(ctx, old, meta.CreateOptions{}); err != nil {
		t.Fatal("without the policy: ", err)
	}
	t.Cleanup(func() { c.Kubectl(t, "delete", "--ignore-not-found", "--wait", "resourceclaim", old.Name) })

	const policy = "neuron-agent-dra-claims"
	c.Apply(t, cluster.Manifest("components/dra-claim-policy/policy.yaml"))
	cluster.Eventually(t, cluster.Patience, "the policy is in force", func() error {
		for kind, err := range wrong.create(c) {
			if err == nil || !strings.Contains(err.Error(), policy) {
				return fmt.Errorf("%s: %v", kind, err)
			}
		}
		return nil
	})
	for _, one := range configs {
		isObject := json.Unmarshal(one.Parameters, &map[string]any{}) == nil && string(one.Parameters) != "null"
		for kind, err := range one.create(c) {
			switch {
			case one.Verdict != "refused":
				if err != nil {
					t.Errorf("%s, %s: %v", one.Name, kind, err)
				}
			case err == nil:
				t.Errorf("%s, %s: was taken", one.Name, kind)
			case isObject && (!strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'") || !strings.Contains(err.Error(), one.Says)):
				t.Errorf("%s, %s: %v, want %q", one.Name, kind, err, one.Says) // the API refuses what is no object
			}
		}
	}
	none := resource.ResourceClaimSpec{Devices: wrong.devices()}
	none.Devices.Config = nil
	none.Devices.Requests[0].Exactly.Capacity = &resource.CapacityRequirements{Requests: map[resource.QualifiedName]amount.Quantity{"cores": {}}}
	if _, err := claims.Create(ctx, &resource.ResourceClaim{ObjectMeta: meta.ObjectMeta{Name: "none"}, Spec: none}, meta.CreateOptions{}); err == nil ||
		!strings.Contains(err.Error(), `the request "r" has no core of its device; request at least one`) {
		t.Errorf("a claim for no cores: %v", err)
	}
	label := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	if _, err := claims.Patch(ctx, old.Name, "application/merge-patch+json", label, meta.PatchOptions{}); err != nil {
		t.Error("a claim from before the policy: ", err)
	}
	cluster.Eventually(t, cluster.Patience, "the types of the policy's expressions are checked", func() error {
		made, err := c.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, policy, meta.GetOptions{})
		if err != nil || made.Status.ObservedGeneration != made.Generation {
			return fmt.Errorf("%d: %v", made.Status.ObservedGeneration, err)
		}
		if checking := made.Status.TypeChecking; checking != nil && len(checking.ExpressionWarnings) > 0 {
			t.Errorf("warnings %v", checking.ExpressionWarnings)
		}
		return nil
	})
}
