package manifests

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const simulatedHost = "/var/lib/neuron-sim"

func TestDevTokenIsSeenByTheInitContainerAlone(t *testing.T) {
	pod := load(t, dev).Spec.Template.Spec
	var access *corev1.Volume
	for i := range pod.Volumes {
		if pod.Volumes[i].Projected != nil {
			access = &pod.Volumes[i]
		}
	}
	if access == nil || len(access.Projected.Sources) != 2 {
		t.Fatal("no volume with token and CA")
	}
	token, ca := access.Projected.Sources[0].ServiceAccountToken, access.Projected.Sources[1].ConfigMap
	if token == nil || token.Audience != "" || token.ExpirationSeconds == nil || *token.ExpirationSeconds > 3600 {
		t.Errorf("token %v", token)
	}
	if ca == nil || ca.Name != "kube-root-ca.crt" || !isTrue(ca.Optional) {
		t.Errorf("CA %v: a cluster that does not publish it must not keep the pod from starting", ca)
	}
	for _, container := range containersOf(pod) {
		for _, mount := range container.VolumeMounts {
			inside := mount.MountPath == "/var/run/secrets/kubernetes.io/serviceaccount" && mount.ReadOnly
			if mount.Name == access.Name && (container.Name != "simulated-host" || !inside) {
				t.Errorf("%s sees the token at %s", container.Name, mount.MountPath)
			}
		}
	}
}

func TestDevInitContainerMayMakeDeviceNodesAndNothingElse(t *testing.T) {
	init := load(t, dev).Spec.Template.Spec.InitContainers[0]
	security := init.SecurityContext
	if !isFalse(security.Privileged) || !isFalse(security.AllowPrivilegeEscalation) {
		t.Error("may gain privileges")
	}
	if !slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
		!slices.Equal(security.Capabilities.Add, []corev1.Capability{"MKNOD"}) {
		t.Errorf("capabilities %v", security.Capabilities)
	}
	if len(init.VolumeMounts) != 2 {
		t.Errorf("sees %v", init.VolumeMounts)
	}
	if init.Resources.Limits.Memory().IsZero() || init.Resources.Requests.Cpu().IsZero() {
		t.Error("has no bounds")
	}
}

// The device nodes that the agent names to the kubelet are looked for by the container runtime, on the node.
func TestDevHasOnePathInsideAndOutside(t *testing.T) {
	pod := load(t, dev).Spec.Template.Spec
	for _, container := range containersOf(pod) {
		found := false
		for _, mount := range container.VolumeMounts {
			found = found || (mount.Name == "simulated-host" && mount.MountPath == simulatedHost && mount.SubPath == "")
		}
		if !found {
			t.Errorf("%s does not see %s", container.Name, simulatedHost)
		}
	}
	if !slices.Contains(pod.InitContainers[0].Args, simulatedHost) {
		t.Errorf("the init container writes elsewhere: %v", pod.InitContainers[0].Args)
	}
	for _, program := range []string{"AGENT", "LS", "TOP", "GATHER"} {
		variable := corev1.EnvVar{Name: "NEURON_" + program + "_ROOT", Value: simulatedHost}
		if !slices.Contains(pod.Containers[0].Env, variable) {
			t.Errorf("a plain kubectl exec would read the node: %s is not set", variable.Name)
		}
	}
	for _, arg := range pod.Containers[0].Args {
		if strings.HasPrefix(arg, "--root") {
			t.Error("the root is said twice")
		}
	}
}

func TestDevInstanceType(t *testing.T) {
	init := load(t, dev).Spec.Template.Spec.InitContainers[0]
	if !slices.Contains(init.Args, "--type-from-node=$(NODE_NAME)") || !slices.Contains(init.Args, "--keep") {
		t.Errorf("arguments %v", init.Args)
	}
	if env := init.Env[0]; env.Name != "NODE_NAME" || env.ValueFrom.FieldRef.FieldPath != "spec.nodeName" {
		t.Error("does not know its node")
	}
	if !slices.Contains(init.Env, corev1.EnvVar{Name: "NEURON_SIM_INSTANCE_TYPE", Value: "trn1.32xlarge"}) {
		t.Error("no instance type for nodes without label")
	}
}

func TestSampleJobAsksAndPrints(t *testing.T) {
	pod := sampleJob(t).Spec.Template.Spec
	container := pod.Containers[0]
	for resource, want := range map[corev1.ResourceName]int64{"aws.amazon.com/neuron": 2, "vpc.amazonaws.com/efa": 1} {
		if got := container.Resources.Limits[resource]; got.Value() != want {
			t.Errorf("asks for %d of %s", got.Value(), resource)
		}
	}
	if pod.RestartPolicy != corev1.RestartPolicyNever || !slices.Equal(container.Command, []string{"neuron-sim", "show"}) {
		t.Error("does not print what it got and end")
	}
}
