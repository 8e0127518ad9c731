package scenarios

import (
	"context"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

// queue is many pods at once for one node, each for itself: what is refused stays refused.
type queue struct {
	name  string
	node  *cluster.Node
	asks  []cluster.Ask // drawn from
	count int
	lives [2]int // seconds, drawn from first to last

	mayBeRefused int
}

// outcome is what became of a queue.
type outcome struct {
	took    time.Duration // first pod made to the last one ended
	refused []*core.Pod   // by the kubelet, after the scheduler had placed them
	ended   []*core.Pod   // successfully
}

// start makes all pods of the queue.
func (q *queue) start(t *testing.T, c *cluster.Cluster, random *rand.Rand) {
	t.Helper()
	for i := range q.count {
		ask := q.asks[random.Intn(len(q.asks))]
		w := cluster.One(fmt.Sprintf("%s-%s-%d", q.name, q.node.Name, i), ask)
		w.Node = q.node.Name
		w.Life = strconv.Itoa(q.lives[0] + random.Intn(q.lives[1]-q.lives[0]+1))
		template := w.PodTemplate()
		pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: w.Name, Labels: map[string]string{"queue": q.name}}, Spec: template.Spec}
		if _, err := c.Client.CoreV1().Pods("default").Create(context.Background(), pod, meta.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// runQueues runs queues of one name on several nodes at the same time and returns what became of each.
func runQueues(t *testing.T, c *cluster.Cluster, limit time.Duration, queues ...*queue) []outcome {
	t.Helper()
	selector := "queue=" + queues[0].name
	t.Cleanup(func() {
		c.Kubectl(t, "delete", "pods", "--selector", selector, "--wait=false", "--grace-period=1")
		c.ExpectNoPods(t, "default", selector)
	})
	begin, outcomes, open := time.Now(), make([]outcome, len(queues)), 0
	for _, q := range queues {
		q.start(t, c, rand.New(rand.NewSource(60)))
		open += q.count
	}
	over := map[string]bool{}
	c.Follow(t, limit, "default", selector, func(pod *core.Pod) bool {
		if phase := pod.Status.Phase; over[pod.Name] || phase != core.PodFailed && phase != core.PodSucceeded {
			return false
		}
		over[pod.Name] = true
		for i, q := range queues {
			if pod.Spec.NodeName != q.node.Name {
				continue
			}
			outcomes[i].took = time.Since(begin)
			if pod.Status.Phase == core.PodSucceeded {
				outcomes[i].ended = append(outcomes[i].ended, pod)
			} else {
				outcomes[i].refused = append(outcomes[i].refused, pod)
			}
		}
		return len(over) == open
	})
	return outcomes
}

// expectRefusals: a pod may fail for one reason only, and its status and event say what to do about it. It returns in words
// who refused how many.
func expectRefusals(t *testing.T, c *cluster.Cluster, refused []*core.Pod) string {
	t.Helper()
	ours := 0
	for _, pod := range refused {
		if pod.Status.Reason != "UnexpectedAdmissionError" {
			t.Errorf("%s failed with %s: %s", pod.Name, pod.Status.Reason, pod.Status.Message)
			continue
		}
		if strings.Contains(pod.Status.Message, "requested number of devices unavailable") {
			continue // the kubelet's own words: it knew already that the units are withheld, the scheduler did not
		}
		ours++
		if !strings.Contains(pod.Status.Message, "is held by") || !strings.Contains(pod.Status.Message, "ends; have a Job") {
			t.Errorf("%s: the refusal does not say who holds it and what to do: %s", pod.Name, pod.Status.Message)
		}
		expectEvent(t, c, pod)
	}
	return fmt.Sprintf("%d by the agent, %d by the kubelet", ours, len(refused)-ours)
}

// expectEvent: `kubectl describe pod` shows what the status says.
func expectEvent(t *testing.T, c *cluster.Cluster, pod *core.Pod) {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, pod.Name+" has an event", func() error {
		events, err := c.Client.CoreV1().Events(pod.Namespace).List(context.Background(),
			meta.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID) + ",reason=UnexpectedAdmissionError"})
		if err == nil && (len(events.Items) == 0 || !strings.Contains(events.Items[0].Message, "have a Job")) {
			err = fmt.Errorf("events: %v", events.Items)
		}
		return err
	})
}

func figure(t *testing.T, format string, arguments ...any) {
	t.Helper()
	t.Logf("FIGURE "+format, arguments...)
}
