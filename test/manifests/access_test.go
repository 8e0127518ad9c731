package manifests

import (
	"reflect"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// access is what the account of a static file may do, and what its policies say about that.
type access struct {
	rules    []rbacv1.PolicyRule
	policies []admissionv1.Rule
}

func ruleOf(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// Every version: one left out would be a way around a policy.
func limited(group string, resources ...string) admissionv1.Rule {
	return admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources}
}

var ofClaims = access{
	[]rbacv1.PolicyRule{
		ruleOf(resourcev1.GroupName, []string{"resourceslices"}, "get", "list", "watch", "create", "update", "patch", "delete"),
		ruleOf(resourcev1.GroupName, []string{"resourceclaims"}, "get"),
		ruleOf("", []string{"nodes", "pods"}, "get"),
	},
	[]admissionv1.Rule{limited(resourcev1.GroupName, "resourceslices")},
}

var granting = map[string]access{
	dev:     {[]rbacv1.PolicyRule{ruleOf("", []string{"nodes"}, "get")}, nil}, // the labels of the node, which come with the object
	draFile: ofClaims,
	draDev:  ofClaims,
	statusFile: {
		[]rbacv1.PolicyRule{
			ruleOf("", []string{"nodes"}, "get", "patch"),
			ruleOf("", []string{"nodes/status"}, "patch"),
			ruleOf("", []string{"events"}, "create", "patch"),
		},
		[]admissionv1.Rule{limited("", "nodes", "nodes/*"), limited("", "events")},
	},
}

// Users of kubectl neuron read, and reach the pods of the agent's namespace alone; no binding is made.
func TestKubectlNeuronRoleOnlyReads(t *testing.T) {
	objects := kustomized(t, "base", []string{"kubectl-neuron-role"}, "namespace: other\n")
	want := []rbacv1.PolicyRule{
		ruleOf("", []string{"nodes", "pods", "events"}, "get", "list"),
		ruleOf(resourcev1.GroupName, []string{"resourceslices", "resourceclaims", "resourceclaimtemplates", "deviceclasses"}, "get", "list"),
	}
	if role := one[*rbacv1.ClusterRole](t, objects); !reflect.DeepEqual(role.Rules, want) || role.AggregationRule != nil {
		t.Errorf("rules %v, want %v", role.Rules, want)
	}
	proxy := []rbacv1.PolicyRule{ruleOf("", []string{"pods/proxy"}, "get")}
	if role := one[*rbacv1.Role](t, objects); !reflect.DeepEqual(role.Rules, proxy) || role.Namespace != "other" {
		t.Errorf("in %s rules %v, want %v", role.Namespace, role.Rules, proxy)
	}
	for _, object := range objects {
		switch object.(type) {
		case *rbacv1.ClusterRoleBinding, *rbacv1.RoleBinding:
			t.Errorf("it is bound: %v", object)
		}
	}
}

// The role has these rules and no other, and is bound to the account of the pods alone.
func TestRolesAreMinimal(t *testing.T) {
	for name, want := range granting {
		path := "static/" + name
		role := only[*rbacv1.ClusterRole](t, path)
		if !reflect.DeepEqual(role.Rules, want.rules) || role.AggregationRule != nil {
			t.Errorf("%s: rules %v, want %v", name, role.Rules, want.rules)
		}
		account := only[*corev1.ServiceAccount](t, path)
		if !isFalse(account.AutomountServiceAccountToken) || len(account.Secrets) != 0 {
			t.Errorf("%s: every pod of the account gets its token", name)
		}
		binding := only[*rbacv1.ClusterRoleBinding](t, path)
		subject := rbacv1.Subject{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}
		if !reflect.DeepEqual(binding.Subjects, []rbacv1.Subject{subject}) {
			t.Errorf("%s: bound to %v, want %v", name, binding.Subjects, subject)
		}
		if ref := (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}); binding.RoleRef != ref {
			t.Errorf("%s: binds %v, want %v", name, binding.RoleRef, ref)
		}
		set := load(t, name)
		pod := set.Spec.Template.Spec
		if pod.ServiceAccountName != account.Name || account.Namespace != set.Namespace {
			t.Errorf("%s: the pod runs as %q", name, pod.ServiceAccountName)
		}
		if name != dev && !isTrue(pod.AutomountServiceAccountToken) { // dev_test.go: the init container has one of its own
			t.Errorf("%s: the pod has no token", name)
		}
	}
}

// The policies are in force, for the pods' account, and cover every way to write what the role allows: a policy for another account or
// for some of the versions would refuse nothing.
func TestPoliciesCoverTheRoles(t *testing.T) {
	for name, want := range granting {
		var rules []admissionv1.Rule
		bound, account := map[string]bool{}, ""
		for _, object := range objects(t, "static/"+name) {
			switch one := object.(type) {
			case *corev1.ServiceAccount:
				account = one.Name
			case *admissionv1.ValidatingAdmissionPolicyBinding:
				bound[one.Spec.PolicyName] = one.Spec.MatchResources == nil &&
					slices.Equal(one.Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Deny})
			}
		}
		for _, object := range objects(t, "static/"+name) {
			policy, is := object.(*admissionv1.ValidatingAdmissionPolicy)
			if !is {
				continue
			}
			if !bound[policy.Name] {
				t.Errorf("%s: %s is not in force", name, policy.Name)
			}
			expression := "request.userInfo.username.matches('^system:serviceaccount:[^:]+:" + account + "$')"
			if conditions := policy.Spec.MatchConditions; len(conditions) != 1 || conditions[0].Expression != expression {
				t.Errorf("%s: %s is for %v, want %s", name, policy.Name, conditions, expression)
			}
			if fail := policy.Spec.FailurePolicy; fail == nil || *fail != admissionv1.Fail {
				t.Errorf("%s: %s: an expression that fails lets everything through", name, policy.Name)
			}
			every := []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete}
			for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
				if rules = append(rules, rule.Rule); !slices.Equal(rule.Operations, every) || rule.ResourceNames != nil || rule.Scope != nil {
					t.Errorf("%s: %s has the rule %v", name, policy.Name, rule)
				}
			}
		}
		if !reflect.DeepEqual(rules, want.policies) || len(bound) != len(want.policies) {
			t.Errorf("%s: %d bindings, rules %v, want %v", name, len(bound), rules, want.policies)
		}
	}
}
