package manifests

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

// With the right to patch pods the agent may do one thing: write on a pod of its own node that it has its devices.
func TestPlacementPolicyAllowsOneAnnotationOfItsNodesPods(t *testing.T) {
	policy := only[*admissionv1.ValidatingAdmissionPolicy](t, "components/honor-placement/access.yaml")
	const agent = "neuron-agent-placement"
	pod := func(node string, change func(*corev1.Pod)) *corev1.Pod {
		one := &corev1.Pod{}
		one.Name, one.Namespace, one.Spec.NodeName = "a", "default", node
		one.Annotations = map[string]string{"AWS_NEURON_IDS": "4,5", "NEURON_ALLOCATED": "false"}
		one.Spec.Containers = []corev1.Container{{Name: "main", Image: "image"}}
		if change != nil {
			change(one)
		}
		return one
	}
	given := func(one *corev1.Pod) { one.Annotations["NEURON_ALLOCATED"] = "true" }
	also := func(change func(*corev1.Pod)) func(*corev1.Pod) {
		return func(one *corev1.Pod) { given(one); change(one) }
	}
	for name, one := range map[string]struct {
		node   string
		change func(*corev1.Pod)
		want   bool
	}{
		"given":                 {"n1", given, true},
		"of another node":       {"n2", given, false},
		"of no node":            {"", given, false},
		"another value":         {"n1", func(one *corev1.Pod) { one.Annotations["NEURON_ALLOCATED"] = "yes" }, false},
		"another annotation":    {"n1", also(func(one *corev1.Pod) { one.Annotations["AWS_NEURON_IDS"] = "0,1" }), false},
		"an annotation more":    {"n1", also(func(one *corev1.Pod) { one.Annotations["b"] = "c" }), false},
		"an annotation less":    {"n1", also(func(one *corev1.Pod) { delete(one.Annotations, "AWS_NEURON_IDS") }), false},
		"a label":               {"n1", also(func(one *corev1.Pod) { one.Labels = map[string]string{"app": "x"} }), false},
		"another image":         {"n1", also(func(one *corev1.Pod) { one.Spec.Containers[0].Image = "other" }), false},
		"another phase":         {"n1", also(func(one *corev1.Pod) { one.Status.Phase = corev1.PodFailed }), false},
		"moved to another node": {"n1", also(func(one *corev1.Pod) { one.Spec.NodeName = "n2" }), false},
	} {
		if refused := denials(t, policy, agent, "n1", pod(one.node, one.change), pod(one.node, nil)); (len(refused) == 0) != one.want {
			t.Errorf("%s: %q", name, refused)
		}
	}
	if len(denials(t, policy, agent, "n1", pod("n1", given), nil)) == 0 || len(denials(t, policy, agent, "n1", nil, pod("n1", nil))) == 0 {
		t.Error("pods can be made or deleted")
	}
	if len(denials(t, policy, agent, "", pod("n1", given), pod("n1", nil))) == 0 {
		t.Error("a token without a node may write")
	}
	if refused := denials(t, policy, "another", "n1", pod("n2", nil), pod("n2", given)); len(refused) != 0 {
		t.Errorf("another account: %q", refused)
	}
}
