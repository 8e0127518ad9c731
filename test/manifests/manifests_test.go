// Package manifests checks manifests/: that the API server's types accept it, and what it may do.
package manifests

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const root = "../../manifests"

// staticFiles are the names of the files in static/, which test/helm compares with the chart and with what kustomize makes.
var staticFiles = func() (names []string) {
	paths, err := filepath.Glob(filepath.Join(root, "static", "*.yaml"))
	if err != nil || len(paths) == 0 {
		panic("no files in manifests/static")
	}
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}()

const (
	dev       = "neuron-agent-dev.yaml"
	draFile   = "neuron-agent-dra.yaml"
	draDev    = "neuron-agent-dra-dev.yaml"
	kernelLog = "neuron-agent-kernel-log.yaml"

	statusFile = "neuron-agent-node-status.yaml"
)

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
	for _, name := range staticFiles {
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
