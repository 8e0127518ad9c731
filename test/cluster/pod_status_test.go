package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

// statusHolder is a pod of one container that holds one device and must run on, whatever its status says of the device.
type statusHolder struct {
	c         *cluster.Cluster
	n         *cluster.Node
	pod       string
	device    string // "neuron3", as neuron-sim names it
	entry     string // of allocatedResourcesStatus
	uid       string
	container string
	restarts  int32
}

func (h *statusHolder) get() (*core.Pod, error) {
	pod, err := h.c.Client.CoreV1().Pods("default").Get(context.Background(), h.pod, meta.GetOptions{})
	if err == nil && len(pod.Status.ContainerStatuses) != 1 {
		err = fmt.Errorf("%s has %d container statuses", h.pod, len(pod.Status.ContainerStatuses))
	}
	return pod, err
}

func (h *statusHolder) remember(t *testing.T) {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, "the status of "+h.pod+" shows its running container", func() error {
		pod, err := h.get()
		if err != nil {
			return err
		}
		status := pod.Status.ContainerStatuses[0]
		if status.State.Running == nil || status.ContainerID == "" {
			return fmt.Errorf("it is %+v", status.State)
		}
		h.uid, h.container, h.restarts = string(pod.UID), status.ContainerID, status.RestartCount
		return nil
	})
}

// unit returns what the status says of the one device.
func (h *statusHolder) unit() (core.ResourceHealth, error) {
	pod, err := h.get()
	if err != nil {
		return core.ResourceHealth{}, err
	}
	for _, resource := range pod.Status.ContainerStatuses[0].AllocatedResourcesStatus {
		if string(resource.Name) != h.entry {
			continue
		}
		if len(resource.Resources) != 1 {
			return core.ResourceHealth{}, fmt.Errorf("%d units of %s", len(resource.Resources), h.entry)
		}
		return resource.Resources[0], nil
	}
	return core.ResourceHealth{}, fmt.Errorf("no %s in %+v", h.entry, pod.Status.ContainerStatuses[0].AllocatedResourcesStatus)
}

func (h *statusHolder) awaitSaid(t *testing.T, want core.ResourceHealthStatus) core.ResourceHealth {
	t.Helper()
	var unit core.ResourceHealth
	cluster.Eventually(t, cluster.Patience, fmt.Sprintf("the status of %s says that its device is %s", h.pod, want), func() error {
		var err error
		if unit, err = h.unit(); err == nil && unit.Health != want {
			err = fmt.Errorf("it says %s", unit.Health)
		}
		return err
	})
	return unit
}

// expectUndisturbed: the same pod, the same container, never restarted.
func (h *statusHolder) expectUndisturbed(t *testing.T) {
	t.Helper()
	pod, err := h.get()
	if err != nil {
		t.Fatal(err)
	}
	status := pod.Status.ContainerStatuses[0]
	if string(pod.UID) != h.uid || status.ContainerID != h.container || status.RestartCount != h.restarts || status.State.Running == nil {
		t.Errorf("%s is no longer what it was: uid %s, container %s, %d restarts, %+v; was %s, %s, %d", h.pod, pod.UID, status.ContainerID,
			status.RestartCount, status.State, h.uid, h.container, h.restarts)
	}
}

// expectFollows breaks the device and heals it again. Returns what the status said in between.
func (h *statusHolder) expectFollows(t *testing.T) core.ResourceHealth {
	t.Helper()
	t.Cleanup(func() { _ = h.n.Set(h.device, "heal") })
	h.remember(t)
	sound := h.awaitSaid(t, core.ResourceHealthStatusHealthy)
	var unhealthy core.ResourceHealth
	for _, step := range []struct {
		action string
		want   core.ResourceHealthStatus
	}{{"sram_ecc_uncorrected=1", core.ResourceHealthStatusUnhealthy}, {"heal", core.ResourceHealthStatusHealthy}} {
		begin := time.Now()
		h.n.Inject(t, h.device, step.action)
		unit := h.awaitSaid(t, step.want)
		figure(t, "%s, %s: %s in the status of the pod after %v", h.entry, step.action, step.want, time.Since(begin).Round(time.Millisecond))
		if unit.ResourceID != sound.ResourceID {
			t.Errorf("the unit is %s, was %s", unit.ResourceID, sound.ResourceID)
		}
		if step.want == core.ResourceHealthStatusUnhealthy {
			unhealthy = unit
		}
		h.expectUndisturbed(t)
	}
	return unhealthy
}

// explain asks the agent on the node of the pod; the answer counts whatever the exit status is.
func (h *statusHolder) explain(t *testing.T, agent string, want ...string) {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, "explain pod says it", func() error {
		said, _ := h.c.TryKubectl("-n", system, "exec", agent, "--", "neuron-agent", "explain", "pod", "default/"+h.pod)
		for _, words := range want {
			if !strings.Contains(said, words) {
				return errors.New("no \"" + words + "\" in:\n" + said)
			}
		}
		return nil
	})
}

// TestPodStatus: a device fails under the pod that holds it, by device plugin and by claim. The pod's status says so, with the
// device, and the opposite when it has healed; nothing restarts the pod.
func TestPodStatus(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, trn1DRA, cluster.Trn1)
	startDriver(t, c, nodes[:1])
	applyExamples(t, c)
	t.Cleanup(func() { c.ExpectNoPods(t, system, agentPod) })
	c.Apply(t, cluster.ScanningOften(t, "static/neuron-agent.yaml"))
	expectOffered(t, nodes[1], wholeTrn1)
	t.Run("DevicePlugin", func(t *testing.T) {
		w := onNode("status-of-plugin", nodes[1], cluster.Ask{cluster.Neuron: "1"})
		c.StartPod(t, w)
		id := c.ReportsOf(t, "default", w.Name)[0].Held[cluster.Neuron][0]
		h := &statusHolder{c: c, n: nodes[1], pod: w.Name, device: "neuron" + id, entry: string(cluster.Neuron)}
		agent := agentPodOn(t, c, nodes[1]).Name
		h.explain(t, agent, "all healthy", "all Healthy")
		if unhealthy := h.expectFollows(t); string(unhealthy.ResourceID) != id {
			t.Errorf("the unhealthy unit is %s, held is %s", unhealthy.ResourceID, id)
		}
		nodes[1].Inject(t, h.device, "sram_ecc_uncorrected=1")
		h.explain(t, agent, h.device+" is unhealthy: sram_ecc_uncorrected", id+" Unhealthy")
		nodes[1].Inject(t, h.device, "heal")
		h.explain(t, agent, "all Healthy")
	})
	t.Run("Claim", func(t *testing.T) {
		w := cluster.One("status-of-claim", nil).WithClaims(map[string]string{"devices": "neuron-1"})
		w.Node = nodes[0].Name
		c.StartPod(t, w)
		devices, perDevice := size(nodes[0])
		c.AwaitClaimReports(t, w, devices, perDevice)[0].ExpectSeen(t, perDevice)
		h := &statusHolder{c: c, n: nodes[0], pod: w.Name, entry: "claim:devices"}
		pod, err := h.get()
		if err != nil {
			t.Fatal(err)
		}
		claims, err := c.ClaimsOf(pod)
		if err != nil {
			t.Fatal(err)
		}
		h.device = strings.Replace(claims["devices"].Status.Allocation.Devices.Results[0].Device, "neuron-device-", "neuron", 1)
		unhealthy := h.expectFollows(t)
		if unhealthy.Message == nil || !strings.Contains(*unhealthy.Message, "uncorrected SRAM") {
			t.Errorf("the message of the unhealthy unit is %v", unhealthy.Message)
		}
	})
}
