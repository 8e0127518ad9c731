package helm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestLint(t *testing.T) {
	out, err := helm(t, "lint", chart, "--strict")
	if err != nil || !strings.Contains(out, "1 chart(s) linted, 0 chart(s) failed") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	cases := []struct{ setting, words string }{
		{"image.tag=7", "at '/image/tag': got number, want string"},
		{"imagee.tag=1", "additional properties 'imagee' not allowed"},
		{"image.tags=1", "additional properties 'tags' not allowed"},
		{"image.pullPolicy=Sometimes", "value must be one of 'Always', 'IfNotPresent', 'Never'"},
		{"image.repository=registry/x:1.0", "at '/image/repository'"},
		{"privileged=maybe", "at '/privileged': got string, want boolean"},
		{"resourceNames=[\"gpu\"]", "value must be one of 'neuron', 'neuroncore', 'neurondevice', 'efa'"},
		{"resourceNames=neuron", "at '/resourceNames': got string, want array"},
		{"coreDevices=first", "at '/coreDevices'"},
		{`coreDevices=0-1\,3-0`, "coreDevices: the range 3-0 runs backwards: write 0-3"},
		{"coreDevices=0-64", "coreDevices: 0-64 is no device: their numbers go from 0 to 63"},
		{"coreDevices=64", "64 is no device"},
		{"nodeGroups=[{\"name\":\"a\",\"coreDevices\":\"12-8\"}]", "coreDevices of \"a\": the range 12-8 runs backwards: write 8-12"},
		{"nodeGroups=[{\"name\":\"a\",\"nodeNames\":[\"b\"]},{\"name\":\"a\"}]", "two groups are named \"a\""},
		{"nodeGroups=[{\"instanceTypes\":[\"trn*\"]}]", "missing property 'name'"},
		{"nodeGroups=[{\"name\":\"a\",\"types\":[\"trn*\"]}]", "additional properties 'types' not allowed"},
		{"logLevel=loud", "at '/logLevel'"},
		{"metrics.port=0", "at '/metrics/port'"},
		{"readinessProbe.periodSeconds=soon", "at '/readinessProbe/periodSeconds'"},
		{"nameOverride=" + strings.Repeat("n", 59), "at '/nameOverride'"},
		{"updateStrategy.rollingUpdate.maxSurge=true", "at '/updateStrategy/rollingUpdate/maxSurge'"},
		{"updateStrategy.rollingUpdate.maxUnavailable=20%", "one of maxSurge and maxUnavailable is 0"},
		{"kubeletDir=kubelet", "at '/kubeletDir'"},
		{"daemonSetName=Neuron_Plugin", "at '/daemonSetName'"},
		{"resources.limits.memory=lots", "at '/resources/limits/memory'"},
		{"tolerations=[{\"key\":\"a\",\"operator\":\"Has\"}]", "at '/tolerations/0/operator'"},
		{"dev.instanceType=trainium", "at '/dev/instanceType'"},
		{"updateStrategy.type=Recreate", "at '/updateStrategy/type'"},
		{"neuron.enabled=false", "nothing would run"},
		{"mode=claims", "at '/mode'"},
		{"dra.driverName=Neuron", "at '/dra/driverName'"},
		{"dra.partitions=halves", "at '/dra/partitions'"},
		{"dra.taintEffect=Never", "at '/dra/taintEffect'"},
	}
	for _, c := range cases {
		t.Run(c.setting, func(t *testing.T) {
			out, err := template(t, c.setting)
			if err == nil {
				t.Fatalf("was taken:\n%s", out)
			}
			if !strings.Contains(err.Error(), c.words) {
				t.Errorf("says %q, not %q", err, c.words)
			}
		})
	}
}

