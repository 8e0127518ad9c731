package helm

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomized returns what kustomize makes of a folder of manifests/, alone or with a component.
func kustomized(t *testing.T, folder, component string) []object {
	t.Helper()
	source := filepath.Join(manifests, folder)
	if component != "" {
		directory, err := os.MkdirTemp(".", "kustomize-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(directory)
		text := "resources: [../" + source + "]\ncomponents: [../" + manifests + "/components/" + component + "]\n"
		if err := os.WriteFile(directory+"/kustomization.yaml", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		source = directory
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), source)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

func TestKustomizeMakesTheStaticFiles(t *testing.T) {
	for name, one := range variants {
		t.Run(name, func(t *testing.T) {
			expectSame(t, kustomized(t, one.folder, ""), parse(t, string(read(t, manifests, "static", name))))
		})
	}
}

// Components are patches, written by hand: each makes of a folder what a value makes of the chart.
func TestComponentsAreValuesOfTheChart(t *testing.T) {
	for component, one := range map[string]variant{
		"honor-placement":        {"base", []string{"honorPlacement=true"}},
		"kubectl-neuron-role":    {"base", []string{"kubectlNeuron.roles=true"}},
		"lnc-file":               {"base", []string{"lncFile=true"}},
		"monitoring":             {"base", []string{"metrics.podMonitor.enabled=true", "metrics.prometheusRule.enabled=true", "metrics.dashboard.enabled=true"}},
		"network-policy":         {"base", []string{"metrics.networkPolicy.enabled=true"}},
		"neuron-monitor-service": {"base", []string{"metrics.neuronMonitorService.enabled=true", "metrics.tls.secretName=neuron-agent-tls"}},
		"dra-claim-policy":       {"overlays/dra", []string{"mode=dra", "dra.claimPolicy=true"}},
		"dra-claim-status":       {"overlays/dra", []string{"mode=dra", "dra.claimStatus=true"}},
		"dra-dranet-class":       {"overlays/dra", []string{"mode=dra", "dra.dranetClass=true"}},
		"dra-extended-resources": {"overlays/dra", []string{"mode=dra", "dra.extendedResources=true"}},
		"dra-partitions":         {"overlays/dra", []string{"mode=dra", "dra.partitions=all"}},
		"dra-shares":             {"overlays/dra", []string{"mode=dra", "dra.shares=on"}},
	} {
		t.Run(component, func(t *testing.T) { expectSame(t, rendered(t, one.settings...), kustomized(t, one.folder, component)) })
	}
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

// expectSame compares objects field by field, but for the labels of Helm.
func expectSame(t *testing.T, objects, others []object) {
	t.Helper()
	got := map[string]object{}
	for _, one := range objects {
		got[nameOf(one)] = withoutHelmLabels(one)
	}
	if len(got) != len(others) {
		t.Errorf("%d objects, want %d", len(got), len(others))
	}
	for _, want := range others {
		one, is := got[nameOf(want)]
		if !is {
			t.Errorf("no %s", nameOf(want))
			continue
		}
		for _, difference := range differences(nameOf(want), one, want) {
			t.Error(difference)
		}
	}
}

// The comparison bites: a difference in one field of one container is seen.
func TestADifferenceIsSeen(t *testing.T) {
	one, other := rendered(t)[0], rendered(t, "image.pullPolicy=Always")[0]
	if found := differences("", other, one); len(found) != 1 || !strings.Contains(found[0], "spec.template.spec.containers") {
		t.Errorf("found %v", found)
	}
}
