package manifests

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserver "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	apicel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

// denials evaluates a policy with the API server's own code for a request of an account on a node, and returns its refusals. Either
// object is nil as in a request: the old one when it is made, the new one when it is deleted.
func denials(t *testing.T, policy *admissionv1.ValidatingAdmissionPolicy, account, node string, object, old metav1.Object) []string {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	options := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	variables := make([]cel.NamedExpressionAccessor, len(policy.Spec.Variables))
	for i, one := range policy.Spec.Variables {
		variables[i] = &validating.Variable{Name: one.Name, Expression: one.Expression}
	}
	compiler.CompileAndStoreVariables(variables, options, environment.StoredExpressions)
	var conditions, validations, messages []cel.ExpressionAccessor
	for i := range policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
	}
	for _, one := range policy.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: one.Expression, Message: one.Message, Reason: one.Reason})
		var message cel.ExpressionAccessor
		if one.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: one.MessageExpression}
		}
		messages = append(messages, message)
	}
	compiled := func(all []cel.ExpressionAccessor, options cel.OptionalVariableDeclarations) cel.ConditionEvaluator {
		return compiler.CompileCondition(all, options, environment.StoredExpressions)
	}
	matcher := matchconditions.NewMatcher(compiled(conditions, options), policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	validator := validating.NewValidator(compiled(validations, options), matcher, compiled(nil, options),
		compiled(messages, cel.OptionalVariableDeclarations{}), policy.Spec.FailurePolicy, nil)

	operation, kind, resource := apiserver.Update, schema.GroupVersionKind{}, schema.GroupVersionResource{}
	attributes := &apiserver.VersionedAttributes{}
	named := object
	if object == nil {
		operation, named = apiserver.Delete, old
	} else {
		attributes.VersionedObject = object.(runtime.Object)
	}
	if old == nil {
		operation = apiserver.Create
	} else {
		attributes.VersionedOldObject = old.(runtime.Object)
	}
	switch named.(type) {
	case *resourcev1.ResourceSlice:
		kind, resource = resourcev1.SchemeGroupVersion.WithKind("ResourceSlice"), resourcev1.SchemeGroupVersion.WithResource("resourceslices")
	case *resourcev1.ResourceClaim:
		kind, resource = resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"), resourcev1.SchemeGroupVersion.WithResource("resourceclaims")
	case *resourcev1.ResourceClaimTemplate:
		kind = resourcev1.SchemeGroupVersion.WithKind("ResourceClaimTemplate")
		resource = resourcev1.SchemeGroupVersion.WithResource("resourceclaimtemplates")
	case *resourcev1.DeviceClass:
		kind, resource = resourcev1.SchemeGroupVersion.WithKind("DeviceClass"), resourcev1.SchemeGroupVersion.WithResource("deviceclasses")
	case *corev1.Pod:
		kind, resource = corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	case *corev1.Event:
		kind, resource = corev1.SchemeGroupVersion.WithKind("Event"), corev1.SchemeGroupVersion.WithResource("events")
	case *corev1.Node:
		kind, resource = corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithResource("nodes")
	default:
		t.Fatalf("no kind for %T", named)
	}
	who := &user.DefaultInfo{Name: "system:serviceaccount:kube-system:" + account,
		Extra: map[string][]string{"authentication.kubernetes.io/node-name": {node}}}
	attributes.VersionedKind = kind
	attributes.Attributes = apiserver.NewAttributesRecord(attributes.VersionedObject, attributes.VersionedOldObject, kind, named.GetNamespace(),
		named.GetName(), resource, "", operation, nil, false, who)
	var refused []string
	for _, decision := range validator.Validate(context.Background(), resource, attributes, nil, nil, apicel.RuntimeCELCostBudget, nil).Decisions {
		if decision.Action != validating.ActionAdmit {
			refused = append(refused, decision.Message)
		}
	}
	return refused
}

func sliceOf(name, node string) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
	slice.Spec = resourcev1.ResourceSliceSpec{Driver: "neuron.aws.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node}}
	return slice
}

