package manifests

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	admissiondefaults "k8s.io/kubernetes/pkg/apis/admissionregistration/v1"
	admissionvalidation "k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
	"k8s.io/kubernetes/pkg/apis/resource"
	resourcedefaults "k8s.io/kubernetes/pkg/apis/resource/v1"
	"k8s.io/kubernetes/pkg/apis/resource/validation"
)

// refusals is what the API server's own code says against an object; it knows the kinds of claims and of policies.
func refusals(t *testing.T, object runtime.Object) field.ErrorList {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		resource.AddToScheme, resourcedefaults.AddToScheme, admissionregistration.AddToScheme, admissiondefaults.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	scheme.Default(object)
	convert := func(internal runtime.Object) {
		if err := scheme.Convert(object, internal, nil); err != nil {
			t.Fatal(err)
		}
	}
	switch object.(type) {
	case *resourcev1.DeviceClass:
		internal := &resource.DeviceClass{}
		convert(internal)
		return validation.ValidateDeviceClass(internal)
	case *resourcev1.ResourceClaim:
		internal := &resource.ResourceClaim{}
		convert(internal)
		return validation.ValidateResourceClaim(internal)
	case *resourcev1.ResourceClaimTemplate:
		internal := &resource.ResourceClaimTemplate{}
		convert(internal)
		return validation.ValidateResourceClaimTemplate(internal)
	case *admissionv1.ValidatingAdmissionPolicy:
		internal := &admissionregistration.ValidatingAdmissionPolicy{}
		convert(internal)
		return admissionvalidation.ValidateValidatingAdmissionPolicy(internal)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		internal := &admissionregistration.ValidatingAdmissionPolicyBinding{}
		convert(internal)
		return admissionvalidation.ValidateValidatingAdmissionPolicyBinding(internal)
	}
	return nil
}

var exampleClaims = []string{"examples/claims-whole-devices.yaml", "examples/claims-parts.yaml"}

func TestApiServerWouldAcceptClassesPolicyAndClaims(t *testing.T) {
	for _, path := range append([]string{draPath, "components/dra-dranet-class/class.yaml"}, exampleClaims...) {
		for _, object := range objects(t, path) {
			if errors := refusals(t, object); len(errors) > 0 {
				t.Errorf("%s: the API server would refuse %T: %v", path, object, errors)
			}
		}
	}
	class := classes(t, draPath)["neuron.aws.com"]
	class.Spec.Selectors[0].CEL.Expression = "device.drive == 'x'"
	if len(refusals(t, class)) == 0 {
		t.Error("an expression without sense was not refused: this test checks nothing")
	}
}

// matching is the class's own expression, evaluated for one device as the scheduler does.
func matching(t *testing.T, class *resourcev1.DeviceClass, device dracel.Device) bool {
	t.Helper()
	compiled := dracel.GetCompiler(dracel.Features{}).CompileCELExpression(class.Spec.Selectors[0].CEL.Expression, dracel.Options{})
	if compiled.Error != nil {
		t.Fatal(class.Name, compiled.Error)
	}
	matches, _, err := compiled.DeviceMatches(context.Background(), device)
	if err != nil {
		t.Errorf("%s: %v: it would end the scheduling of the pod on every node", class.Name, err)
	}
	return matches
}

// Whole devices, cores, groups and interfaces each have one class, and no class fails at somebody else's device.
func TestEachDeviceHasItsClass(t *testing.T) {
	all := classes(t, draPath)
	all["efa.networking.k8s.aws"] = classes(t, "components/dra-dranet-class/class.yaml")["efa.networking.k8s.aws"]
	want := map[string][]string{
		"neuron_device": {"neuron.aws.com"}, "neuron_node": {"neuron.aws.com"}, "neuron_core": {"core.neuron.aws.com"},
		"neuron_group": {"group.neuron.aws.com"}, "efa": {"efa.neuron.aws.com", "efa.networking.k8s.aws"},
	}
	for kind, names := range want {
		device := dracel.Device{Driver: "neuron.aws.com", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"resourceType": {StringValue: &kind}}}
		for name, class := range all {
			expected := name == names[0] || name == names[len(names)-1]
			if got := matching(t, class, device); got != expected {
				t.Errorf("%s takes a %s: %v", name, kind, got)
			}
		}
	}
	for _, foreign := range []dracel.Device{{Driver: "gpu.nvidia.com"}, {Driver: "dra.net"}} {
		for name, class := range all {
			if matching(t, class, foreign) {
				t.Errorf("%s takes a device of %s", name, foreign.Driver)
			}
		}
	}
}
