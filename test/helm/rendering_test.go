package helm

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	strict "sigs.k8s.io/json"
)

const groups = `nodeGroups=[{"name":"inference","instanceTypes":["inf*"],"resourceNames":["neuroncore"]},` +
	`{"name":"mixed","nodeNames":["ip-10-0-*"],"coreDevices":"0-3"}]`

func container(one object) any { return at(one, "spec", "template", "spec", "containers", 0) }

// Every value that adds something, at once: each field is one of the API.
func TestFieldsAreThoseOfTheApi(t *testing.T) {
	objects := rendered(t, "efaOnly.enabled=true", "privileged=true", groups, "coreDevices=0-3", `resourceNames=["neuron","efa"]`,
		`env=[{"name":"A","value":"b"}]`, `extraArgs=["--cdi"]`, `imagePullSecrets=[{"name":"key"}]`, "podLabels.team=ml",
		"podAnnotations.note=text", "nodeSelector.pool=trn", "logLevel=debug", "efaOnly.nodeSelector.pool=p5")
	objects = append(objects, rendered(t, "dev.enabled=true", "dev.besideHardware=true")...)
	objects = append(objects, rendered(t, "mode=dra", "dra.partitions=cores", "dra.extendedResources=true", "dra.dranetClass=true",
		"dra.claimPolicy=true", "dra.claimStatus=true", "dev.enabled=true", "dra.taintEffect=NoExecute")...)
	objects = append(objects, hook(t), hook(t, "mode=dra"), hookOf(t, "ResourceClaimTemplate", "mode=dra"))
	kinds := map[string]func() runtime.Object{
		"DaemonSet":          func() runtime.Object { return &appsv1.DaemonSet{} },
		"ConfigMap":          func() runtime.Object { return &corev1.ConfigMap{} },
		"Pod":                func() runtime.Object { return &corev1.Pod{} },
		"ServiceAccount":     func() runtime.Object { return &corev1.ServiceAccount{} },
		"ClusterRole":        func() runtime.Object { return &rbacv1.ClusterRole{} },
		"ClusterRoleBinding": func() runtime.Object { return &rbacv1.ClusterRoleBinding{} },

		"DeviceClass":                      func() runtime.Object { return &resourcev1.DeviceClass{} },
		"ResourceClaimTemplate":            func() runtime.Object { return &resourcev1.ResourceClaimTemplate{} },
		"ValidatingAdmissionPolicy":        func() runtime.Object { return &admissionv1.ValidatingAdmissionPolicy{} },
		"ValidatingAdmissionPolicyBinding": func() runtime.Object { return &admissionv1.ValidatingAdmissionPolicyBinding{} },
	}
	seen := map[string]bool{}
	for _, one := range objects {
		kind := one["kind"].(string)
		seen[kind] = true
		unknown, err := strict.UnmarshalStrict([]byte(text(one)), kinds[kind]())
		if err != nil || len(unknown) > 0 {
			t.Errorf("%s: %v %v", nameOf(one), err, unknown)
		}
	}
	if len(seen) != len(kinds) {
		t.Errorf("only %v were rendered", seen)
	}
}

func TestThePortAndTheProbeGoTogether(t *testing.T) {
	set := func(settings ...string) object {
		one, is := container(daemonSets(rendered(t, settings...))["neuron-agent"]).(object)
		if !is {
			t.Fatal("no container")
		}
		return one
	}
	off := set("metrics.enabled=false")
	if text(off["args"]) != `["run","--take-over"]` || off["ports"] != nil || off["readinessProbe"] != nil {
		t.Errorf("metrics.enabled=false: %s, ports %s, probe %s", text(off["args"]), text(off["ports"]), text(off["readinessProbe"]))
	}
	other := set("metrics.port=9100", "readinessProbe.periodSeconds=7")
	if text(other["args"]) != `["run","--take-over","--metrics-address=:9100"]` || text(at(other, "ports")) != `[{"containerPort":9100,"name":"metrics"}]` {
		t.Errorf("metrics.port=9100: %s, ports %s", text(other["args"]), text(other["ports"]))
	}
	if text(at(other, "readinessProbe", "periodSeconds")) != "7" || text(at(other, "readinessProbe", "httpGet")) != `{"path":"/readyz","port":"metrics"}` {
		t.Errorf("probe %s", text(other["readinessProbe"]))
	}
	none := set("readinessProbe=null")
	if none["readinessProbe"] != nil || none["ports"] == nil {
		t.Errorf("without a probe: %s, ports %s", text(none["readinessProbe"]), text(none["ports"]))
	}
}

