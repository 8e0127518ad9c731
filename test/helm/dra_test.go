package helm

import (
	"strings"
	"testing"
)

func TestModes(t *testing.T) {
	for mode, want := range map[string]string{
		"device-plugin": "neuron-agent", "dra": "neuron-agent-dra", "both": "neuron-agent neuron-agent-dra"} {
		sets := daemonSets(rendered(t, "mode="+mode))
		for _, name := range strings.Fields(want) {
			if sets[name] == nil {
				t.Errorf("mode %s: no DaemonSet %s", mode, name)
			}
		}
		if len(sets) != len(strings.Fields(want)) {
			t.Errorf("mode %s makes %d DaemonSets, want %s", mode, len(sets), want)
		}
	}
}

// The static files are the two halves of mode both; nothing is in it that is in neither.
func TestModeBothIsBothFiles(t *testing.T) {
	both := parse(t, string(read(t, manifests, "static", "neuron-agent.yaml")))
	both = append(both, parse(t, string(read(t, manifests, "static", "neuron-agent-dra.yaml")))...)
	expectSame(t, rendered(t, "mode=both"), both)
}

func TestArgumentsOfTheDriver(t *testing.T) {
	set := func(settings ...string) string {
		return text(at(container(daemonSets(rendered(t, append(settings, "mode=both")...))["neuron-agent-dra"]), "args"))
	}
	if got := set("coreDevices=0-3", "logLevel=warn"); got != `["run","--mode=dra","--metrics-address=:8000","--log-level=warn"]` {
		t.Errorf("arguments %s", got)
	}
	want := `["run","--mode=dra","--metrics-address=:8000","--kubelet-dir=/var/lib/k0s/kubelet","--dra-driver-name=neuron.example.com",` +
		`"--dra-partitions=cores","--dra-shares=off","--core-devices=0-3","--dra-ultraserver=devices","--dra-taint-effect=NoExecute"]`
	if got := set("kubeletDir=/var/lib/k0s/kubelet", "dra.driverName=neuron.example.com", "dra.partitions=cores", "dra.shares=off", "dra.coreDevices=0-3", "dra.ultraserver=devices",
		"dra.taintEffect=NoExecute"); got != want {
		t.Errorf("arguments %s, want %s", got, want)
	}
}

// Else the device plugin would give hardware away that pods hold by claims of that name.
func TestTheDevicePluginKnowsTheDriversName(t *testing.T) {
	for _, mode := range []string{"both", "device-plugin"} {
		set := daemonSets(rendered(t, "mode="+mode, "dra.driverName=second.neuron.example.com"))["neuron-agent"]
		if got := text(at(container(set), "args")); !strings.Contains(got, `"--dra-driver-name=second.neuron.example.com"`) {
			t.Errorf("mode %s: arguments %s", mode, got)
		}
	}
}

// Its host's name is not its own with hostNetwork.
func TestEachPodKnowsItsName(t *testing.T) {
	for name, set := range daemonSets(rendered(t, "mode=both", "efaOnly.enabled=true")) {
		if got := text(at(container(set), "env")); !strings.Contains(got, `{"name":"POD_NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}`) {
			t.Errorf("%s: env %s", name, got)
		}
	}
}

// What a developer sees on one node is everything, unless told otherwise.
func TestPartitionsOfASimulatedHost(t *testing.T) {
	for want, settings := range map[string][]string{
		"--dra-partitions=all": nil, "--dra-partitions=none": {"dra.partitions=none"}, "--dra-partitions=cores": {"dra.partitions=cores"}} {
		one := daemonSets(rendered(t, append(settings, "mode=dra", "dev.enabled=true")...))["neuron-agent-dra"]
		if got := text(at(container(one), "args")); !strings.Contains(got, `"`+want+`"`) || strings.Count(got, "partitions") != 1 {
			t.Errorf("%v: arguments %s, want %s", settings, got, want)
		}
	}
}

