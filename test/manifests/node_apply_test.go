package manifests

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

// What the API server's own code makes of a condition that one applies and another then writes: what agent/status counts on, and
// test/fakes/fake_api_owners.h imitates.
func TestAnEntryGoesWithItsManagerUnlessHeld(t *testing.T) {
	for what, each := range map[string]struct {
		applied string
		want    string // reason of what is left, "" for none
	}{
		"left out": {`{}`, ""},
		"held": {`{"conditions":[{"type":"AcceleratedHardwareReady","lastHeartbeatTime":"2026-01-01T00:00:00Z",
			"lastTransitionTime":"2026-01-01T00:00:00Z"}]}`, "Theirs"},
	} {
		manager := managedfieldstest.NewTestFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), corev1.SchemeGroupVersion.WithKind("Node"))
		apply := func(status string) error {
			object := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},"status":`+status+`}`), object); err != nil {
				t.Fatal(err)
			}
			return manager.Apply(object, "neuron-agent", false)
		}
		const ours = `{"conditions":[{"type":"AcceleratedHardwareReady","status":"True","reason":"Ours","message":"m",
			"lastHeartbeatTime":"2026-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`
		if err := apply(ours); err != nil {
			t.Fatal(err)
		}
		live := &corev1.Node{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content(t, manager.Live()), live); err != nil {
			t.Fatal(err)
		}
		live.Status.Conditions[0].Reason, live.Status.Conditions[0].Message, live.Status.Conditions[0].Status = "Theirs", "theirs", "False"
		changed := &unstructured.Unstructured{Object: content(t, live)}
		changed.SetAPIVersion("v1")
		changed.SetKind("Node")
		if err := manager.Update(changed, "eks-node-monitoring-agent"); err != nil {
			t.Fatal(err)
		}
		if err := apply(ours); err == nil {
			t.Error("no conflict")
		}
		if err := apply(each.applied); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content(t, manager.Live()), live); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, one := range live.Status.Conditions {
			got = one.Reason
			if one.Status != "False" || one.Message != "theirs" || one.LastTransitionTime.Year() != 2026 {
				t.Errorf("%s: left is %+v", what, one)
			}
		}
		if got != each.want {
			t.Errorf("%s: left is %q, want %q", what, got, each.want)
		}
	}
}

func content(t *testing.T, object runtime.Object) map[string]any {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}