func TestMetricsOverTLSAreAskedForByASecret(t *testing.T) {
	for mode, name := range map[string]string{"device-plugin": "neuron-agent", "dra": "neuron-agent-dra"} {
		daemonSet := daemonSets(rendered(t, "mode="+mode, "metrics.tls.secretName=chips"))[name]
		args := text(at(container(daemonSet), "args"))
		if !strings.Contains(args, `"--metrics-tls-cert=/etc/neuron-agent-tls/tls.crt","--metrics-tls-key=/etc/neuron-agent-tls/tls.key"`) {
			t.Errorf("%s: arguments %s", mode, args)
		}
		if scheme := at(container(daemonSet), "readinessProbe", "httpGet", "scheme"); scheme != "HTTPS" {
			t.Errorf("%s: the probe's scheme is %v", mode, scheme)
		}
		annotations := at(daemonSet, "spec", "template", "metadata", "annotations")
		if at(annotations, "prometheus.io/scheme") != "https" || at(annotations, "prometheus.io/port") != "8000" {
			t.Errorf("%s: annotations %s", mode, text(annotations))
		}
		pod := text(at(daemonSet, "spec", "template", "spec"))
		for _, want := range []string{`{"name":"metrics-tls","secret":{"secretName":"chips"}}`, `{"mountPath":"/etc/neuron-agent-tls","name":"metrics-tls","readOnly":true}`} {
			if !strings.Contains(pod, want) {
				t.Errorf("%s: no %s", mode, want)
			}
		}
	}
	off := daemonSets(rendered(t, "metrics.enabled=false", "metrics.tls.secretName=chips"))["neuron-agent"]
	if pod := text(off); strings.Contains(pod, "tls") || strings.Contains(pod, "prometheus.io") {
		t.Errorf("without metrics: %s", pod)
	}
	none := daemonSets(rendered(t, "metrics.scrapeAnnotations=false"))["neuron-agent"]
	if annotations := at(none, "spec", "template", "metadata", "annotations"); annotations != nil {
		t.Errorf("annotations %s", text(annotations))
	}
}

func TestArgumentsComeOnlyWithTheirValues(t *testing.T) {
	plain := daemonSets(rendered(t))["neuron-agent"]
	if args := at(container(plain), "args"); text(args) != `["run","--take-over","--metrics-address=:8000"]` {
		t.Errorf("arguments %s", text(args))
	}
	if env := at(container(plain), "env"); text(env) != `[{"name":"POD_NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]` {
		t.Errorf("variables %s", text(env))
	}
	full := daemonSets(rendered(t, `resourceNames=["neuron","efa"]`, "coreDevices=0-3\\,8", "logLevel=warn", `extraArgs=["--cdi"]`, groups))["neuron-agent"]
	want := `["run","--take-over","--metrics-address=:8000","--resources=neuron,efa","--core-devices=0-3,8","--node-groups=/etc/neuron-agent/node-groups.json","--log-level=warn","--cdi"]`
	if args := at(container(full), "args"); text(args) != want {
		t.Errorf("arguments %s, want %s", text(args), want)
	}
}

func TestSimulationBesideHardwareIsAskedFor(t *testing.T) {
	variable := func(settings ...string) string {
		dev := daemonSets(rendered(t, append(settings, "dev.enabled=true")...))["neuron-agent"]
		return text(at(dev, "spec", "template", "spec", "initContainers", 0, "env"))
	}
	if env := variable("dev.besideHardware=true"); !strings.Contains(env, `{"name":"NEURON_SIM_BESIDE_HARDWARE","value":"true"}`) {
		t.Errorf("variables %s", env)
	}
	if env := variable(); strings.Contains(env, "BESIDE_HARDWARE") {
		t.Errorf("without it: variables %s", env)
	}
}

