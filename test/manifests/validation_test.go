package manifests

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	admissiondefaults "k8s.io/kubernetes/pkg/apis/admissionregistration/v1"
	admissionvalidation "k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
	"k8s.io/kubernetes/pkg/apis/apps"
	appsdefaults "k8s.io/kubernetes/pkg/apis/apps/v1"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	core "k8s.io/kubernetes/pkg/apis/core"
	coredefaults "k8s.io/kubernetes/pkg/apis/core/v1"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	networkingdefaults "k8s.io/kubernetes/pkg/apis/networking/v1"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/resource"
	resourcedefaults "k8s.io/kubernetes/pkg/apis/resource/v1"
	resourcevalidation "k8s.io/kubernetes/pkg/apis/resource/validation"
	"k8s.io/kubernetes/pkg/capabilities"
)

var internalScheme = func() *runtime.Scheme {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		core.AddToScheme, coredefaults.AddToScheme, apps.AddToScheme, appsdefaults.AddToScheme, networking.AddToScheme, networkingdefaults.AddToScheme,
		resource.AddToScheme, resourcedefaults.AddToScheme, admissionregistration.AddToScheme, admissiondefaults.AddToScheme,
	} {
		if err := add(all); err != nil {
			panic(err)
		}
	}
	return all
}()

// validated converts an object after the API server's defaults and validates it.
func validated[T runtime.Object](t *testing.T, object runtime.Object, internal T, validate func(T) field.ErrorList) field.ErrorList {
	t.Helper()
	internalScheme.Default(object)
	if err := internalScheme.Convert(object, internal, nil); err != nil {
		t.Fatal(err)
	}
	return validate(internal)
}

// refusals are the errors of the API server's own validation; nil for kinds that it does not know.
func refusals(t *testing.T, object runtime.Object) field.ErrorList {
	t.Helper()
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true}) // as EKS's API server runs
	switch object.(type) {
	case *appsv1.DaemonSet:
		return validated(t, object, &apps.DaemonSet{}, func(one *apps.DaemonSet) field.ErrorList {
			return appsvalidation.ValidateDaemonSet(one, corevalidation.PodValidationOptions{})
		})
	case *networkingv1.NetworkPolicy:
		return validated(t, object, &networking.NetworkPolicy{}, func(one *networking.NetworkPolicy) field.ErrorList {
			return networkingvalidation.ValidateNetworkPolicy(one, networkingvalidation.NetworkPolicyValidationOptions{})
		})
	case *resourcev1.DeviceClass:
		return validated(t, object, &resource.DeviceClass{}, resourcevalidation.ValidateDeviceClass)
	case *resourcev1.ResourceClaim:
		return validated(t, object, &resource.ResourceClaim{}, resourcevalidation.ValidateResourceClaim)
	case *resourcev1.ResourceClaimTemplate:
		return validated(t, object, &resource.ResourceClaimTemplate{}, resourcevalidation.ValidateResourceClaimTemplate)
	case *admissionv1.ValidatingAdmissionPolicy:
		return validated(t, object, &admissionregistration.ValidatingAdmissionPolicy{}, admissionvalidation.ValidateValidatingAdmissionPolicy)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		return validated(t, object, &admissionregistration.ValidatingAdmissionPolicyBinding{},
			admissionvalidation.ValidateValidatingAdmissionPolicyBinding)
	}
	return nil
}

const (
	extraClass    = "components/dra-dranet-class/class.yaml"
	claimPolicy   = "components/dra-claim-policy/policy.yaml"
	networkPolicy = "components/network-policy/network-policy.yaml"
)

func TestApiServerWouldAccept(t *testing.T) {
	paths := []string{extraClass, claimPolicy, networkPolicy, "examples/claims-whole-devices.yaml", "examples/claims-parts.yaml"}
	for _, name := range staticFiles {
		paths = append(paths, "static/"+name)
	}
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			for _, object := range objects(t, path) {
				if errors := refusals(t, object); len(errors) > 0 {
					t.Errorf("the API server would refuse %T: %v", object, errors)
				}
			}
		})
	}
}

// The validation bites.
func TestApiServerWouldRefuse(t *testing.T) {
	daemonSet, class := load(t, "neuron-agent.yaml"), classes(t, draPath)["neuron.aws.com"]
	policy := only[*networkingv1.NetworkPolicy](t, networkPolicy)
	privileged := true
	daemonSet.Spec.Template.Spec.Containers[0].SecurityContext.Privileged = &privileged // without privilege escalation
	class.Spec.Selectors[0].CEL.Expression = "device.drive == 'x'"
	policy.Spec.PolicyTypes = []networkingv1.PolicyType{"Inbound"}
	for _, object := range []runtime.Object{daemonSet, class, policy} {
		if len(refusals(t, object)) == 0 {
			t.Errorf("%T was not refused", object)
		}
	}
}
