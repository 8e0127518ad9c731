package manifests

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// What may be in a file, each with a fresh value of its type.
var kinds = map[metav1.TypeMeta]func() runtime.Object{
	{APIVersion: "apps/v1", Kind: "DaemonSet"}:           func() runtime.Object { return &appsv1.DaemonSet{} },
	{APIVersion: "batch/v1", Kind: "Job"}:                func() runtime.Object { return &batchv1.Job{} },
	{APIVersion: "v1", Kind: "ServiceAccount"}:           func() runtime.Object { return &corev1.ServiceAccount{} },
	{APIVersion: "v1", Kind: "ConfigMap"}:                func() runtime.Object { return &corev1.ConfigMap{} },
	{APIVersion: "v1", Kind: "Pod"}:                      func() runtime.Object { return &corev1.Pod{} },
	{APIVersion: "v1", Kind: "Service"}:                  func() runtime.Object { return &corev1.Service{} },
	{APIVersion: monitoring, Kind: "PodMonitor"}:         func() runtime.Object { return &monitoringv1.PodMonitor{} },
	{APIVersion: monitoring, Kind: "PrometheusRule"}:     func() runtime.Object { return &monitoringv1.PrometheusRule{} },
	{APIVersion: networkingGroup, Kind: "NetworkPolicy"}: func() runtime.Object { return &networkingv1.NetworkPolicy{} },
	{APIVersion: rbac, Kind: "ClusterRole"}:              func() runtime.Object { return &rbacv1.ClusterRole{} },
	{APIVersion: rbac, Kind: "Role"}:                     func() runtime.Object { return &rbacv1.Role{} },
	{APIVersion: rbac, Kind: "ClusterRoleBinding"}:       func() runtime.Object { return &rbacv1.ClusterRoleBinding{} },
	{APIVersion: admission, Kind: "ValidatingAdmissionPolicy"}: func() runtime.Object {
		return &admissionv1.ValidatingAdmissionPolicy{}
	},
	{APIVersion: admission, Kind: "ValidatingAdmissionPolicyBinding"}: func() runtime.Object {
		return &admissionv1.ValidatingAdmissionPolicyBinding{}
	},
	{APIVersion: claims, Kind: "DeviceClass"}:           func() runtime.Object { return &resourcev1.DeviceClass{} },
	{APIVersion: claims, Kind: "ResourceClaim"}:         func() runtime.Object { return &resourcev1.ResourceClaim{} },
	{APIVersion: claims, Kind: "ResourceClaimTemplate"}: func() runtime.Object { return &resourcev1.ResourceClaimTemplate{} },
}

const (
	rbac      = "rbac.authorization.k8s.io/v1"
	admission = "admissionregistration.k8s.io/v1"
	claims    = "resource.k8s.io/v1"

	monitoring      = "monitoring.coreos.com/v1"
	networkingGroup = "networking.k8s.io/v1"
)

// objects reads all objects of one file below manifests/ the way an API server with strict field validation would.
func objects(t *testing.T, path string) []runtime.Object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return objectsOf(t, path, text)
}

// objectsOf is that of a text; path is for messages.
func objectsOf(t *testing.T, path string, text []byte) []runtime.Object {
	t.Helper()
	var found []runtime.Object
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		// Not yaml.UnmarshalStrict: it takes a field in the wrong case, which the API server does not.
		fields, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			t.Fatalf("%s is no YAML: %v", path, err)
		}
		kind := metav1.TypeMeta{}
		if err := json.UnmarshalCaseSensitivePreserveInts(fields, &kind); err != nil || kinds[kind] == nil {
			t.Fatalf("%s holds a %s %s, which this test does not know: %v", path, kind.APIVersion, kind.Kind, err)
		}
		object := kinds[kind]()
		unknown, err := json.UnmarshalStrict(fields, object)
		if err != nil || len(unknown) > 0 {
			t.Fatalf("%s: the %s does not fit the API's types: %v %v", path, kind.Kind, err, unknown)
		}
		found = append(found, object)
	}
	return found
}

// one returns the object of type T, of which there has to be exactly one.
func one[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	var found []T
	for _, object := range objects {
		if is, ok := object.(T); ok {
			found = append(found, is)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d %T, want one", len(found), *new(T))
	}
	return found[0]
}

// only is that one of a file below manifests/.
func only[T runtime.Object](t *testing.T, path string) T {
	t.Helper()
	return one[T](t, objects(t, path))
}

// load returns the DaemonSet of a static file.
func load(t *testing.T, name string) *appsv1.DaemonSet {
	t.Helper()
	return only[*appsv1.DaemonSet](t, filepath.Join("static", name))
}

func sampleJob(t *testing.T) *batchv1.Job {
	t.Helper()
	return only[*batchv1.Job](t, "examples/sample-job.yaml")
}

func TestOnlyWhatAsksTheApiServerHasMoreThanADaemonSet(t *testing.T) {
	for _, name := range staticFiles {
		var kinds []string
		for _, object := range objects(t, filepath.Join("static", name)) {
			kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
		}
		want := []string{"DaemonSet"}
		switch name {
		case dev:
			want = []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "DaemonSet"}
		case statusFile:
			want = []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicy",
				"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicyBinding", "DaemonSet"}
		case draFile, draDev:
			want = []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "DeviceClass", "DeviceClass", "DeviceClass", "DeviceClass",
				"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "DaemonSet"}
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("%s holds %v, want %v", name, kinds, want)
		}
	}
}
