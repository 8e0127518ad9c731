package helm

import (
	"strings"
	"testing"
)

// The DaemonSet for devices has the argument and an account that the role is bound to and the policy is for; no other one has either.
func TestHonorPlacementInEveryMode(t *testing.T) {
	for name, one := range map[string]struct {
		settings []string
		account  string
	}{
		"device-plugin": {nil, "neuron-agent-placement"},
		"both":          {[]string{"mode=both"}, "neuron-agent-placement"},
		"efa":           {[]string{"efaOnly.enabled=true"}, "neuron-agent-placement"},
		"dev":           {[]string{"dev.enabled=true"}, "neuron-agent-dev"},
		"node status":   {[]string{"nodeStatus.enabled=true", "efaOnly.enabled=true"}, "neuron-agent-node-status"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := rendered(t, append(one.settings, "honorPlacement=true")...)
			accounts := map[string]int{}
			for set, object := range daemonSets(objects) {
				args, env := text(at(container(object), "args")), text(at(container(object), "env"))
				if honors := strings.Contains(args, `"--honor-placement=on"`); honors != (set == "neuron-agent") {
					t.Errorf("%s: arguments %s", set, args)
				} else if honors && (accountOf(object) != one.account || strings.Count(env, `"name":"NODE_NAME"`) != 1) {
					t.Errorf("%s runs as %q, environment %s", set, accountOf(object), env)
				}
			}
			for _, object := range objects {
				switch name := at(object, "metadata", "name"); {
				case object["kind"] == "ServiceAccount":
					accounts[name.(string)]++
				case name != "neuron-agent-placement":
				case object["kind"] == "ClusterRoleBinding":
					if got := at(object, "subjects", 0, "name"); got != one.account {
						t.Errorf("bound to %v", got)
					}
				case object["kind"] == "ValidatingAdmissionPolicy":
					if expression := text(at(object, "spec", "matchConditions", 0, "expression")); !strings.Contains(expression, ":"+one.account+"$'") {
						t.Errorf("the policy is for %s", expression)
					}
				}
			}
			if accounts[one.account] != 1 {
				t.Errorf("accounts %v", accounts)
			}
		})
	}
}

func TestHonorPlacementThatCannotBeMeant(t *testing.T) {
	for _, settings := range [][]string{{"mode=dra"}, {"neuron.enabled=false", "efaOnly.enabled=true"}, {`env=[{"name":"NODE_NAME","value":"a"}]`}} {
		if _, err := template(t, append(settings, "honorPlacement=true")...); err == nil || !strings.Contains(err.Error(), "honorPlacement") {
			t.Errorf("%v: %v", settings, err)
		}
	}
}
