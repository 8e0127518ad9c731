// Package manifests checks manifests/: what is rendered, that the API server's types accept it, and what it may do.
package manifests

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const root = "../../manifests"

// rendered maps each file of static/ to the directory it is rendered from. Every overlay has one.
var rendered = map[string]string{
	"neuron-agent.yaml":            "base",
	"neuron-agent-efa-only.yaml":   "overlays/efa-only",
	"neuron-agent-privileged.yaml": "overlays/privileged",
	kernelLog:                      "overlays/kernel-log",
	"neuron-agent-dev.yaml":        "overlays/dev",
	"neuron-agent-aws-names.yaml":  "overlays/aws-names",
	draFile:                        "overlays/dra",
	draDev:                         "overlays/dra-dev",
	statusFile:                     "overlays/node-status",
}

const (
	dev       = "neuron-agent-dev.yaml"
	draFile   = "neuron-agent-dra.yaml"
	draDev    = "neuron-agent-dra-dev.yaml"
	kernelLog = "neuron-agent-kernel-log.yaml"

	statusFile = "neuron-agent-node-status.yaml"
)

const header = "# Rendered from manifests/%s; do not edit. UPDATE_GOLDEN=1 test/manifests/run.sh writes it anew.\n"

func render(t *testing.T, source string) []byte {
	t.Helper()
	kustomizer := krusty.MakeKustomizer(krusty.MakeDefaultOptions())
	resources, err := kustomizer.Run(filesys.MakeFsOnDisk(), filepath.Join(root, source))
	if err != nil {
		t.Fatalf("rendering %s: %v", source, err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatalf("rendering %s: %v", source, err)
	}
	return append([]byte(headerOf(source)), text...)
}

func headerOf(source string) string {
	return regexp.MustCompile("%s").ReplaceAllString(header, source)
}

func TestStaticEqualsRendered(t *testing.T) {
	for name, source := range rendered {
		t.Run(name, func(t *testing.T) {
			want := render(t, source)
			path := filepath.Join(root, "static", name)
			if os.Getenv("UPDATE_GOLDEN") == "1" {
				if err := os.WriteFile(path, want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not what manifests/%s renders to; UPDATE_GOLDEN=1 test/manifests/run.sh writes it anew.\nwant:\n%s",
					path, source, want)
			}
		})
	}
}

func TestEveryOverlayAndStaticFileIsKnown(t *testing.T) {
	sources := map[string]bool{}
	for _, source := range rendered {
		sources[source] = true
	}
	overlays, err := filepath.Glob(filepath.Join(root, "overlays", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, overlay := range overlays {
		if !sources["overlays/"+filepath.Base(overlay)] {
			t.Errorf("%s has no rendered file", overlay)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "static", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, known := rendered[filepath.Base(file)]; !known {
			t.Errorf("%s is rendered from nothing", file)
		}
	}
}

// isSimulated: the manifest brings a simulated host.
func isSimulated(name string) bool { return name == dev || name == draDev }

// isForClaims: it runs the driver for claims.
func isForClaims(name string) bool { return name == draFile || name == draDev }

// All containers of a pod, those of its start among them.
func containersOf(pod corev1.PodSpec) []corev1.Container {
	return append(append([]corev1.Container{}, pod.InitContainers...), pod.Containers...)
}

func TestImageTagIsTheProjectsVersion(t *testing.T) {
	cmake, err := os.ReadFile("../../CMakeLists.txt")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`project\([^)]*VERSION ([0-9.]+)`).FindSubmatch(cmake)
	if version == nil {
		t.Fatal("no project(VERSION) in CMakeLists.txt")
	}
	check := func(name, image, want string) {
		if want += ":" + string(version[1]); image != want {
			t.Errorf("%s: image %s, want %s", name, image, want)
		}
	}
	for name := range rendered {
		want := "localhost/neuron-agent"
		if isSimulated(name) {
			want = "localhost/neuron-agent-sim" // one image is all that has to be loaded
		}
		for _, container := range containersOf(load(t, name).Spec.Template.Spec) {
			check(name, container.Image, want)
		}
	}
	check("sample-job.yaml", sampleJob(t).Spec.Template.Spec.Containers[0].Image, "localhost/neuron-agent-sim")
}
