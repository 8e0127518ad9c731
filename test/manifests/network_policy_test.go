package manifests

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// mayConnect: whether the policy lets a pod of that namespace connect to the port.
func mayConnect(t *testing.T, policy *networkingv1.NetworkPolicy, namespace, port string) bool {
	t.Helper()
	for _, rule := range policy.Spec.Ingress {
		fits := slices.ContainsFunc(rule.Ports, func(one networkingv1.NetworkPolicyPort) bool { return one.Port.String() == port })
		for _, from := range rule.From {
			selector, err := metav1.LabelSelectorAsSelector(from.NamespaceSelector)
			if err != nil {
				t.Fatal(err)
			}
			if fits && selector.Matches(labels.Set{"kubernetes.io/metadata.name": namespace}) {
				return true
			}
		}
	}
	return false
}

func TestNetworkPolicyComponent(t *testing.T) {
	for _, source := range []string{"base", "overlays/dra", "overlays/efa-only"} {
		objects := kustomized(t, source, []string{"network-policy"}, "")
		policy := one[*networkingv1.NetworkPolicy](t, objects)
		daemonSet := one[*appsv1.DaemonSet](t, objects)
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		template := daemonSet.Spec.Template
		if !selector.Matches(labels.Set(template.Labels)) || policy.Namespace != daemonSet.Namespace {
			t.Errorf("%s: the policy is not about pods labelled %v in %s", source, template.Labels, daemonSet.Namespace)
		}
		if selector.Matches(labels.Set{"app.kubernetes.io/name": "another"}) || template.Spec.HostNetwork {
			t.Errorf("%s: the policy is about other pods, too, or about none", source)
		}
		// Egress stays open: the agent may call the API server.
		if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
			t.Errorf("%s: the policy is for %v", source, policy.Spec.PolicyTypes)
		}
		port := template.Spec.Containers[0].Ports[0].Name
		for namespace, want := range map[string]bool{"monitoring": true, "prometheus": true, "amazon-cloudwatch": true, "default": false, "team-a": false} {
			if got := mayConnect(t, policy, namespace, port); got != want {
				t.Errorf("%s: a pod of %s may connect: %v, want %v", source, namespace, got, want)
			}
		}
	}
}
