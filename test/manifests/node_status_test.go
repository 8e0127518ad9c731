package manifests

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

const statusPath = "static/" + statusFile

// What the agent may do in the API, and that nobody else may do it through this role.
func TestNodeStatusMayChangeNodesAndWriteEvents(t *testing.T) {
	role := only[*rbacv1.ClusterRole](t, statusPath)
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
	if !reflect.DeepEqual(role.Rules, want) || role.AggregationRule != nil {
		t.Errorf("rules %v, want %v", role.Rules, want)
	}
	account := only[*corev1.ServiceAccount](t, statusPath)
	binding := only[*rbacv1.ClusterRoleBinding](t, statusPath)
	subject := rbacv1.Subject{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}
	if !reflect.DeepEqual(binding.Subjects, []rbacv1.Subject{subject}) || binding.RoleRef.Name != role.Name {
		t.Errorf("binds %v to %v, want %v", binding.RoleRef, binding.Subjects, subject)
	}
	set := load(t, statusFile)
	if pod := set.Spec.Template.Spec; pod.ServiceAccountName != account.Name || account.Namespace != set.Namespace ||
		!isTrue(pod.AutomountServiceAccountToken) || !isFalse(account.AutomountServiceAccountToken) {
		t.Errorf("the pod runs as %q", pod.ServiceAccountName)
	}
}

// Beside what it needs to ask the API server the DaemonSet is the default one.
func TestNodeStatusIsTheDefaultAndAToken(t *testing.T) {
	set, base := load(t, statusFile), load(t, "neuron-agent.yaml")
	pod, container := &set.Spec.Template.Spec, &set.Spec.Template.Spec.Containers[0]
	if !slices.Contains(container.Args, "--node-status=on") || len(container.Env) != 1 || container.Env[0].Name != "NODE_NAME" ||
		container.Env[0].ValueFrom.FieldRef.FieldPath != "spec.nodeName" {
		t.Errorf("arguments %v, environment %v", container.Args, container.Env)
	}
	pod.ServiceAccountName, pod.AutomountServiceAccountToken, container.Env = "", base.Spec.Template.Spec.AutomountServiceAccountToken, nil
	container.Args = slices.DeleteFunc(container.Args, func(arg string) bool { return arg == "--node-status=on" })
	if !reflect.DeepEqual(set.Spec, base.Spec) {
		t.Errorf("%v, want %v", set.Spec, base.Spec)
	}
}

func statusPolicies(t *testing.T) map[string]*admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	found := map[string]*admissionv1.ValidatingAdmissionPolicy{}
	for _, object := range objects(t, statusPath) {
		if policy, is := object.(*admissionv1.ValidatingAdmissionPolicy); is {
			found[policy.Spec.MatchConstraints.ResourceRules[0].Resources[0]] = policy
		}
	}
	return found
}

// Both policies are for the agent's account, in force, and of every way to write what the role allows.
func TestNodeStatusPoliciesCoverTheRole(t *testing.T) {
	policies := statusPolicies(t)
	account := only[*corev1.ServiceAccount](t, statusPath)
	bound := map[string]bool{}
	for _, object := range objects(t, statusPath) {
		if binding, is := object.(*admissionv1.ValidatingAdmissionPolicyBinding); is {
			bound[binding.Spec.PolicyName] = binding.Spec.MatchResources == nil &&
				slices.Equal(binding.Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Deny})
		}
	}
	for resource, want := range map[string][]string{"nodes": {"nodes", "nodes/*"}, "events": {"events"}} {
		policy := policies[resource]
		if policy == nil || !bound[policy.Name] {
			t.Fatalf("no policy for %s is in force", resource)
		}
		expression := "request.userInfo.username.matches('^system:serviceaccount:[^:]+:" + account.Name + "$')"
		if conditions := policy.Spec.MatchConditions; len(conditions) != 1 || conditions[0].Expression != expression {
			t.Errorf("%s: for %v, want %s", resource, conditions, expression)
		}
		if fail := policy.Spec.FailurePolicy; fail == nil || *fail != admissionv1.Fail {
			t.Errorf("%s: an expression that fails lets everything through", resource)
		}
		rule := admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: want},
		}
		if rules := policy.Spec.MatchConstraints.ResourceRules; len(rules) != 1 || !reflect.DeepEqual(rules[0].RuleWithOperations, rule) {
			t.Errorf("%s: rules %v, want %v", resource, rules, rule)
		}
	}
	if len(policies) != 2 {
		t.Errorf("%d policies", len(policies))
	}
}

// The labels that the policy allows are those that the program writes and the page explains.
func TestNodeStatusPolicyNamesTheLabelsOfThePage(t *testing.T) {
	text, err := os.ReadFile("../../docs/node-status.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, variable := range statusPolicies(t)["nodes"].Spec.Variables {
		if !strings.HasPrefix(variable.Name, "own") {
			continue
		}
		for _, quoted := range regexp.MustCompile(`'[^']+'`).FindAllString(variable.Expression, -1) {
			if name := strings.Trim(quoted, "'"); !strings.Contains(page, "`"+name+"`") {
				t.Errorf("docs/node-status.md does not explain %s", name)
			}
		}
	}
}

func TestApiServerWouldAcceptTheNodeStatusPolicies(t *testing.T) {
	for _, object := range objects(t, statusPath) {
		if errors := refusals(t, object); len(errors) > 0 {
			t.Errorf("the API server would refuse %T: %v", object, errors)
		}
	}
}