// TestOnlyTheFirstDaemonSetSplitsDevices: GPU nodes offer their interfaces, whatever is said of Neuron devices.
func TestOnlyTheFirstDaemonSetSplitsDevices(t *testing.T) {
	both := daemonSets(rendered(t, "efaOnly.enabled=true", `resourceNames=["neuron"]`, "coreDevices=4", groups))
	if args := text(at(container(both["neuron-agent"]), "args")); args != `["run","--take-over","--metrics-address=:8000","--resources=neuron","--core-devices=4","--node-groups=/etc/neuron-agent/node-groups.json"]` {
		t.Errorf("arguments %s", args)
	}
	if args := text(at(container(both["neuron-agent-efa"]), "args")); args != `["run","--take-over","--metrics-address=:8000"]` {
		t.Errorf("arguments on GPU nodes %s", args)
	}
	if zero := text(at(container(daemonSets(rendered(t, "coreDevices=0"))["neuron-agent"]), "args")); zero != `["run","--take-over","--metrics-address=:8000","--core-devices=0"]` {
		t.Errorf("arguments %s for device 0", zero)
	}
}

func TestOnDeleteHasNoRollingUpdate(t *testing.T) {
	strategy := at(daemonSets(rendered(t, "updateStrategy.type=OnDelete"))["neuron-agent"], "spec", "updateStrategy")
	if text(strategy) != `{"type":"OnDelete"}` {
		t.Errorf("strategy %s", text(strategy))
	}
}

func TestNodeGroups(t *testing.T) {
	objects := rendered(t, groups)
	var file string
	for _, one := range objects {
		if one["kind"] == "ConfigMap" {
			file, _ = at(one, "data", "node-groups.json").(string)
		}
	}
	var got, want any
	if err := json.Unmarshal([]byte(file), &got); err != nil {
		t.Fatalf("%v in %q", err, file)
	}
	_ = json.Unmarshal([]byte(`{"groups":[{"name":"inference","instance-types":["inf*"],"resources":"neuroncore"},
		{"name":"mixed","node-names":["ip-10-0-*"],"core-devices":"0-3"}]}`), &want)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the program is given %s", file)
	}
	checksum := func(objects []object) any {
		return at(daemonSets(objects)["neuron-agent"], "spec", "template", "metadata", "annotations", "checksum/node-groups")
	}
	if checksum(objects) == nil || checksum(objects) == checksum(rendered(t, strings.Replace(groups, "0-3", "0-4", 1))) {
		t.Error("pods would not learn of other groups")
	}
}

func TestLabelsOfOthersCannotBreakTheSelector(t *testing.T) {
	one := daemonSets(rendered(t, `podLabels={"app.kubernetes.io/name":"other","team":"ml"}`))["neuron-agent"]
	labels, _ := at(one, "spec", "template", "metadata", "labels").(map[string]any)
	for key, value := range at(one, "spec", "selector", "matchLabels").(map[string]any) {
		if labels[key] != value {
			t.Errorf("the selector wants %s=%v, the pod has %v", key, value, labels[key])
		}
	}
	if labels["team"] != "ml" {
		t.Errorf("labels %v", labels)
	}
}

func TestTwoDaemonSetsDoNotShareASelector(t *testing.T) {
	both := daemonSets(rendered(t, "efaOnly.enabled=true"))
	if len(both) != 2 {
		t.Fatalf("%d DaemonSets", len(both))
	}
	selector := func(name string) any { return at(both[name], "spec", "selector") }
	if reflect.DeepEqual(selector("neuron-agent"), selector("neuron-agent-efa")) {
		t.Error("two DaemonSets with one selector")
	}
}

func TestNamesAndNamespace(t *testing.T) {
	out, err := helm(t, "template", "prod", chart, "--namespace", "neuron", "--set", "dev.enabled=true")
	if err != nil || !strings.Contains(out, "name: \"prod-neuron-agent\"\n") || strings.Contains(out, "namespace: kube-system") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, one := range rendered(t, "namespaceOverride=other", "dev.enabled=true", groups) {
		clusterWide := strings.HasPrefix(one["kind"].(string), "Cluster")
		if namespace := at(one, "metadata", "namespace"); !clusterWide && namespace != "other" {
			t.Errorf("%s is in %v", nameOf(one), namespace)
		}
		for _, subject := range []any{at(one, "subjects", 0, "namespace")} {
			if subject != nil && subject != "other" {
				t.Errorf("bound to a service account of %v", subject)
			}
		}
	}
	renamed := daemonSets(rendered(t, "fullnameOverride=x", "nameOverride=y"))["x"]
	if at(renamed, "metadata", "labels", "app.kubernetes.io/name") != "y" {
		t.Errorf("labels %s", text(at(renamed, "metadata", "labels")))
	}
}

