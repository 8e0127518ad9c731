package manifests

import (
	"slices"
	"sort"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// forbidden asks the API server's PodSecurity admission what keeps a pod out of a namespace of that level.
func forbidden(t *testing.T, level api.Level, metadata metav1.ObjectMeta, pod corev1.PodSpec) []string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	reasons := []string{}
	version := api.LevelVersion{Level: level, Version: api.LatestVersion()}
	for _, result := range evaluator.EvaluatePod(version, &metadata, &pod) {
		if !result.Allowed {
			reasons = append(reasons, result.ForbiddenReason)
		}
	}
	sort.Strings(reasons)
	return reasons
}

// The kubelet's directories, and that they belong to root, are all that stands between the pod and the strictest level.
func TestPodSecurity(t *testing.T) {
	hostPath := []string{"hostPath volumes"}
	asRoot := []string{"restricted volume types", "runAsNonRoot != true", "runAsUser=0"}
	baseline := map[string][]string{
		"neuron-agent-privileged.yaml": {"hostPath volumes", "privileged"},
		kernelLog:                      {"hostPath volumes", "non-default capabilities"}, // SYSLOG
	}
	restricted := map[string][]string{
		dev:       {"restricted volume types", "runAsNonRoot != true", "runAsUser=0", "unrestricted capabilities"}, // MKNOD
		kernelLog: {"restricted volume types", "runAsNonRoot != true", "runAsUser=0", "unrestricted capabilities"},
		draDev:    {"restricted volume types", "runAsNonRoot != true", "runAsUser=0", "unrestricted capabilities"},
		"neuron-agent-privileged.yaml": {"allowPrivilegeEscalation != false", "restricted volume types", "runAsNonRoot != true",
			"runAsUser=0", "seccompProfile", "unrestricted capabilities"},
	}
	pick := func(special map[string][]string, name string, usual []string) []string {
		if reasons, is := special[name]; is {
			return reasons
		}
		return usual
	}
	for _, name := range staticFiles {
		t.Run(name, func(t *testing.T) {
			template := load(t, name).Spec.Template
			if got, want := forbidden(t, api.LevelBaseline, template.ObjectMeta, template.Spec), pick(baseline, name, hostPath); !slices.Equal(got, want) {
				t.Errorf("beyond baseline: %q, want %q", got, want)
			}
			got := forbidden(t, api.LevelRestricted, template.ObjectMeta, template.Spec)
			got = slices.DeleteFunc(got, func(reason string) bool { return reason == "hostPath volumes" || reason == "privileged" })
			if want := pick(restricted, name, asRoot); !slices.Equal(got, want) {
				t.Errorf("beyond restricted: %q, want %q", got, want)
			}
		})
	}
}

func TestSampleJobFitsTheStrictestLevel(t *testing.T) {
	template := sampleJob(t).Spec.Template
	if reasons := forbidden(t, api.LevelRestricted, template.ObjectMeta, template.Spec); len(reasons) != 0 {
		t.Errorf("not for every namespace: %q", reasons)
	}
}
