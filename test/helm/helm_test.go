// Package helm checks the chart manifests/helm/neuron-agent with Helm itself: lint, rendering, schema, and the files of manifests/
// that are rendered from it.
package helm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	helmcmd "helm.sh/helm/v4/pkg/cmd"
	"sigs.k8s.io/yaml"
)

const (
	manifests = "../../manifests"
	chart     = manifests + "/helm/neuron-agent"
	release   = "neuron-agent" // under this name the chart's objects are called as those of manifests/static
)

type object = map[string]any

// Helm takes the version of Kubernetes from what it was built with, which a test program does not know.
func TestMain(m *testing.M) {
	version, err := common.ParseKubeVersion("v1.36.3")
	if err != nil {
		panic(err)
	}
	common.DefaultCapabilities.KubeVersion = *version
	os.Exit(m.Run())
}

// helm runs the helm command line within this process and returns what it prints.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	for _, variable := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
		t.Setenv(variable, t.TempDir())
	}
	var out bytes.Buffer
	command, err := helmcmd.NewRootCmd(&out, args, func(bool) {})
	if err != nil {
		t.Fatal(err)
	}
	command.SetArgs(args)
	command.SetOut(&out)
	command.SetErr(&out)
	err = command.Execute()
	return out.String(), err
}

// template renders with `--set` of each setting; a setting with "=" followed by JSON is given as `--set-json`, a flag as it is.
func template(t *testing.T, settings ...string) (string, error) {
	t.Helper()
	args := []string{"template", release, chart, "--namespace", "kube-system"}
	for _, setting := range settings {
		if strings.HasPrefix(setting, "--") {
			args = append(args, setting)
		} else if _, value, _ := strings.Cut(setting, "="); strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[") {
			args = append(args, "--set-json", setting)
		} else {
			args = append(args, "--set", setting)
		}
	}
	return helm(t, args...)
}

func parse(t *testing.T, text string) []object {
	t.Helper()
	var found []object
	for _, document := range strings.Split("\n"+text, "\n---\n") {
		value := object{}
		if err := yaml.UnmarshalStrict([]byte(document), &value); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if len(value) > 0 {
			found = append(found, value)
		}
	}
	return found
}

// rendered returns the objects of the chart, without the hooks.
func rendered(t *testing.T, settings ...string) []object {
	t.Helper()
	text, err := template(t, settings...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", settings, err, text)
	}
	var found []object
	for _, one := range parse(t, text) {
		if at(one, "metadata", "annotations", "helm.sh/hook") == nil {
			found = append(found, one)
		}
	}
	return found
}

// hook returns the pod of `helm test`.
func hook(t *testing.T, settings ...string) object {
	t.Helper()
	return hookOf(t, "Pod", settings...)
}

func hookOf(t *testing.T, kind string, settings ...string) object {
	t.Helper()
	text, err := template(t, settings...)
	if err != nil {
		t.Fatalf("%v: %v", settings, err)
	}
	for _, one := range parse(t, text) {
		if at(one, "metadata", "annotations", "helm.sh/hook") == "test" && one["kind"] == kind {
			return one
		}
	}
	t.Fatal("no hook")
	return nil
}

// daemonSets returns those of them that are DaemonSets, by name.
func daemonSets(objects []object) map[string]object {
	found := map[string]object{}
	for _, one := range objects {
		if one["kind"] == "DaemonSet" {
			found[at(one, "metadata", "name").(string)] = one
		}
	}
	return found
}

// at follows keys and, in lists, numbers; nil where there is nothing.
func at(value any, path ...any) any {
	for _, step := range path {
		switch key := step.(type) {
		case string:
			fields, _ := value.(map[string]any)
			value = fields[key]
		case int:
			items, _ := value.([]any)
			if key >= len(items) {
				return nil
			}
			value = items[key]
		}
	}
	return value
}

func text(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(out)
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
