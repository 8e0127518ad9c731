package manifests

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/apps"
	appsdefaults "k8s.io/kubernetes/pkg/apis/apps/v1"
	"k8s.io/kubernetes/pkg/apis/apps/validation"
	core "k8s.io/kubernetes/pkg/apis/core"
	coredefaults "k8s.io/kubernetes/pkg/apis/core/v1"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"
)

// The API server's own code: defaults, conversion, validation.
func TestApiServerWouldAccept(t *testing.T) {
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true}) // as EKS's API server runs
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		core.AddToScheme, coredefaults.AddToScheme, apps.AddToScheme, appsdefaults.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	validate := func(t *testing.T, daemonSet *appsv1.DaemonSet) int {
		t.Helper()
		scheme.Default(daemonSet)
		internal := &apps.DaemonSet{}
		if err := scheme.Convert(daemonSet, internal, nil); err != nil {
			t.Fatal(err)
		}
		errors := validation.ValidateDaemonSet(internal, corevalidation.PodValidationOptions{})
		for _, err := range errors {
			t.Log(err)
		}
		return len(errors)
	}
	for _, name := range staticFiles {
		t.Run(name, func(t *testing.T) {
			if validate(t, load(t, name)) != 0 {
				t.Errorf("the API server would refuse %s", name)
			}
		})
	}
	t.Run("a pod that may not be", func(t *testing.T) {
		daemonSet := load(t, "neuron-agent.yaml")
		privileged := true
		daemonSet.Spec.Template.Spec.Containers[0].SecurityContext.Privileged = &privileged
		if validate(t, daemonSet) == 0 {
			t.Error("privileged without privilege escalation was not refused: this test checks nothing")
		}
	})
}
