package manifests

import (
	"reflect"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const draPath = "static/" + draFile

// What the driver may do in the API, and that nobody else may do it through this role.
func TestDraMayWriteSlicesAndReadWhatItIsAskedAbout(t *testing.T) {
	role := only[*rbacv1.ClusterRole](t, draPath)
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceslices"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"get"}},
	}
	if !reflect.DeepEqual(role.Rules, want) || role.AggregationRule != nil {
		t.Errorf("rules %v, want %v", role.Rules, want)
	}
	account := only[*corev1.ServiceAccount](t, draPath)
	binding := only[*rbacv1.ClusterRoleBinding](t, draPath)
	subject := rbacv1.Subject{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}
	if !reflect.DeepEqual(binding.Subjects, []rbacv1.Subject{subject}) || binding.RoleRef.Name != role.Name {
		t.Errorf("binds %v to %v, want %v", binding.RoleRef, binding.Subjects, subject)
	}
	set := load(t, draFile)
	if pod := set.Spec.Template.Spec; pod.ServiceAccountName != account.Name || account.Namespace != set.Namespace ||
		!isTrue(pod.AutomountServiceAccountToken) || !isFalse(account.AutomountServiceAccountToken) {
		t.Errorf("the pod runs as %q", pod.ServiceAccountName)
	}
}

// A policy for another account, or for some of the versions only, would look well and refuse nothing.
func TestPolicyIsForTheDriversAccountAndEverySlice(t *testing.T) {
	policy := only[*admissionv1.ValidatingAdmissionPolicy](t, draPath)
	account := only[*corev1.ServiceAccount](t, draPath)
	if got, want := policy.Spec.MatchConditions[0].Expression,
		"request.userInfo.username.matches('^system:serviceaccount:[^:]+:"+account.Name+"$')"; got != want || len(policy.Spec.MatchConditions) != 1 {
		t.Errorf("it is for %s, want %s", got, want)
	}
	if fail := policy.Spec.FailurePolicy; fail == nil || *fail != admissionv1.Fail {
		t.Error("an expression that fails lets everything through")
	}
	rules := policy.Spec.MatchConstraints.ResourceRules
	want := admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
		Rule:       admissionv1.Rule{APIGroups: []string{"resource.k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"resourceslices"}},
	}
	if len(rules) != 1 || !reflect.DeepEqual(rules[0].RuleWithOperations, want) {
		t.Errorf("rules %v, want %v", rules, want)
	}
	binding := only[*admissionv1.ValidatingAdmissionPolicyBinding](t, draPath)
	if binding.Spec.PolicyName != policy.Name || binding.Spec.MatchResources != nil ||
		!slices.Equal(binding.Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Deny}) {
		t.Errorf("bound as %+v", binding.Spec)
	}
}

// The sockets are named after the pod, so the next instance may serve before the last one ends.
func TestDraUpdatesWithoutAGap(t *testing.T) {
	set := load(t, draFile)
	update := set.Spec.UpdateStrategy.RollingUpdate
	if update.MaxSurge.IntValue() != 1 || update.MaxUnavailable.IntValue() != 0 {
		t.Errorf("rolling update %v", update)
	}
	container := set.Spec.Template.Spec.Containers[0]
	for name, field := range map[string]string{"NODE_NAME": "spec.nodeName", "POD_UID": "metadata.uid"} {
		found := slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool {
			return v.Name == name && v.ValueFrom != nil && v.ValueFrom.FieldRef != nil && v.ValueFrom.FieldRef.FieldPath == field
		})
		if !found {
			t.Errorf("%s is not %s", name, field)
		}
	}
	if !slices.Contains(container.Args, "--mode=dra") || container.Ports[0].HostPort != 0 || set.Spec.Template.Spec.HostNetwork {
		t.Errorf("arguments %v, ports %v: two instances could not run beside each other", container.Args, container.Ports)
	}
}

// Where a device plugin serves the same devices the pod waits; anti-affinity holds in both directions, so one side saying it is
// enough.
func TestDraStaysAwayFromWhoeverServesTheSameDevices(t *testing.T) {
	template := load(t, draFile).Spec.Template
	terms := template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	kept := func(namespace string, podLabels map[string]string) bool {
		return slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
			selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
			if err != nil {
				t.Fatal(err)
			}
			everywhere := term.NamespaceSelector != nil && len(term.NamespaceSelector.MatchLabels) == 0
			return term.TopologyKey == corev1.LabelHostname && (everywhere || slices.Contains(term.Namespaces, namespace)) &&
				selector.Matches(labels.Set(podLabels))
		})
	}
	for _, name := range staticFiles {
		pod := load(t, name).Spec.Template
		if got := kept("anywhere", pod.Labels); got == isForClaims(name) {
			t.Errorf("keeps off the pods of %s: %v", name, got)
		}
	}
	// The scheduler of 1.36 looks at a pod that waits again when a pod ends that matches all of its terms (interpodaffinity,
	// isSchedulableAfterPodChange), so a second term would keep it waiting for five minutes.
	if len(terms) != 1 {
		t.Errorf("%d terms", len(terms))
	}
	if kept("kube-system", map[string]string{"k8s-app": "kube-proxy"}) {
		t.Error("keeps off pods that it has nothing to do with")
	}
}

// classes maps the names of the classes in a file to what they are.
func classes(t *testing.T, path string) map[string]*resourcev1.DeviceClass {
	t.Helper()
	found := map[string]*resourcev1.DeviceClass{}
	for _, object := range objects(t, path) {
		if class, is := object.(*resourcev1.DeviceClass); is {
			found[class.Name] = class
		}
	}
	return found
}

func TestClassesHaveNoExtendedNameByDefault(t *testing.T) {
	for name, class := range classes(t, draPath) {
		if class.Spec.ExtendedResourceName != nil {
			t.Errorf("%s serves %s", name, *class.Spec.ExtendedResourceName) // a kubelet before 1.36 would start pods without devices
		}
	}
}
