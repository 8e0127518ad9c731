package helm

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Labels that Helm's users and Helm itself expect and that the static files do without. Nothing else may differ.
var helmLabels = []string{"helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/instance"}

// The values that make the chart say what each static file says.
var variants = map[string][]string{
	"neuron-agent.yaml":             nil,
	"neuron-agent-efa-only.yaml":    {"neuron.enabled=false", "efaOnly.enabled=true"},
	"neuron-agent-privileged.yaml":  {"privileged=true"},
	"neuron-agent-kernel-log.yaml":  {"kernelLog=true"},
	"neuron-agent-aws-names.yaml":   {"daemonSetName=neuron-device-plugin-daemonset"},
	"neuron-agent-dev.yaml":         {"dev.enabled=true"},
	"neuron-agent-dra.yaml":         {"mode=dra"},
	"neuron-agent-dra-dev.yaml":     {"mode=dra", "dev.enabled=true"},
	"neuron-agent-node-status.yaml": {"nodeStatus.enabled=true"},
}

func withoutHelmLabels(one object) object {
	for _, path := range [][]any{{"metadata", "labels"}, {"spec", "selector"}, {"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"}} {
		if labels, ok := at(one, path...).(map[string]any); ok {
			for _, label := range helmLabels {
				delete(labels, label)
			}
		}
	}
	return one
}

func nameOf(one object) string {
	return strings.Join([]string{text(one["kind"]), text(at(one, "metadata", "namespace")), text(at(one, "metadata", "name"))}, " ")
}

// isNothing: no fields, or the field is not there; a patch of kustomize that takes the last field away leaves {}.
func isNothing(value any) bool {
	fields, is := value.(map[string]any)
	return value == nil || is && len(fields) == 0
}

// differences lists what is not the same, with the path.
func differences(path string, got, want any) []string {
	if reflect.DeepEqual(got, want) || (isNothing(got) && isNothing(want)) {
		return nil
	}
	gotFields, ok := got.(map[string]any)
	wantFields, also := want.(map[string]any)
	if ok && also {
		var found []string
		for key := range wantFields {
			found = append(found, differences(path+"."+key, gotFields[key], wantFields[key])...)
		}
		for key := range gotFields {
			if _, is := wantFields[key]; !is {
				found = append(found, path+"."+key+" is "+text(gotFields[key])+", and is not in the other")
			}
		}
		return found
	}
	return []string{path + " is " + text(got) + ", want " + text(want)}
}

func expectSame(t *testing.T, chartObjects, others []object) {
	t.Helper()
	got := map[string]object{}
	for _, one := range chartObjects {
		got[nameOf(one)] = withoutHelmLabels(one)
	}
	if len(got) != len(others) {
		t.Errorf("the chart makes %d objects, want %d", len(got), len(others))
	}
	for _, want := range others {
		one, is := got[nameOf(want)]
		if !is {
			t.Errorf("the chart makes no %s", nameOf(want))
			continue
		}
		for _, difference := range differences(nameOf(want), one, want) {
			t.Error(difference)
		}
	}
}

func TestChartSaysTheSameAsTheStaticFiles(t *testing.T) {
	files, err := filepath.Glob(manifests + "/static/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no static files", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			settings, is := variants[name]
			if !is {
				t.Fatalf("no values of the chart stand for %s", name)
			}
			expectSame(t, rendered(t, settings...), parse(t, string(read(t, file))))
		})
	}
}

func TestChartSaysTheSameAsTheLncComponent(t *testing.T) {
	directory, err := os.MkdirTemp(".", "lnc-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(directory)
	kustomization := "resources: [../" + manifests + "/base]\ncomponents: [../" + manifests + "/components/lnc-file]\n"
	if err := os.WriteFile(directory+"/kustomization.yaml", []byte(kustomization), 0o644); err != nil {
		t.Fatal(err)
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), directory)
	if err != nil {
		t.Fatal(err)
	}
	rendering, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	expectSame(t, rendered(t, "lncFile=true"), parse(t, string(rendering)))
}

// The comparison bites: a difference in one field of one container is seen.
func TestADifferenceIsSeen(t *testing.T) {
	one, other := rendered(t)[0], rendered(t, "image.pullPolicy=Always")[0]
	if found := differences("", other, one); len(found) != 1 || !strings.Contains(found[0], "spec.template.spec.containers") {
		t.Errorf("found %v", found)
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
