package helm

import (
	"strings"
	"testing"
)

func ofKind(objects []object, kind string) object {
	for _, one := range objects {
		if one["kind"] == kind {
			return one
		}
	}
	return nil
}

func TestMonitoringValues(t *testing.T) {
	objects := rendered(t, "metrics.podMonitor.enabled=true", "metrics.podMonitor.interval=30s", `metrics.podMonitor.labels={"release":"prometheus"}`,
		"metrics.tls.secretName=tls", "nameOverride=chips", "metrics.prometheusRule.enabled=true", "metrics.prometheusRule.runbookUrlPrefix=https://runbooks.example/")
	monitor := ofKind(objects, "PodMonitor")
	if got := at(monitor, "metadata", "labels", "release"); got != "prometheus" {
		t.Errorf("labels %s", text(at(monitor, "metadata", "labels")))
	}
	endpoint := at(monitor, "spec", "podMetricsEndpoints", 0)
	if at(endpoint, "interval") != "30s" || at(endpoint, "scheme") != "https" || at(endpoint, "tlsConfig", "insecureSkipVerify") != true {
		t.Errorf("endpoint %s", text(endpoint))
	}
	if got := text(at(monitor, "spec", "selector", "matchExpressions", 0, "values")); got != `["chips","chips-efa","chips-dra"]` {
		t.Errorf("looks for %s", got)
	}
	rule := at(ofKind(objects, "PrometheusRule"), "spec", "groups", 0, "rules", 0)
	if got := at(rule, "annotations", "runbook_url"); got != "https://runbooks.example/docs/alerts.md#neuronuncorrectableerror" {
		t.Errorf("runbook_url %v", got)
	}
	verified := rendered(t, "metrics.podMonitor.enabled=true", "metrics.tls.secretName=tls", `metrics.podMonitor.tlsConfig={"serverName":"a"}`)
	if got := text(at(ofKind(verified, "PodMonitor"), "spec", "podMetricsEndpoints", 0, "tlsConfig")); got != `{"serverName":"a"}` {
		t.Errorf("tlsConfig %s", got)
	}
}

func TestNeuronMonitorServiceOfEachMode(t *testing.T) {
	for mode, want := range map[string]string{
		"device-plugin": `{"app.kubernetes.io/instance":"neuron-agent","app.kubernetes.io/name":"neuron-agent"}`,
		"dra":           `{"app.kubernetes.io/instance":"neuron-agent","app.kubernetes.io/name":"neuron-agent-dra"}`,
		"both":          `{"app.kubernetes.io/instance":"neuron-agent"}`,
	} {
		objects := rendered(t, "mode="+mode, "metrics.neuronMonitorService.enabled=true", "metrics.tls.secretName=a", "metrics.neuronMonitorService.aliasNamespace=")
		service := ofKind(objects, "Service")
		if got := text(at(service, "spec", "selector")); got != want {
			t.Errorf("%s: selects %s", mode, got)
		}
	}
}

func TestNetworkPolicyValues(t *testing.T) {
	if policy := ofKind(rendered(t), "NetworkPolicy"); policy != nil {
		t.Errorf("there is one by default: %s", text(policy))
	}
	policy := ofKind(rendered(t, "metrics.networkPolicy.enabled=true", "nameOverride=chips", `metrics.networkPolicy.from=[{"podSelector":{"matchLabels":{"a":"b"}}}]`),
		"NetworkPolicy")
	if got := text(at(policy, "spec", "ingress", 0, "from")); got != `[{"podSelector":{"matchLabels":{"a":"b"}}}]` {
		t.Errorf("from %s", got)
	}
	if got := text(at(policy, "spec", "podSelector", "matchExpressions", 0, "values")); got != `["chips","chips-efa","chips-dra"]` {
		t.Errorf("about %s", got)
	}
	// Of an empty list all may connect, which is not what is asked for.
	if _, err := template(t, "metrics.networkPolicy.enabled=true", "metrics.networkPolicy.from=[]"); err == nil {
		t.Error("an empty list of peers was taken")
	}
}

func TestTheNodeDocumentCanBeTurnedOff(t *testing.T) {
	const off = `"--node-document=off"`
	for _, mode := range []string{"device-plugin", "dra"} {
		for _, set := range daemonSets(rendered(t, "mode="+mode, "metrics.nodeDocument=false")) {
			if args := text(at(container(set), "args")); !strings.Contains(args, off) {
				t.Errorf("%s: arguments %s", mode, args)
			}
		}
		for _, set := range daemonSets(rendered(t, "mode="+mode)) {
			if args := text(at(container(set), "args")); strings.Contains(args, "node-document") {
				t.Errorf("%s: arguments %s", mode, args)
			}
		}
	}
}

func TestRolesOfKubectlNeuron(t *testing.T) {
	for _, one := range rendered(t) {
		if kind := one["kind"]; kind == "ClusterRole" || kind == "Role" {
			t.Errorf("by default there is %s", nameOf(one))
		}
	}
	objects := rendered(t, "kubectlNeuron.roles=true", "namespaceOverride=accelerators", "fullnameOverride=chips")
	role := ofKind(objects, "Role")
	if at(role, "metadata", "namespace") != "accelerators" || at(role, "metadata", "name") != "chips-kubectl" {
		t.Errorf("role %s", text(role["metadata"]))
	}
	if got := text(role["rules"]); got != `[{"apiGroups":[""],"resources":["pods/proxy"],"verbs":["get"]}]` {
		t.Errorf("rules %s", got)
	}
	if ofKind(objects, "ClusterRole") == nil || ofKind(objects, "ClusterRoleBinding") != nil || ofKind(objects, "RoleBinding") != nil {
		t.Error("no cluster role, or it is bound to somebody")
	}
}

func TestMonitoringNeedsMetrics(t *testing.T) {
	for _, settings := range [][]string{
		{"metrics.networkPolicy.enabled=true", "metrics.enabled=false"},
		{"metrics.neuronMonitorService.enabled=true"},
		{"metrics.podMonitor.enabled=true", "metrics.enabled=false"},
	} {
		if _, err := template(t, settings...); err == nil || !strings.Contains(err.Error(), "enabled needs metrics.") {
			t.Errorf("%v: %v", settings, err)
		}
	}
}
