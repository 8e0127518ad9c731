package manifests

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	internal "k8s.io/kubernetes/pkg/apis/networking"
	networkingdefaults "k8s.io/kubernetes/pkg/apis/networking/v1"
	"k8s.io/kubernetes/pkg/apis/networking/validation"
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
		objects := monitored(t, source, "network-policy")
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

// By the API server's own code.
func TestNetworkPolicyIsValid(t *testing.T) {
	policy := one[*networkingv1.NetworkPolicy](t, monitored(t, "base", "network-policy"))
	errorsOf := func() int {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{internal.AddToScheme, networkingdefaults.AddToScheme} {
			if err := add(scheme); err != nil {
				t.Fatal(err)
			}
		}
		scheme.Default(policy)
		converted := &internal.NetworkPolicy{}
		if err := scheme.Convert(policy, converted, nil); err != nil {
			t.Fatal(err)
		}
		return len(validation.ValidateNetworkPolicy(converted, validation.NetworkPolicyValidationOptions{}))
	}
	if errorsOf() != 0 {
		t.Error("the API server would refuse the policy")
	}
	policy.Spec.PolicyTypes = []networkingv1.PolicyType{"Inbound"}
	if errorsOf() == 0 {
		t.Error("a policy type that is none was not refused: this test checks nothing")
	}
}