func TestImage(t *testing.T) {
	for want, settings := range map[string][]string{
		"localhost/neuron-agent:0.1.0":     nil,
		"reg:5000/team/agent:v7":           {"image.repository=reg:5000/team/agent", "image.tag=v7"},
		"localhost/neuron-agent-sim:0.1.0": {"dev.enabled=true", "image.repository=reg/agent"},
		"reg/sim:v9":                       {"dev.enabled=true", "dev.image.repository=reg/sim", "dev.image.tag=v9"},
	} {
		one := daemonSets(rendered(t, settings...))["neuron-agent"]
		if got := at(container(one), "image"); got != want {
			t.Errorf("image %v, want %s", got, want)
		}
		if got := at(hook(t, settings...), "spec", "containers", 0, "image"); got != want {
			t.Errorf("the test's image is %v, want %s", got, want)
		}
	}
}

func TestOwnSecurityContextTakesTheWholePlace(t *testing.T) {
	one := daemonSets(rendered(t, `securityContext={"privileged":true}`, `podSecurityContext={"seLinuxOptions":{"type":"container_device_plugin_t"}}`))["neuron-agent"]
	if got := text(at(container(one), "securityContext")); got != `{"privileged":true}` {
		t.Errorf("container %s", got)
	}
	if got := text(at(one, "spec", "template", "spec", "securityContext")); got != `{"seLinuxOptions":{"type":"container_device_plugin_t"}}` {
		t.Errorf("pod %s", got)
	}
}

// The kubelet's --root-dir moves pod-resources alone.
func TestAnotherKubeletDirectory(t *testing.T) {
	one := daemonSets(rendered(t, "kubeletDir=/var/lib/k0s/kubelet"))["neuron-agent"]
	if got := at(one, "spec", "template", "spec", "volumes", 0, "hostPath", "path"); got != "/var/lib/kubelet/device-plugins" {
		t.Errorf("device-plugins on the node %v", got)
	}
	if got := at(one, "spec", "template", "spec", "volumes", 1, "hostPath", "path"); got != "/var/lib/k0s/kubelet/pod-resources" {
		t.Errorf("pod-resources on the node %v", got)
	}
	if got := at(container(one), "volumeMounts", 0, "mountPath"); got != "/var/lib/kubelet/device-plugins" {
		t.Errorf("in the container %v", got)
	}
}

func TestTestPodAsksForWhatIsRegistered(t *testing.T) {
	for want, settings := range map[string][]string{
		`{"aws.amazon.com/neuron":1,"memory":"64Mi"}`:     nil,
		`{"aws.amazon.com/neuroncore":1,"memory":"64Mi"}`: {`resourceNames=["neuroncore","efa"]`},
		`{"memory":"64Mi","vpc.amazonaws.com/efa":1}`:     {"neuron.enabled=false", "efaOnly.enabled=true", `resourceNames=["neuron","efa"]`},
		`{"memory":"64Mi","vpc.amazonaws.com/efa":2}`:     {`test.resources={"vpc.amazonaws.com/efa":2}`},
	} {
		if got := text(at(hook(t, settings...), "spec", "containers", 0, "resources", "limits")); got != want {
			t.Errorf("%v: asks for %s, want %s", settings, got, want)
		}
	}
	if got := text(at(hook(t, "dev.enabled=true"), "spec", "containers", 0, "command")); got != `["neuron-sim","show"]` {
		t.Errorf("runs %s", got)
	}
}

func TestNotes(t *testing.T) {
	notes := func(settings ...string) string {
		args := []string{"install", release, chart, "--namespace", "kube-system", "--dry-run=client"}
		for _, setting := range settings {
			args = append(args, "--set", setting)
		}
		out, err := helm(t, args...)
		if err != nil {
			t.Fatal(err, out)
		}
		_, after, _ := strings.Cut(out, "NOTES:")
		return after
	}
	if got := notes(); !strings.Contains(got, "DaemonSet neuron-agent\n") || !strings.Contains(got, "which no registry serves") ||
		!strings.Contains(got, "helm test neuron-agent -n kube-system") {
		t.Error(got)
	}
	if got := notes("dev.enabled=true"); !strings.Contains(got, "SIMULATED") {
		t.Error(got)
	}
	for partitions, served := range map[string]bool{"": false, "groups": false, "cores": true, "all": true} {
		got := notes("mode=dra", "dra.extendedResources=true", "dra.partitions="+partitions)
		if strings.Contains(got, "serve no aws.amazon.com/neuroncore") == served {
			t.Errorf("partitions %q: %s", partitions, got)
		}
	}
}
