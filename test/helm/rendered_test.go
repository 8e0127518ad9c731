package helm

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// variant is one file of manifests/static: the chart with some values. Kustomize makes the same objects from the folder.
type variant struct {
	folder   string
	settings []string
}

var variants = map[string]variant{
	"neuron-agent.yaml":             {"base", nil},
	"neuron-agent-efa-only.yaml":    {"overlays/efa-only", []string{"neuron.enabled=false", "efaOnly.enabled=true"}},
	"neuron-agent-privileged.yaml":  {"overlays/privileged", []string{"privileged=true"}},
	"neuron-agent-kernel-log.yaml":  {"overlays/kernel-log", []string{"kernelLog=true"}},
	"neuron-agent-aws-names.yaml":   {"overlays/aws-names", []string{"daemonSetName=neuron-device-plugin-daemonset"}},
	"neuron-agent-dev.yaml":         {"overlays/dev", []string{"dev.enabled=true"}},
	"neuron-agent-dra.yaml":         {"overlays/dra", []string{"mode=dra"}},
	"neuron-agent-dra-dev.yaml":     {"overlays/dra-dev", []string{"mode=dra", "dev.enabled=true"}},
	"neuron-agent-node-status.yaml": {"overlays/node-status", []string{"nodeStatus.enabled=true"}},
}

// Overlays without a rendered file: the base with a component, and the base under another name.
var patchedBases = []string{"overlays/kernel-log", "overlays/aws-names"}

// rendering is a file that the chart makes of these settings, all of it or one template.
type rendering struct {
	settings []string
	template string
}

// renderings are all files that the chart makes, by path below manifests/. A folder of kustomize has a copy of its static file, because
// kustomize reads no file outside of the folder.
func renderings() map[string]rendering {
	all := map[string]rendering{
		"components/dra-extended-resources/class.yaml":  {[]string{"mode=dra", "dra.extendedResources=true"}, "dra-neuroncore-class.yaml"},
		"components/dra-dranet-class/class.yaml":        {[]string{"mode=dra", "dra.dranetClass=true"}, "dra-dranet-class.yaml"},
		"components/network-policy/network-policy.yaml": {[]string{"metrics.networkPolicy.enabled=true"}, "monitoring.yaml"},
		"components/kubectl-neuron-role/roles.yaml":     {[]string{"kubectlNeuron.roles=true"}, "kubectl-neuron.yaml"},
		"components/dra-claim-policy/policy.yaml":       {[]string{"mode=dra", "dra.claimPolicy=true"}, "dra-claim-policy.yaml"},
		"components/neuron-monitor-service/services.yaml": {
			[]string{"metrics.neuronMonitorService.enabled=true", "metrics.tls.secretName=neuron-agent-tls"}, "monitoring.yaml"},
		"monitoring/pod-monitor.yaml":     {[]string{"metrics.podMonitor.enabled=true"}, "monitoring.yaml"},
		"monitoring/prometheus-rule.yaml": {[]string{"metrics.prometheusRule.enabled=true"}, "monitoring.yaml"},
	}
	for name, one := range variants {
		all["static/"+name] = rendering{one.settings, ""}
		if !slices.Contains(patchedBases, one.folder) {
			all[one.folder+"/"+name] = rendering{one.settings, ""}
		}
	}
	return all
}

// Labels that Helm and its users expect. The rendered files do without, and nothing else may differ.
var helmLabels = []string{"helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/instance"}

var (
	linesOfHelm = regexp.MustCompile(`(?m)^( +(` + strings.Join(helmLabels, "|") + `): |# Source: ).*\n`)
	quotedPlain = regexp.MustCompile(`(?m): "([a-z/][\w./-]*(:[\d.]+)?)"$`) // would need no quotes, unless it is true or false
)

// plain makes of Helm's text that of a file. DaemonSets come last: their accounts and policies are there before their pods.
func plain(text string) string {
	text = quotedPlain.ReplaceAllStringFunc(linesOfHelm.ReplaceAllString(text, ""), func(value string) string {
		if unquoted := strings.ReplaceAll(value, `"`, ""); unquoted != ": true" && unquoted != ": false" {
			return unquoted
		}
		return value
	})
	var documents, daemonSets []string
	for _, document := range strings.Split("\n"+text, "\n---\n") {
		if document = strings.TrimSpace(document); strings.Contains(document, "kind: DaemonSet\n") {
			daemonSets = append(daemonSets, document)
		} else if document != "" {
			documents = append(documents, document)
		}
	}
	return strings.Join(append(documents, daemonSets...), "\n---\n") + "\n"
}

func headerOf(settings []string) string {
	values := strings.Join(settings, ", ")
	if values == "" {
		values = "default values"
	}
	return "# Rendered from manifests/helm/neuron-agent (" + values + "); do not edit, run manifests/render.sh.\n"
}

// expectFile compares a file of manifests/, and writes it with UPDATE_GOLDEN=1.
func expectFile(t *testing.T, path string, want []byte) {
	t.Helper()
	path = filepath.Join(manifests, path)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := os.ReadFile(path); !bytes.Equal(got, want) {
		t.Errorf("%s is not what the chart makes: run manifests/render.sh and read the diff", path)
	}
}

func TestRenderedFiles(t *testing.T) {
	for path, one := range renderings() {
		t.Run(path, func(t *testing.T) {
			settings := append([]string{"--no-hooks"}, one.settings...)
			if one.template != "" {
				settings = append(settings, "--show-only=templates/"+one.template)
			}
			text, err := template(t, settings...)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			want := plain(text)
			expectSame(t, parse(t, text), parse(t, want)) // nothing but labels was left out
			expectFile(t, path, []byte(headerOf(one.settings)+want))
		})
	}
	// Helm reads no file outside of the chart.
	expectFile(t, "monitoring/neuron-agent-dashboard.json", read(t, chart, "files/neuron-agent-dashboard.json"))
	header := "# Copied from manifests/helm/neuron-agent/files; do not edit, run manifests/render.sh.\n"
	expectFile(t, "monitoring/neuron-agent.rules.yaml", append([]byte(header), read(t, chart, "files/neuron-agent.rules.yaml")...))
}

func TestEveryStaticFileAndOverlayIsAVariant(t *testing.T) {
	known := map[string]bool{}
	for name, one := range variants {
		known["static/"+name], known[one.folder] = true, true
	}
	for _, folder := range []string{"static", "overlays"} {
		entries, err := os.ReadDir(filepath.Join(manifests, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if path := folder + "/" + entry.Name(); !known[path] {
				t.Errorf("no values of the chart make %s", path)
			}
		}
	}
}