// docs/dra-partitions.md: a second release gives the few nodes that need them cores and groups. The two have no object in common, and
// no node.
func TestPartitionsOfAFewNodes(t *testing.T) {
	many := rendered(t, "mode=dra", "dra.nodeSelector.pool=large")
	few := rendered(t, "mode=dra", "fullnameOverride=parts", "dra.classes=false", "dra.partitions=all", "dra.nodeSelector.pool=small")
	names := map[string]bool{}
	for _, one := range append(many, few...) {
		if names[nameOf(one)] {
			t.Errorf("both releases have %s", nameOf(one))
		}
		names[nameOf(one)] = true
	}
	set := daemonSets(few)["parts-dra"]
	if got := text(at(container(set), "args")); !strings.Contains(got, `"--dra-partitions=all"`) {
		t.Errorf("arguments %s", got)
	}
	if got := text(at(set, "spec", "template", "spec", "nodeSelector")); got != `{"pool":"small"}` {
		t.Errorf("nodes %s", got)
	}
}

// The kubelet finds the driver by the path of its socket, so that is one inside and outside; device-plugins alone does not move.
func TestPathsOfTheDriver(t *testing.T) {
	one := daemonSets(rendered(t, "mode=dra", "kubeletDir=/k", "dra.driverName=n.example.com"))["neuron-agent-dra"]
	hosts := map[string]any{}
	volumes, _ := at(one, "spec", "template", "spec", "volumes").([]any)
	for _, volume := range volumes {
		hosts[at(volume, "name").(string)] = at(volume, "hostPath", "path")
	}
	mounts, _ := at(container(one), "volumeMounts").([]any)
	for _, mount := range mounts {
		name, path := at(mount, "name").(string), at(mount, "mountPath")
		if name == "device-plugins" {
			if path != "/k/device-plugins" || hosts[name] != "/var/lib/kubelet/device-plugins" {
				t.Errorf("device-plugins: %v at %v", hosts[name], path)
			}
		} else if path != hosts[name] {
			t.Errorf("%s: %v at %v", name, hosts[name], path)
		}
	}
	if hosts["plugin"] != "/k/plugins/n.example.com" || len(mounts) != 5 {
		t.Errorf("volumes %v", hosts)
	}
}

// Another name of the driver is in its classes and in the policy, and another name of the objects in the policy's account.
func TestNamesOfTheDriver(t *testing.T) {
	objects := rendered(t, "mode=dra", "dra.driverName=n.example.com", "fullnameOverride=x")
	classes, account := 0, ""
	for _, one := range objects {
		switch one["kind"] {
		case "DeviceClass":
			classes++
			if expression := text(at(one, "spec", "selectors", 0, "cel", "expression")); strings.Contains(expression, "neuron.aws.com") ||
				!strings.Contains(expression, "device.attributes['n.example.com']") {
				t.Errorf("%s: %s", nameOf(one), expression)
			}
		case "ServiceAccount":
			account = at(one, "metadata", "name").(string)
		case "ValidatingAdmissionPolicy":
			if whole := text(one); !strings.Contains(whole, "== 'n.example.com'") || strings.Contains(whole, "neuron.aws.com") {
				t.Errorf("policy %s", whole)
			}
		}
	}
	for _, one := range objects {
		if one["kind"] == "ValidatingAdmissionPolicy" {
			if got := at(one, "spec", "matchConditions", 0, "expression"); !strings.HasSuffix(got.(string), ":"+account+"$')") {
				t.Errorf("the policy is for %v, the account is %s", got, account)
			}
		}
	}
	if classes != 4 || account != "x-dra" {
		t.Errorf("%d classes, account %q", classes, account)
	}
}

// The policy on claims has names of its own, and reads the configuration of the named driver; its parameters are AWS's with any name.
func TestClaimPolicyIsAskedFor(t *testing.T) {
	for _, settings := range [][]string{nil, {"mode=dra"}, {"dra.claimPolicy=true"}} {
		for _, one := range rendered(t, settings...) {
			if strings.Contains(nameOf(one), "dra-claims") {
				t.Errorf("%v: %s", settings, nameOf(one))
			}
		}
	}
	for _, one := range rendered(t, "mode=both", "dra.claimPolicy=true", "dra.driverName=n.example.com", "fullnameOverride=x") {
		if at(one, "metadata", "name") != "x-dra-claims" {
			continue
		}
		if whole := text(one); one["kind"] == "ValidatingAdmissionPolicy" && (!strings.Contains(whole, "orValue('') == 'n.example.com'") ||
			!strings.Contains(whole, "configuration for n.example.com") || !strings.Contains(whole, "'neuron.aws.com/v1'")) {
			t.Errorf("policy %s", whole)
		}
		if one["kind"] == "ValidatingAdmissionPolicyBinding" && at(one, "spec", "policyName") != "x-dra-claims" {
			t.Errorf("binding %s", text(one))
		}
	}
}