func TestConflictingValuesAreRefused(t *testing.T) {
	for _, other := range []string{"efaOnly.enabled=true", "privileged=true", "lncFile=true"} {
		if _, err := template(t, "dev.enabled=true", other); err == nil || !strings.Contains(err.Error(), "dev.enabled") {
			t.Errorf("%s: %v", other, err)
		}
	}
	for _, settings := range [][]string{
		{`resourceNames=["neuroncore"]`, "coreDevices=none"}, {`resourceNames=["neuron","neurondevice"]`, "coreDevices=all"},
	} {
		if _, err := template(t, settings...); err == nil || !strings.Contains(err.Error(), "offers nothing on any node") {
			t.Errorf("%v: %v", settings, err)
		}
	}
	for _, devices := range []string{"none", "all", "0", `8-10\,3-3\,63`} {
		if _, err := template(t, `resourceNames=["neuron","neuroncore"]`, "coreDevices="+devices); err != nil {
			t.Errorf("%s: %v", devices, err)
		}
	}
	if _, err := template(t, groups, `env=[{"name":"NODE_NAME","value":"a"}]`); err == nil || !strings.Contains(err.Error(), "NODE_NAME") {
		t.Errorf("NODE_NAME twice: %v", err)
	}
	if _, err := template(t, "efaOnly.enabled=true", "daemonSetName=neuron-agent-efa"); err == nil {
		t.Error("two DaemonSets of one name were taken")
	}
}

func TestConflictingValuesOfClaimsAreRefused(t *testing.T) {
	for words, settings := range map[string][]string{
		"goes with neuron.enabled":       {"mode=dra", "neuron.enabled=false", "efaOnly.enabled=true"},
		"dra.allNodes goes with mode":    {"mode=both", "dra.allNodes=true"},
		"which mode dra does not run":    {"mode=dra", "coreDevices=0-3"},
		"sets POD_UID itself":            {"mode=both", `env=[{"name":"POD_UID","value":"a"}]`},
		"name of the driver's DaemonSet": {"mode=both", "daemonSetName=neuron-agent-dra"},
	} {
		if out, err := template(t, settings...); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v: %v, want %q\n%s", settings, err, words, out)
		}
	}
	for version, settings := range map[string][]string{"1.33.4": {"mode=dra"}, "1.35.2": {"mode=dra", "dra.extendedResources=true"},
		"1.35.3": {"mode=dra", "dra.claimStatus=true"}} {
		args := []string{"template", release, chart, "--kube-version", version}
		for _, setting := range settings {
			args = append(args, "--set", setting)
		}
		if _, err := helm(t, args...); err == nil || !strings.Contains(err.Error(), version) {
			t.Errorf("%v on %s: %v", settings, version, err)
		}
	}
}

