package manifests

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// mounts is everything a manifest may see of the host: host path to read-only.
type mounts map[string]bool

var kubeletOnly = mounts{"/var/lib/kubelet/device-plugins": false, "/var/lib/kubelet/pod-resources": true}

var ofDriver = mounts{"/var/lib/kubelet/plugins/neuron.aws.com": false, "/var/lib/kubelet/plugins_registry": false, "/var/run/cdi": false,
	"/var/lib/kubelet/device-plugins": true, "/var/lib/kubelet/pod-resources": true}

func with(some, more mounts) mounts {
	all := mounts{}
	for path, readOnly := range some {
		all[path] = readOnly
	}
	for path, readOnly := range more {
		all[path] = readOnly
	}
	return all
}

var granted = map[string]mounts{
	"neuron-agent.yaml":            kubeletOnly,
	"neuron-agent-efa-only.yaml":   kubeletOnly,
	"neuron-agent-aws-names.yaml":  kubeletOnly,
	kernelLog:                      kubeletOnly,
	"neuron-agent-dev.yaml":        with(kubeletOnly, mounts{"/var/lib/neuron-sim": false}), // faults are set through kubectl exec
	"neuron-agent-privileged.yaml": with(kubeletOnly, mounts{"/dev": false, "/opt/aws/neuron": true}),
	statusFile:                     kubeletOnly,
	draFile:                        ofDriver,
	draDev:                         with(ofDriver, mounts{"/var/lib/neuron-sim": false}),
}

// Volumes of what not every node has are made: a pod must not wait for it.
var made = map[string][]string{dev: {"simulated-host"}, draFile: {"plugin", "cdi"}, draDev: {"plugin", "cdi", "simulated-host"}, "neuron-agent-privileged.yaml": {"aws-neuron"}}

func isTrue(value *bool) bool  { return value != nil && *value }
func isFalse(value *bool) bool { return value != nil && !*value }

func TestPodIsContained(t *testing.T) {
	for _, name := range staticFiles {
		t.Run(name, func(t *testing.T) {
			pod := load(t, name).Spec.Template.Spec
			if pod.HostNetwork || pod.HostPID || pod.HostIPC {
				t.Error("shares a namespace with the host")
			}
			if isFalse(pod.AutomountServiceAccountToken) == (isForClaims(name) || name == statusFile) {
				t.Error("carries a token of the API server, or does not where it needs one")
			}
			if (pod.ServiceAccountName != "") != (isForClaims(name) || name == dev || name == statusFile) {
				t.Errorf("service account %q", pod.ServiceAccountName) // dev_test.go, dra_test.go and node_status_test.go say what that one may
			}
			if (len(pod.InitContainers) != 0) != isSimulated(name) || len(pod.Containers) != 1 {
				t.Fatal("one container is all that is needed")
			}
			for _, container := range containersOf(pod) {
				if len(container.EnvFrom) != 0 {
					t.Error("reads foreign environment")
				}
				if container.Name == "neuron-agent" {
					continue // its one port: probe_test.go
				}
				if len(container.Ports) != 0 {
					t.Error("opens ports")
				}
				if !isTrue(container.SecurityContext.ReadOnlyRootFilesystem) {
					t.Error("may write its root file system")
				}
			}
		})
	}
}

func TestOnlyThePrivilegedManifestIsPrivileged(t *testing.T) {
	for _, name := range staticFiles {
		t.Run(name, func(t *testing.T) {
			pod := load(t, name).Spec.Template.Spec
			security := pod.Containers[0].SecurityContext
			if name == "neuron-agent-privileged.yaml" {
				if !isTrue(security.Privileged) {
					t.Error("cannot open device nodes")
				}
				if security.AllowPrivilegeEscalation != nil {
					t.Error("the API server refuses allowPrivilegeEscalation beside privileged")
				}
				return
			}
			if !isFalse(security.Privileged) || !isFalse(security.AllowPrivilegeEscalation) {
				t.Error("may gain privileges")
			}
			added := []corev1.Capability{}
			if name == kernelLog {
				added = []corev1.Capability{"SYSLOG"}
			}
			if security.Capabilities == nil || !slices.Equal(security.Capabilities.Add, added) ||
				!slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) {
				t.Error("keeps capabilities")
			}
			profile := pod.SecurityContext.SeccompProfile
			if profile == nil || profile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Error("has no seccomp profile")
			}
			if pod.SecurityContext.RunAsUser == nil || *pod.SecurityContext.RunAsUser != 0 {
				t.Error("the kubelet's directories can be used by root only, so uid 0 must be said")
			}
		})
	}
}