func TestExtendedResourcesAndOtherClassesAreAskedFor(t *testing.T) {
	names := func(settings ...string) string {
		var all []string
		for _, one := range rendered(t, append(settings, "mode=dra")...) {
			if one["kind"] == "DeviceClass" {
				all = append(all, at(one, "metadata", "name").(string)+"="+strings.Trim(text(at(one, "spec", "extendedResourceName")), `"`))
			}
		}
		return strings.Join(all, " ")
	}
	for want, settings := range map[string][]string{
		"": {"dra.classes=false"},
		"core.neuron.aws.com=null efa.neuron.aws.com=null group.neuron.aws.com=null neuron.aws.com=null": nil,
		"core.neuron.aws.com=null neuroncore.neuron.aws.com=aws.amazon.com/neuroncore efa.networking.k8s.aws=null efa.neuron.aws.com=vpc.amazonaws.com/efa " +
			"group.neuron.aws.com=null neuron.aws.com=aws.amazon.com/neuron": {"dra.extendedResources=true", "dra.dranetClass=true"},
	} {
		if got := names(settings...); len(got) != len(want) || !sameWords(got, want) {
			t.Errorf("%v: classes %s, want %s", settings, got, want)
		}
	}
}

func sameWords(one, other string) bool {
	words := map[string]int{}
	for _, word := range strings.Fields(one) {
		words[word]++
	}
	for _, word := range strings.Fields(other) {
		words[word]--
	}
	for _, count := range words {
		if count != 0 {
			return false
		}
	}
	return true
}

func TestTestPodClaims(t *testing.T) {
	pod, made := hook(t, "mode=dra"), hookOf(t, "ResourceClaimTemplate", "mode=dra", "dra.driverName=n.example.com")
	if at(pod, "spec", "resourceClaims", 0, "resourceClaimTemplateName") != at(made, "metadata", "name") ||
		text(at(pod, "spec", "containers", 0, "resources", "claims")) != `[{"name":"device"}]` {
		t.Errorf("pod %s", text(pod))
	}
	if got := at(made, "spec", "spec", "devices", "requests", 0, "exactly", "deviceClassName"); got != "n.example.com" {
		t.Errorf("asks for class %v", got)
	}
	for _, settings := range [][]string{{"mode=both"}, {"mode=dra", "dra.extendedResources=true"}} {
		if pod := hook(t, settings...); at(pod, "spec", "resourceClaims") != nil ||
			text(at(pod, "spec", "containers", 0, "resources", "limits")) != `{"aws.amazon.com/neuron":1,"memory":"64Mi"}` {
			t.Errorf("%v: pod %s", settings, text(pod))
		}
	}
}

func TestAllNodes(t *testing.T) {
	terms := func(settings ...string) string {
		one := daemonSets(rendered(t, append(settings, "mode=dra")...))["neuron-agent-dra"]
		return text(at(one, "spec", "template", "spec", "affinity", "nodeAffinity"))
	}
	if got := terms("dra.allNodes=true"); !strings.Contains(got, `{"key":"neuron-agent/mode","operator":"NotIn","values":["device-plugin"]}`) ||
		!strings.Contains(got, "nvidia.com/gpu.present") {
		t.Errorf("nodes %s", got)
	}
	if got := terms(`dra.affinity={"nodeAffinity":null}`); got != "null" {
		t.Errorf("nodes %s", got)
	}
}

// By default every DaemonSet tolerates everything (test/manifests); values may narrow that.
func TestNarrowTolerations(t *testing.T) {
	narrow := daemonSets(rendered(t, "mode=dra", `dra.tolerations=[{"key":"a","operator":"Exists"}]`))["neuron-agent-dra"]
	if got := text(at(narrow, "spec", "template", "spec", "tolerations")); got != `[{"key":"a","operator":"Exists"}]` {
		t.Errorf("it tolerates %s", got)
	}
}
