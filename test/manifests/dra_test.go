package manifests

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const draPath = "static/" + draFile

// The sockets are named after the pod, so the next instance may serve before the last one ends.
func TestDraUpdatesWithoutAGap(t *testing.T) {
	set := load(t, draFile)
	update := set.Spec.UpdateStrategy.RollingUpdate
	if update.MaxSurge.IntValue() != 1 || update.MaxUnavailable.IntValue() != 0 {
		t.Errorf("rolling update %v", update)
	}
	container := set.Spec.Template.Spec.Containers[0]
	for name, field := range map[string]string{"NODE_NAME": "spec.nodeName", "POD_UID": "metadata.uid"} {
		found := slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool {
			return v.Name == name && v.ValueFrom != nil && v.ValueFrom.FieldRef != nil && v.ValueFrom.FieldRef.FieldPath == field
		})
		if !found {
			t.Errorf("%s is not %s", name, field)
		}
	}
	if !slices.Contains(container.Args, "--mode=dra") || container.Ports[0].HostPort != 0 || set.Spec.Template.Spec.HostNetwork {
		t.Errorf("arguments %v, ports %v: two instances could not run beside each other", container.Args, container.Ports)
	}
}

// Where a device plugin serves the same devices the pod waits; anti-affinity holds in both directions, so one side saying it is
// enough.
func TestDraStaysAwayFromDevicePlugins(t *testing.T) {
	template := load(t, draFile).Spec.Template
	terms := template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	kept := func(namespace string, podLabels map[string]string) bool {
		return slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
			selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
			if err != nil {
				t.Fatal(err)
			}
			everywhere := term.NamespaceSelector != nil && len(term.NamespaceSelector.MatchLabels) == 0
			return term.TopologyKey == corev1.LabelHostname && (everywhere || slices.Contains(term.Namespaces, namespace)) &&
				selector.Matches(labels.Set(podLabels))
		})
	}
	for _, name := range staticFiles {
		pod := load(t, name).Spec.Template
		if got := kept("anywhere", pod.Labels); got == isForClaims(name) {
			t.Errorf("keeps off the pods of %s: %v", name, got)
		}
	}
	// The scheduler of 1.36 looks at a pod that waits again when a pod ends that matches all of its terms (interpodaffinity,
	// isSchedulableAfterPodChange), so a second term would keep it waiting for five minutes.
	if len(terms) != 1 {
		t.Errorf("%d terms", len(terms))
	}
	if kept("kube-system", map[string]string{"k8s-app": "kube-proxy"}) {
		t.Error("keeps off pods that it has nothing to do with")
	}
}
