package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

// holders are pods that hold claims while something happens to their node, and must not notice.
type holders struct {
	c         *cluster.Cluster
	n         *cluster.Node
	workloads []cluster.Workload
	before    []holder
}

type holder struct {
	pod, container string // uid, container id
	restarts       int32
	devices        string // that the claim was given
}

var heldShapes = []string{"neuron-4", "cores-3", "group-of-4-efa-1"}

// holdClaims starts pods that stay, one per template.
func holdClaims(t *testing.T, c *cluster.Cluster, n *cluster.Node, prefix string, templates ...string) *holders {
	t.Helper()
	h := &holders{c: c, n: n}
	devices, perDevice := size(n)
	for _, template := range templates {
		w := cluster.One(prefix+"-"+template, nil).WithClaims(map[string]string{"devices": template})
		w.Node = n.Name
		again := w.Adjust
		w.Adjust = func(pod *core.PodSpec) { again(pod); pod.RestartPolicy = core.RestartPolicyAlways }
		c.StartPod(t, w)
		c.AwaitClaimReports(t, w, devices, perDevice)[0].ExpectSeen(t, perDevice)
		h.workloads = append(h.workloads, w)
	}
	h.before = h.now(t)
	return h
}

func (h *holders) now(t *testing.T) []holder {
	t.Helper()
	var all []holder
	cluster.Eventually(t, cluster.Patience, "the pods that hold claims run", func() error {
		all = nil
		for _, w := range h.workloads {
			pods, err := h.c.Pods("default", "workload="+w.Name)
			if err != nil || len(pods) != 1 || !isReady(&pods[0]) {
				return fmt.Errorf("%s: %d pods, none that runs: %w", w.Name, len(pods), err)
			}
			claims, err := h.c.ClaimsOf(&pods[0])
			if err != nil {
				return err
			}
			status, given := pods[0].Status.ContainerStatuses[0], []string{}
			for _, result := range claims["devices"].Status.Allocation.Devices.Results {
				given = append(given, result.Device)
			}
			all = append(all, holder{string(pods[0].UID), status.ContainerID, status.RestartCount, strings.Join(given, " ")})
		}
		return nil
	})
	return all
}

func (h *holders) expectUnnoticed(t *testing.T) {
	t.Helper()
	if now := h.now(t); !reflect.DeepEqual(now, h.before) {
		t.Errorf("the pods that hold claims are %+v, were %+v", now, h.before)
	}
}

// expectSeenAgain: after a reboot the same pods have the same devices, and new containers see them.
func (h *holders) expectSeenAgain(t *testing.T, since time.Time) {
	t.Helper()
	devices, perDevice := size(h.n)
	for i, w := range h.workloads {
		cluster.Eventually(t, 2*cluster.Patience, w.Name+" is started again", func() error {
			if began, _ := h.n.ReportTimes(w.Name, "main"); began.Before(since) {
				return errors.New("its report is from before")
			}
			return nil
		})
		h.c.AwaitClaimReports(t, w, devices, perDevice)[0].ExpectSeen(t, perDevice)
		if now := h.now(t)[i]; now.devices != h.before[i].devices || now.pod != h.before[i].pod {
			t.Errorf("%s is %+v, was %+v", w.Name, now, h.before[i])
		}
	}
}

// expectClaimServed: a new claim is prepared and its container sees what it was given.
func expectClaimServed(t *testing.T, c *cluster.Cluster, n *cluster.Node, name string) {
	t.Helper()
	devices, perDevice := size(n)
	w := cluster.One(name, nil).WithClaims(map[string]string{"devices": "neuron-2"})
	w.Node = n.Name
	c.StartJob(t, w)
	c.AwaitClaimReports(t, w, devices, perDevice)[0].ExpectSeen(t, perDevice)
	c.DeleteJob(t, w)
}

// TestLifeOfClaims: what happens to driver, kubelet, control plane and node while claims are held and while they are being prepared.
func TestLifeOfClaims(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, trn1DRA)[0]
	startDriver(t, c, []*cluster.Node{n}, partitioned, unmodified)
	applyExamples(t, c)
	pods := holdClaims(t, c, n, "held", heldShapes...)
	t.Run("RollingUpdate", func(t *testing.T) { expectNoGapInUpdate(t, c, n, pods) })
	for _, fault := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"DriverKilled", func(t *testing.T) { killDriver(t, c, n) }},
		{"Kubelet", func(t *testing.T) {
			if err := errors.Join(n.Kubelet.End(syscall.SIGKILL), n.StartKubelet()); err != nil {
				t.Fatal(err)
			}
		}},
		{"Containerd", func(t *testing.T) {
			if err := errors.Join(n.Containerd.End(syscall.SIGKILL), n.StartContainerd()); err != nil {
				t.Fatal(err)
			}
		}},
		{"APIServer", func(t *testing.T) { awayAPIServer(t, c) }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			expectSurvived(t, c, n, strings.ToLower(fault.name), fault.do)
			pods.expectUnnoticed(t)
			awaitPool(t, n)
			expectClaimServed(t, c, n, "after-"+strings.ToLower(fault.name))
		})
	}
	t.Run("Reboot", func(t *testing.T) {
		begin := time.Now()
		expectSurvived(t, c, n, "reboot", func(t *testing.T) { n.Reboot(t) })
		pods.expectSeenAgain(t, begin)
		awaitPool(t, n)
		expectClaimServed(t, c, n, "after-reboot")
		figure(t, "claims: node rebooted in mid-prepare: everything serves after %v", time.Since(begin).Round(time.Millisecond))
	})
}

