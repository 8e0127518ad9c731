package helm

import (
	"strings"
	"testing"
)

// accountOf is the account that the DaemonSet of that name runs as, "" without a token.
func accountOf(set object) string {
	if at(set, "spec", "template", "spec", "automountServiceAccountToken") != true {
		return ""
	}
	name, _ := at(set, "spec", "template", "spec", "serviceAccountName").(string)
	return name
}

// In every mode each DaemonSet has an account that the role is bound to and the policies are for, and an environment that names the
// node.
func TestNodeStatusInEveryMode(t *testing.T) {
	const own, driver = "neuron-agent-node-status", "neuron-agent-dra"
	for mode, want := range map[string]struct {
		settings []string
		accounts map[string]string
		pattern  string
	}{
		"device-plugin": {nil, map[string]string{"neuron-agent": own}, own},
		"dra":           {[]string{"mode=dra"}, map[string]string{driver: driver}, driver},
		"both":          {[]string{"mode=both"}, map[string]string{"neuron-agent": own, driver: driver}, "(" + own + "|" + driver + ")"},
		"efa":           {[]string{"neuron.enabled=false", "efaOnly.enabled=true"}, map[string]string{"neuron-agent-efa": own}, own},
		"dev":           {[]string{"dev.enabled=true"}, map[string]string{"neuron-agent": own}, own},
	} {
		t.Run(mode, func(t *testing.T) {
			objects := rendered(t, append(want.settings, "nodeStatus.enabled=true")...)
			sets := daemonSets(objects)
			subjects := map[string]bool{}
			for name, account := range want.accounts {
				subjects[account] = true
				if got := accountOf(sets[name]); got != account {
					t.Errorf("%s runs as %q, want %q", name, got, account)
				}
				if args, env := text(at(container(sets[name]), "args")), text(at(container(sets[name]), "env")); !strings.Contains(args, `"--node-status=on"`) ||
					strings.Count(env, `"name":"NODE_NAME"`) != 1 {
					t.Errorf("%s: arguments %s, environment %s", name, args, env)
				}
			}
			made, policies := map[string]bool{}, 0
			for _, one := range objects {
				name, _ := at(one, "metadata", "name").(string)
				switch one["kind"] {
				case "ServiceAccount":
					made[name] = true
				case "ClusterRoleBinding":
					if name == own {
						all, _ := at(one, "subjects").([]any)
						for _, subject := range all {
							if !subjects[at(subject, "name").(string)] {
								t.Errorf("bound to %s", text(subject))
							}
						}
						if len(all) != len(subjects) {
							t.Errorf("bound to %s", text(all))
						}
					}
				case "ValidatingAdmissionPolicy":
					if strings.HasPrefix(name, "neuron-agent-node-") {
						policies++
						if expression := text(at(one, "spec", "matchConditions", 0, "expression")); !strings.Contains(expression, ":"+want.pattern+"$'") {
							t.Errorf("%s is for %s, want %s", name, expression, want.pattern)
						}
					}
				}
			}
			for account := range subjects {
				if !made[account] {
					t.Errorf("nobody makes the account %s", account)
				}
			}
			if len(made) != len(subjects) || policies != 2 {
				t.Errorf("accounts %v, %d policies", made, policies)
			}
		})
	}
}

func TestArgumentsOfNodeStatus(t *testing.T) {
	one := daemonSets(rendered(t, "nodeStatus.enabled=true", "nodeStatus.acceleratedHardwareReady=true", "nodeStatus.unhealthyDevicesForNode=3"))["neuron-agent"]
	want := `["run","--take-over","--metrics-address=:8000","--node-status=on","--accelerated-hardware-ready","--unhealthy-devices-for-node=3"]`
	if got := text(at(container(one), "args")); got != want {
		t.Errorf("arguments %s, want %s", got, want)
	}
	if off := daemonSets(rendered(t, "nodeStatus.acceleratedHardwareReady=true"))["neuron-agent"]; accountOf(off) != "" ||
		strings.Contains(text(at(container(off), "args")), "hardware") {
		t.Errorf("off: %s", text(at(container(off), "args")))
	}
}

func TestStartupTaint(t *testing.T) {
	one := daemonSets(rendered(t, "nodeStatus.enabled=true", "nodeStatus.startupTaint=neuron-agent/starting:NoSchedule"))["neuron-agent"]
	if got := text(at(container(one), "args")); !strings.Contains(got, `"--startup-taint=neuron-agent/starting:NoSchedule"`) {
		t.Errorf("arguments %s", got)
	}
	for _, taint := range []string{"neuron-agent/a:Never", "example.com/starting"} {
		if _, err := template(t, "nodeStatus.enabled=true", "nodeStatus.startupTaint="+taint); err == nil {
			t.Errorf("%s was taken", taint)
		}
	}
}

func TestNodeStatusThatCannotBeMeant(t *testing.T) {
	if _, err := template(t, "nodeStatus.enabled=true", `env=[{"name":"NODE_NAME","value":"a"}]`); err == nil || !strings.Contains(err.Error(), "NODE_NAME") {
		t.Errorf("NODE_NAME twice: %v", err)
	}
	if _, err := template(t, "nodeStatus.unhealthyDevicesForNode=65"); err == nil {
		t.Error("65 devices were taken")
	}
	if _, err := helm(t, "template", release, chart, "--kube-version", "1.31.2", "--set", "nodeStatus.enabled=true"); err == nil || !strings.Contains(err.Error(), "1.32") {
		t.Errorf("on 1.31: %v", err)
	}
}
