package manifests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomized is what kustomize makes of a directory of manifests/, components and more lines of a kustomization, as the documents show it.
func kustomized(t *testing.T, source string, components []string, more string) []runtime.Object {
	t.Helper()
	directory := t.TempDir()
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(directory, absolute)
	if err != nil {
		t.Fatal(err)
	}
	text := "resources: [" + relative + "/" + source + "]\ncomponents:\n"
	for _, component := range components {
		text += "  - " + relative + "/components/" + component + "\n"
	}
	if err := os.WriteFile(filepath.Join(directory, "kustomization.yaml"), []byte(text+more), 0o644); err != nil {
		t.Fatal(err)
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), directory)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return objectsOf(t, source, rendered)
}

func TestNodeGroupsComponent(t *testing.T) {
	objects := kustomized(t, "base", []string{"node-groups"}, "")
	daemonSet, configMap := one[*appsv1.DaemonSet](t, objects), one[*corev1.ConfigMap](t, objects)
	pod := daemonSet.Spec.Template.Spec
	container := pod.Containers[0]
	environment := map[string]corev1.EnvVar{}
	for _, variable := range container.Env {
		environment[variable.Name] = variable
	}
	file := environment["NEURON_AGENT_NODE_GROUPS"].Value
	name := environment["NODE_NAME"].ValueFrom
	if name == nil || name.FieldRef == nil || name.FieldRef.FieldPath != "spec.nodeName" {
		t.Error("the agent does not learn the name of its node")
	}
	text, present := configMap.Data[filepath.Base(file)]
	if !present || !json.Valid([]byte(text)) {
		t.Errorf("the config map holds no JSON under %s: %v", filepath.Base(file), configMap.Data)
	}
	if configMap.Namespace != daemonSet.Namespace || configMap.Name == "neuron-agent-node-groups" ||
		!strings.HasPrefix(configMap.Name, "neuron-agent-node-groups-") {
		t.Errorf("config map %s/%s: not beside the DaemonSet, or without a hash of its contents", configMap.Namespace, configMap.Name)
	}
	mounted := false
	for _, mount := range container.VolumeMounts {
		if mount.Name == "node-groups" {
			mounted = mount.ReadOnly && mount.MountPath == filepath.Dir(file)
		}
	}
	if !mounted {
		t.Errorf("%s is not mounted read-only", filepath.Dir(file))
	}
	if last := pod.Volumes[len(pod.Volumes)-1]; len(pod.Volumes) != 3 || len(container.VolumeMounts) != 3 {
		t.Errorf("volumes %v, mounts %v: want the kubelet's two and the config map", pod.Volumes, container.VolumeMounts)
	} else if !refersTo(pod.Volumes, configMap.Name) {
		t.Errorf("no volume is the config map %s: %v", configMap.Name, last)
	}
	if !isFalse(pod.AutomountServiceAccountToken) || !isFalse(container.SecurityContext.Privileged) {
		t.Error("the component widens what the pod may do")
	}
}

func refersTo(volumes []corev1.Volume, configMap string) bool {
	for _, volume := range volumes {
		if volume.ConfigMap != nil && volume.ConfigMap.Name == configMap {
			return true
		}
	}
	return false
}

// A changed file is another config map, so that the DaemonSet changes and is rolled out.
func TestOwnNodeGroupsRollTheAgentsOut(t *testing.T) {
	own := `{"groups": [{"name": "all", "resources": "neuroncore,efa"}]}`
	patch := "patches:\n  - patch: |-\n      apiVersion: v1\n      kind: ConfigMap\n      metadata: {name: neuron-agent-node-groups, namespace: kube-system}\n" +
		"      data:\n        node-groups.json: |-\n          " + own + "\n"
	shipped := one[*corev1.ConfigMap](t, kustomized(t, "base", []string{"node-groups"}, ""))
	objects := kustomized(t, "base", []string{"node-groups"}, patch)
	daemonSet, configMap := one[*appsv1.DaemonSet](t, objects), one[*corev1.ConfigMap](t, objects)
	if configMap.Data["node-groups.json"] != own {
		t.Errorf("the config map holds %v", configMap.Data)
	}
	if configMap.Name == shipped.Name || !refersTo(daemonSet.Spec.Template.Spec.Volumes, configMap.Name) {
		t.Errorf("config map %s, shipped %s: the DaemonSet would not be rolled out", configMap.Name, shipped.Name)
	}
}