// expectSurvived makes a burst of pods and, while they are being prepared, does something to the cluster.
func expectSurvived(t *testing.T, c *cluster.Cluster, n *cluster.Node, name string, do func(t *testing.T)) {
	t.Helper()
	templates := strings.Fields("neuron-1 neuron-2 cores-3 cores-2-together efa-1")
	count, lives := shortOrDeep(12, 16), shortOrDeep([2]int{1, 2}, [2]int{2, 4})
	l := &claimLoad{t: t, c: c, name: "during-" + name,
		pods: drawClaims(rand.New(rand.NewSource(7)), "during-"+name, n, count, lives, shapesNamed(templates...))}
	// The scheduler retries pods that an event did not bring back after 5 minutes at the latest (flushUnschedulablePodsLeftover).
	o := l.run(7*time.Minute, func() { do(t) })
	verdict := l.expectKept(o)
	figure(t, "claims: %d pods with %s in the middle: all ended after %v, %d pairs on one piece of silicon", count, name,
		o.took.Round(100*time.Millisecond), verdict.Pairs)
}

func killDriver(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	if err := syscall.Kill(agentProcess(t, n), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, cluster.Patience, "the driver is started again", func() error {
		status := driverPodOn(t, c, n).Status.ContainerStatuses
		if len(status) != 1 || status[0].RestartCount == 0 || status[0].State.Running == nil {
			return fmt.Errorf("%+v", status)
		}
		return nil
	})
}

func awayAPIServer(t *testing.T, c *cluster.Cluster) {
	if err := c.APIServer.End(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	away := time.Now()
	cluster.Eventually(t, cluster.Patience, "it was away for a while", func() error {
		if left := 5*time.Second - time.Since(away); left > 0 {
			return fmt.Errorf("%v to go", left)
		}
		return nil
	})
	if err := errors.Join(c.StartAPIServer(), c.RestartClients()); err != nil {
		t.Fatal(err)
	}
}

// expectNoGapInUpdate: while one instance takes over from the other, the pool is always whole, and no pod waits for longer than before.
func expectNoGapInUpdate(t *testing.T, c *cluster.Cluster, n *cluster.Node, pods *holders) {
	before := driverPodOn(t, c, n)
	image := before.Spec.Containers[0].Image
	n.TagImage(t, image, image+"-next")
	var missing, looks, failed atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				devices, err := n.Offered()
				looks.Add(1)
				if err == nil && len(devices) == 0 {
					missing.Add(1)
				} else if err != nil {
					failed.Add(1) // between two writes of a generation
				}
			}
		}
	}()
	slowest, least := time.Duration(0), shortOrDeep(4, 10)
	c.Kubectl(t, "-n", system, "set", "image", "daemonset/neuron-agent-dra", "neuron-agent="+image+"-next")
	begin, count := time.Now(), 0
	for updated := false; !updated || count < least; count++ {
		started := time.Now()
		expectClaimServed(t, c, n, fmt.Sprintf("in-update-%d", count))
		slowest = max(slowest, time.Since(started))
		all, err := c.Pods(system, draPod)
		if err != nil {
			t.Fatal(err)
		}
		updated = len(all) == 1 && all[0].UID != before.UID && isReady(&all[0])
		if time.Since(begin) > 2*cluster.Patience {
			t.Fatalf("the update is not over: %d pods", len(all))
		}
	}
	close(stop)
	<-done
	figure(t, "claims: rolling update: %d of %d looks without a pool (%d at an incomplete one), slowest of %d pods %v", missing.Load(),
		looks.Load(), failed.Load(), count, slowest.Round(time.Millisecond))
	if missing.Load() > 0 {
		t.Error("there was a gap")
	}
	events, err := c.Client.CoreV1().Events("default").List(context.Background(), meta.ListOptions{FieldSelector: "reason=FailedPrepareDynamicResources"})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if strings.HasPrefix(event.InvolvedObject.Name, "in-update-") {
			t.Errorf("a pod was held up: %s", event.Message)
		}
	}
	pods.expectUnnoticed(t)
}
