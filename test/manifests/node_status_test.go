package manifests

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

const statusPath = "static/" + statusFile

// Beside what it needs to ask the API server the DaemonSet is the default one.
func TestNodeStatusIsTheDefaultAndAToken(t *testing.T) {
	set, base := load(t, statusFile), load(t, "neuron-agent.yaml")
	pod, container := &set.Spec.Template.Spec, &set.Spec.Template.Spec.Containers[0]
	if !slices.Contains(container.Args, "--node-status=on") || len(container.Env) != 2 || container.Env[0].Name != "NODE_NAME" ||
		container.Env[0].ValueFrom.FieldRef.FieldPath != "spec.nodeName" {
		t.Fatalf("arguments %v, environment %v", container.Args, container.Env)
	}
	pod.ServiceAccountName, pod.AutomountServiceAccountToken, container.Env = "", base.Spec.Template.Spec.AutomountServiceAccountToken, container.Env[1:]
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