// Names are one space for the whole cluster: with one of another node's a driver would keep that node from publishing.
func TestPolicyBindsTheNamesOfSlicesToTheNode(t *testing.T) {
	policy := only[*admissionv1.ValidatingAdmissionPolicy](t, draPath)
	const driver = "neuron-agent-dra"
	long := strings.Repeat("n", 250)
	digest := "00001-x0123456789abcdef"
	for name, want := range map[string]bool{
		"00000-neuron.aws.com-n1":                  true,
		"0001f-neuron.aws.com-n1":                  true,
		"fffff01234567-neuron.aws.com-n1":          true, // with a salt
		"00000-neuron.aws.com-n2":                  false,
		"00000-neuron.aws.com-n11":                 false,
		"00000-neuron.aws.com-n1-x7k2d":            false, // as of generateName
		"00000-neuron.aws.com-b-neuron.aws.com-n1": false, // of a node called b-neuron.aws.com-n1
		"000000-neuron.aws.com-n1":                 false,
		"0000-neuron.aws.com-n1":                   false,
		"0000g-neuron.aws.com-n1":                  false,
		"00000-gpu.example.com-n1":                 false,
		"neuron.aws.com-n1":                        false,
		"00000":                                    false,
		"00000-":                                   false,
		digest:                                     false,
	} {
		refused := denials(t, policy, driver, "n1", sliceOf(name, "n1"), nil)
		if (len(refused) == 0) != want {
			t.Errorf("a slice named %q of node n1: %q", name, refused)
		}
		if !want && (len(refused) != 1 || !strings.Contains(refused[0], "slices named with a number and -neuron.aws.com-n1 only")) {
			t.Errorf("a slice named %q of node n1: %q", name, refused)
		}
		if refused := denials(t, policy, driver, "n1", nil, sliceOf(name, "n1")); len(refused) != 0 { // as of AWS's driver
			t.Errorf("deleting a slice named %q of node n1: %q", name, refused)
		}
	}
	if refused := denials(t, policy, driver, long, sliceOf(digest, long), nil); len(refused) != 0 {
		t.Errorf("a node with a long name: %q", refused)
	}
	if refused := denials(t, policy, driver, long, sliceOf("00000-neuron.aws.com-n1", long), nil); len(refused) != 1 {
		t.Errorf("a node with a long name takes a short one's: %q", refused)
	}
	if refused := denials(t, policy, driver, "n1", sliceOf("", "n1"), nil); len(refused) == 0 {
		t.Error("a slice without a name is taken")
	}
	own := sliceOf("00000-neuron.aws.com-n1", "n1")
	if refused := denials(t, policy, driver, "n1", own, own); len(refused) != 0 {
		t.Errorf("an update: %q", refused)
	}
	if refused := denials(t, policy, "another", "n1", sliceOf("x", "n2"), nil); len(refused) != 0 {
		t.Errorf("another account: %q", refused)
	}
	if refused := denials(t, policy, driver, "n1", nil, sliceOf("00000-neuron.aws.com-n1", "n2")); len(refused) == 0 {
		t.Error("a slice of another node can be deleted, whatever it is named")
	}
}

// The names that the driver gives (plugin/dra/slices/slice_sync.cpp) against the policy, at the bounds of their length.
func TestPolicyTakesTheNamesOfTheDriver(t *testing.T) {
	policy := only[*admissionv1.ValidatingAdmissionPolicy](t, draPath)
	for length, isShort := range map[int]bool{1: true, 63: true, 224: true, 225: false, 253: false} {
		node := strings.Repeat("n", length)
		plain, digest := fmt.Sprintf("%05x-neuron.aws.com-%s", 3, node), fmt.Sprintf("%05x-x%016x", 3, 7)
		for name, want := range map[string]bool{plain: isShort, digest: !isShort} {
			if refused := denials(t, policy, "neuron-agent-dra", node, sliceOf(name, node), nil); (len(refused) == 0) != want {
				t.Errorf("node of %d letters, slice %.60s: %q", length, name, refused)
			}
		}
	}
}

// The same of events: that of another node would be refused with "already exists" for an hour.
func TestPolicyBindsTheNamesOfEventsToTheNode(t *testing.T) {
	policy := statusPolicies(t)["events"]
	const agent, digest = "neuron-agent-node-status", "0123456789abcdef"
	event := func(name, node string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
			InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: node}, Source: corev1.EventSource{Component: "neuron-agent"}}
	}
	for name, want := range map[string]bool{
		"n1." + digest: true, "n2." + digest: false, "n11." + digest: false, "n1.b." + digest: false, "n1": false, "n1.": false, digest: false,
	} {
		if refused := denials(t, policy, agent, "n1", event(name, "n1"), nil); (len(refused) == 0) != want {
			t.Errorf("an event named %q of node n1: %q", name, refused)
		}
	}
	own := event("n1."+digest, "n1")
	if refused := denials(t, policy, agent, "n1", own, own); len(refused) != 0 {
		t.Errorf("an update: %q", refused)
	}
	long := strings.Repeat("n", 230)
	if refused := denials(t, policy, agent, long, event(long[:200]+"."+digest, long), nil); len(refused) != 0 {
		t.Errorf("a node with a long name: %q", refused)
	}
}

// Of a Node's spec the agent takes its startup taints away, and nothing else.
func TestPolicyLetsStartupTaintsGo(t *testing.T) {
	policy := statusPolicies(t)["nodes"]
	const agent = "neuron-agent-node-status"
	node := func(podCIDR string, keys ...string) *corev1.Node {
		one := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{PodCIDR: podCIDR}}
		for _, key := range keys {
			one.Spec.Taints = append(one.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
		return one
	}
	const starting = "neuron-agent/starting"
	for _, step := range []struct {
		what          string
		before, after *corev1.Node
		want          bool
	}{
		{"nothing", node("", starting, "b"), node("", starting, "b"), true},
		{"the startup taint is removed", node("", starting, "b"), node("", "b"), true},
		{"it was the only one", node("", starting), node(""), true},
		{"another is removed", node("", starting, "b"), node("", starting), false},
		{"both are removed", node("", starting, "b"), node(""), false},
		{"a startup taint is added", node("", "b"), node("", starting, "b"), false},
		{"another is added", node("", starting), node("", "b"), false},
		{"the spec changes too", node("10.0.0.0/24", starting), node("10.1.0.0/24"), false},
	} {
		if refused := denials(t, policy, agent, "n1", step.after, step.before); (len(refused) == 0) != step.want {
			t.Errorf("%s: %q", step.what, refused)
		}
	}
	if refused := denials(t, policy, agent, "n2", node(""), node("", starting)); len(refused) == 0 {
		t.Error("the startup taint of another node can be removed")
	}
	labelled := node("")
	labelled.Labels = map[string]string{"neuron.amazonaws.com/present": "true"}
	if refused := denials(t, policy, agent, "n1", labelled, node("")); len(refused) != 0 {
		t.Errorf("the label: %q", refused)
	}
}
