package manifests

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestReadyMeansRegistered: the probe asks the address that the agent is told to answer on, the one port is the pod's own,
// and nothing restarts an agent.
func TestReadyMeansRegistered(t *testing.T) {
	for _, name := range staticFiles {
		t.Run(name, func(t *testing.T) {
			pod := load(t, name).Spec.Template.Spec
			agent := pod.Containers[0]
			if len(agent.Ports) != 1 || agent.Ports[0] != (corev1.ContainerPort{Name: "metrics", ContainerPort: 8000, Protocol: agent.Ports[0].Protocol}) {
				t.Fatalf("ports %+v", agent.Ports)
			}
			if !slices.Contains(agent.Args, "--metrics-address=:8000") {
				t.Errorf("arguments %v", agent.Args)
			}
			probe := agent.ReadinessProbe
			if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != "/readyz" || probe.HTTPGet.Port != intstr.FromString("metrics") {
				t.Fatalf("readiness probe %+v", probe)
			}
			if slowest := probe.InitialDelaySeconds + probe.PeriodSeconds; slowest > 2 {
				t.Errorf("a rolling update waits up to %d s on each node for the first probe", slowest)
			}
			if agent.LivenessProbe != nil || agent.StartupProbe != nil {
				t.Error("a probe may end an agent that serves")
			}
		})
	}
}