func TestTheKernelLogIsReadWhereItMayBe(t *testing.T) {
	for _, name := range staticFiles {
		asks := slices.Contains(load(t, name).Spec.Template.Spec.Containers[0].Args, "--kernel-log=on")
		if may := name == kernelLog || name == "neuron-agent-privileged.yaml"; asks != may {
			t.Errorf("%s: asks for the kernel log: %v, may read it: %v", name, asks, may)
		}
	}
}

func TestMountsAreExactlyTheGrantedOnes(t *testing.T) {
	for _, name := range staticFiles {
		t.Run(name, func(t *testing.T) {
			pod := load(t, name).Spec.Template.Spec
			paths := map[string]string{}
			for _, volume := range pod.Volumes {
				if isSimulated(name) && volume.Name == "node-label-access" {
					continue // of the init container alone: dev_test.go
				}
				wanted := corev1.HostPathDirectory
				if slices.Contains(made[name], volume.Name) {
					wanted = corev1.HostPathDirectoryOrCreate
				}
				if volume.HostPath == nil || volume.HostPath.Type == nil || *volume.HostPath.Type != wanted {
					t.Fatalf("volume %s is no host directory of type %s", volume.Name, wanted)
				}
				paths[volume.Name] = volume.HostPath.Path
			}
			seen := mounts{}
			for _, mount := range pod.Containers[0].VolumeMounts {
				if paths[mount.Name] != mount.MountPath {
					t.Errorf("%s: host path %q is mounted at %q", mount.Name, paths[mount.Name], mount.MountPath)
				}
				seen[mount.MountPath] = mount.ReadOnly
			}
			want := granted[name]
			if len(seen) != len(want) || len(paths) != len(want) {
				t.Errorf("mounts %v, want %v", seen, want)
			}
			for path, readOnly := range want {
				if got, there := seen[path]; !there || got != readOnly {
					t.Errorf("mounts %v, want %v", seen, want)
				}
			}
		})
	}
}

func TestRunsAsANodeService(t *testing.T) {
	for _, name := range staticFiles {
		t.Run(name, func(t *testing.T) {
			daemonSet := load(t, name)
			pod := daemonSet.Spec.Template.Spec
			if daemonSet.Namespace != "kube-system" || pod.PriorityClassName != "system-node-critical" {
				t.Error("is not a node-critical pod of kube-system")
			}
			update := daemonSet.Spec.UpdateStrategy
			if update.Type != appsv1.RollingUpdateDaemonSetStrategyType {
				t.Fatalf("update strategy %s", update.Type)
			}
			surge, err := intstr.GetScaledValueFromIntOrPercent(update.RollingUpdate.MaxSurge, 1, true)
			if err != nil || surge != 1 || update.RollingUpdate.MaxUnavailable.IntValue() != 0 {
				t.Errorf("surge of %d, %v: an update leaves nodes without an agent", surge, err)
			}
			agent := pod.Containers[0]
			if slices.Contains(agent.Args, "--take-over") == isForClaims(name) || agent.Ports[0].HostPort != 0 || pod.HostNetwork {
				t.Errorf("arguments %v, ports %v: two instances could not run beside each other", agent.Args, agent.Ports)
			}
			resources := pod.Containers[0].Resources
			if resources.Requests.Cpu().IsZero() || resources.Requests.Memory().IsZero() || resources.Limits.Memory().IsZero() {
				t.Error("has no requests or no memory limit")
			}
			if !resources.Limits.Cpu().IsZero() {
				t.Error("a CPU limit would throttle Allocate")
			}
			selector, err := metav1.LabelSelectorAsSelector(daemonSet.Spec.Selector)
			if err != nil || !selector.Matches(labels.Set(daemonSet.Spec.Template.Labels)) {
				t.Errorf("selector does not match its own pods: %v", err)
			}
		})
	}
}