func TestOldClustersAreRefused(t *testing.T) {
	out, err := helm(t, "template", release, chart, "--kube-version", "1.20.0")
	if err == nil || !strings.Contains(err.Error(), "kubeVersion") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Helm hands `global` to the charts of a chart.
func TestAsPartOfAnotherChart(t *testing.T) {
	parent := t.TempDir()
	if err := os.WriteFile(parent+"/Chart.yaml", []byte("apiVersion: v2\nname: parent\nversion: 1.0.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	values := "global: {imageRegistry: none}\nneuron-agent: {namespaceOverride: kube-system}\n"
	if err := os.WriteFile(parent+"/values.yaml", []byte(values), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(parent+"/charts/neuron-agent", os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	if out, err := helm(t, "template", "big", parent); err != nil || !strings.Contains(out, "name: \"big-neuron-agent\"\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// leaves lists the values below one object of the schema: "image.tag". What has no fixed keys is one value.
func leaves(schema, definitions object, prefix string) map[string]object {
	found := map[string]object{}
	for key, value := range schema["properties"].(map[string]any) {
		property := value.(object)
		if reference, is := property["$ref"].(string); is {
			property = definitions[filepath.Base(reference)].(object)
		}
		_, hasKeys := property["properties"]
		if hasKeys && !slices.Contains([]string{"affinity", "resources", "updateStrategy"}, key) {
			for path, leaf := range leaves(property, definitions, prefix+key+".") {
				found[path] = leaf
			}
		} else if prefix+key != "global" {
			found[prefix+key] = property
		}
	}
	return found
}

func schema(t *testing.T) (object, object) {
	t.Helper()
	whole := object{}
	if err := json.Unmarshal(read(t, chart, "values.schema.json"), &whole); err != nil {
		t.Fatal(err)
	}
	return whole, whole["definitions"].(object)
}

func chartValues(t *testing.T) object {
	t.Helper()
	values := object{}
	if err := yaml.UnmarshalStrict(read(t, chart, "values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func valueAt(values object, path string) (any, bool) {
	var value any = values
	for _, key := range strings.Split(path, ".") {
		fields, is := value.(map[string]any)
		if !is {
			return nil, false
		}
		if value, is = fields[key]; !is {
			return nil, false
		}
	}
	return value, true
}

func TestEveryValueHasADefault(t *testing.T) {
	values := chartValues(t)
	whole, definitions := schema(t)
	for path := range leaves(whole, definitions, "") {
		if _, is := valueAt(values, path); !is {
			t.Errorf("values.yaml lacks %s", path)
		}
	}
}

// docs/helm.md names each value once, with its default where that is short.
func TestDocumentNamesEveryValue(t *testing.T) {
	rows := map[string]string{}
	named := regexp.MustCompile("`([a-zA-Z.]+)`\\s\\((`[^`]*`|see\\svalues.yaml)\\)")
	_, table, found := strings.Cut(string(read(t, "../../docs/helm.md")), "## Values")
	if !found {
		t.Fatal("docs/helm.md has no section Values")
	}
	for _, match := range named.FindAllStringSubmatch(table, -1) {
		if _, twice := rows[match[1]]; twice {
			t.Errorf("docs/helm.md explains %s twice", match[1])
		}
		rows[match[1]] = match[2]
	}
	values := chartValues(t)
	whole, definitions := schema(t)
	known := leaves(whole, definitions, "")
	for path := range known {
		documented, is := rows[path]
		if !is {
			t.Errorf("docs/helm.md does not explain %s", path)
			continue
		}
		value, _ := valueAt(values, path)
		if want := "`" + text(value) + "`"; len(want) < 50 && documented != want {
			t.Errorf("docs/helm.md: the default of %s is %s, not %s", path, want, documented)
		}
	}
	for path := range rows {
		if _, is := known[path]; !is {
			t.Errorf("docs/helm.md explains %s, which is no value", path)
		}
	}
}

// The names in the tables that map the values of other charts to ours exist.
func TestMappedValuesExist(t *testing.T) {
	document, _, _ := strings.Cut(string(read(t, "../../docs/helm.md")), "## Values")
	_, tables, _ := strings.Cut(document, "## From other charts")
	ours := regexp.MustCompile("(?m)^[^|\\n]+ \\| (.*)$")
	values := chartValues(t)
	count := 0
	for _, match := range ours.FindAllStringSubmatch(tables, -1) {
		for _, name := range regexp.MustCompile("`([a-zA-Z.]+)`").FindAllStringSubmatch(match[1], -1) {
			count++
			if _, is := valueAt(values, name[1]); !is {
				t.Errorf("docs/helm.md maps to %s, which is no value", name[1])
			}
		}
	}
	if count < 20 {
		t.Errorf("only %d mapped values found: this test checks nothing", count)
	}
}

func TestVersions(t *testing.T) {
	about := object{}
	if err := yaml.Unmarshal(read(t, chart, "Chart.yaml"), &about); err != nil {
		t.Fatal(err)
	}
	cmake := string(read(t, "../../CMakeLists.txt"))
	for _, key := range []string{"version", "appVersion"} {
		if !strings.Contains(cmake, "VERSION "+about[key].(string)+" ") {
			t.Errorf("Chart.yaml: %s is %s, not that of project(VERSION)", key, about[key])
		}
	}
}
