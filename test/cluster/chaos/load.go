package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/cluster/judge"
)

const namespace = "chaos"

// load is the stream of pods.
type load struct {
	r           *recorder
	c           *cluster.Cluster
	random      *rand.Rand
	efa         bool // some node has interfaces
	outstanding int  // most pods that have not ended

	mu      sync.Mutex
	number  int
	waiting map[string]bool // workloads made and not yet ended
	alive   []string        // pods that run, for whoever deletes one
}

// pace is the mean time between two pods.
const pace = 700 * time.Millisecond

// arrive makes pods until the context ends.
func (l *load) arrive(ctx context.Context) {
	for ctx.Err() == nil {
		l.mu.Lock()
		room := len(l.waiting) < l.outstanding
		l.mu.Unlock()
		if room {
			l.create(ctx)
		}
		select {
		case <-time.After(pace/2 + time.Duration(l.random.Int64N(int64(pace)))):
		case <-ctx.Done():
		}
	}
}

// draw is a pod of one of the kinds that users write.
func (l *load) draw(name string) (cluster.Workload, string) {
	number := strconv.Itoa
	devices := []int{1, 1, 1, 2, 2, 4}[l.random.IntN(6)]
	cores := number(1 + l.random.IntN(6))
	one := func(ask cluster.Ask) cluster.Workload { return cluster.One(name, ask) }
	kind := l.random.IntN(10)
	if !l.efa && kind < 3 {
		kind += 3
	}
	switch kind {
	case 0:
		return one(cluster.Ask{cluster.Neuron: number(devices), cluster.EFA: number(max(1, devices/2))}), "devices and interfaces"
	case 1:
		return one(cluster.Ask{cluster.NeuronCore: cores, cluster.EFA: "1"}), "cores and an interface"
	case 2:
		return one(cluster.Ask{cluster.EFA: number(1 + l.random.IntN(2))}), "interfaces"
	case 3, 4:
		return one(cluster.Ask{cluster.Neuron: number(devices)}), "devices"
	case 5, 6:
		return one(cluster.Ask{cluster.NeuronCore: cores}), "cores"
	case 7:
		return one(cluster.Ask{cluster.Neuron: "1", cluster.NeuronCore: "2"}), "both names"
	case 8:
		w := cluster.Workload{Name: name, Containers: []cluster.Container{{Name: "first", Ask: cluster.Ask{cluster.NeuronCore: cores}},
			{Name: "main", Ask: cluster.Ask{cluster.NeuronCore: cores}}}}
		return w.WithInit(1), "with an init container"
	default:
		return cluster.Workload{Name: name, Containers: []cluster.Container{{Name: "devices", Ask: cluster.Ask{cluster.Neuron: "1"}},
			{Name: "cores", Ask: cluster.Ask{cluster.NeuronCore: cores}}, {Name: "plain"}}}, "several containers"
	}
}

func (l *load) create(ctx context.Context) {
	l.number++
	isJob := l.random.IntN(3) == 0
	name := fmt.Sprintf("p%d", l.number)
	if isJob {
		name += "-job"
	}
	w, shape := l.draw(name)
	w.Namespace = namespace
	w.Life = strconv.Itoa(1 + l.random.IntN(8))
	if l.random.IntN(4) == 0 {
		w.Life = strconv.Itoa(10 + l.random.IntN(25))
	}
	for _, container := range w.Containers {
		l.r.asked(name, container.Name, container.Ask)
	}
	var err error
	template := w.PodTemplate()
	if isJob {
		never := int32(0)
		_, err = l.c.Client.BatchV1().Jobs(namespace).Create(ctx, &batch.Job{ObjectMeta: meta.ObjectMeta{Name: name},
			Spec: batch.JobSpec{BackoffLimit: &never, Template: template}}, meta.CreateOptions{})
	} else {
		_, err = l.c.Client.CoreV1().Pods(namespace).Create(ctx, &core.Pod{
			ObjectMeta: meta.ObjectMeta{Name: name, Labels: template.Labels}, Spec: template.Spec}, meta.CreateOptions{})
	}
	if err != nil {
		l.r.count("pods that the API did not take")
		return
	}
	l.r.count("pods")
	l.r.count("shape: " + shape)
	l.mu.Lock()
	l.waiting[name] = true
	l.mu.Unlock()
}

// follow notes what the API says of the pods, and removes those that have ended.
func (l *load) follow(ctx context.Context) {
	ticks(ctx, 400*time.Millisecond, func() {
		short, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		list, err := l.c.Client.CoreV1().Pods(namespace).List(short, meta.ListOptions{})
		if err == nil {
			l.listed(short, list.Items)
		}
	})
}

func (l *load) listed(ctx context.Context, pods []core.Pod) {
	now := time.Now()
	present, alive := map[string]bool{}, []string{}
	var remove []core.Pod
	l.r.mu.Lock()
	for _, pod := range pods {
		uid := string(pod.UID)
		present[uid] = true
		known := l.r.pods[uid]
		if known == nil {
			known = &judge.Pod{Name: pod.Name, UID: uid, Created: pod.CreationTimestamp.Time.Add(-time.Second)}
			l.r.pods[uid] = known
			l.r.uids[pod.Name] = uid
		}
		known.Node = pod.Spec.NodeName
		switch pod.Status.Phase {
		case core.PodRunning:
			alive = append(alive, pod.Name)
		case core.PodSucceeded, core.PodFailed:
			if known.Ended.IsZero() {
				known.Ended = now
				l.ended(known, &pod)
			}
			remove = append(remove, pod)
		}
	}
	for uid, known := range l.r.pods {
		if !present[uid] && known.Ended.IsZero() {
			known.Ended = now
			l.r.counts["pods deleted before they ended"]++
		}
	}
	l.r.mu.Unlock()
	l.mu.Lock()
	l.alive = alive
	l.mu.Unlock()
	for _, pod := range remove {
		l.remove(ctx, &pod)
	}
	l.forget(ctx, pods)
}

// ended counts how a pod ended; the recorder is locked.
func (l *load) ended(known *judge.Pod, pod *core.Pod) {
	// One that is evicted as it starts ends well after some milliseconds.
	known.Succeeded = pod.Status.Phase == core.PodSucceeded && pod.DeletionTimestamp == nil
	if pod.Status.Reason == "" {
		l.r.counts["pods "+string(pod.Status.Phase)]++
		return
	}
	known.Refused, known.Message = pod.Status.Reason, pod.Status.Message
	l.r.counts["refused: "+shorten(pod.Status.Reason+": "+pod.Status.Message)]++
	l.r.lines = append(l.r.lines, line{time.Now(), fmt.Sprintf("%s on %s failed: %s %s", pod.Name, pod.Spec.NodeName, pod.Status.Reason,
		pod.Status.Message)})
}

var (
	numbers = regexp.MustCompile(`[0-9]+`)
	uids    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}/[a-z]+`)
)

// shorten makes one reason of messages that differ in numbers and names alone.
func shorten(message string) string {
	if at := strings.Index(message, ", which is unexpected"); at >= 0 {
		message = message[:at]
	}
	message = uids.ReplaceAllString(message, "UID")
	for _, common := range []string{"Pod was rejected: ", "Allocate failed due to ", "rpc error: code = "} {
		message = strings.ReplaceAll(message, common, "")
	}
	message = numbers.ReplaceAllString(message, "N")
	return message[:min(len(message), 160)]
}

func (l *load) remove(ctx context.Context, pod *core.Pod) {
	if owner := meta.GetControllerOf(pod); owner != nil {
		background := meta.DeletePropagationBackground
		_ = l.c.Client.BatchV1().Jobs(namespace).Delete(ctx, owner.Name, meta.DeleteOptions{PropagationPolicy: &background})
		return
	}
	_ = l.c.Client.CoreV1().Pods(namespace).Delete(ctx, pod.Name, meta.DeleteOptions{})
}

// forget lets go of workloads that no pod stands for any more; of a Job the API is asked.
func (l *load) forget(ctx context.Context, pods []core.Pod) {
	present := map[string]bool{}
	for _, pod := range pods {
		present[workloadOf(pod.Name)] = true
	}
	l.mu.Lock()
	var gone []string
	for name := range l.waiting {
		if !present[name] {
			gone = append(gone, name)
		}
	}
	l.mu.Unlock()
	for _, name := range gone {
		if strings.HasSuffix(name, "-job") {
			if _, err := l.c.Client.BatchV1().Jobs(namespace).Get(ctx, name, meta.GetOptions{}); !apierrors.IsNotFound(err) {
				background := meta.DeletePropagationBackground
				if err == nil && present[name] {
					_ = l.c.Client.BatchV1().Jobs(namespace).Delete(ctx, name, meta.DeleteOptions{PropagationPolicy: &background})
				}
				continue
			}
		} else if _, err := l.c.Client.CoreV1().Pods(namespace).Get(ctx, name, meta.GetOptions{}); !apierrors.IsNotFound(err) {
			continue
		}
		l.mu.Lock()
		delete(l.waiting, name)
		l.mu.Unlock()
	}
}

// kill deletes a running pod at once, as kubectl delete --grace-period=0 --force does.
func (l *load) kill(pick int) string {
	l.mu.Lock()
	alive := slices.Clone(l.alive)
	l.mu.Unlock()
	if len(alive) == 0 {
		return ""
	}
	slices.Sort(alive)
	name, zero := alive[pick%len(alive)], int64(0)
	l.r.mu.Lock()
	if pod := l.r.pods[l.r.uids[name]]; pod != nil {
		pod.Forced = time.Now()
	}
	l.r.mu.Unlock()
	err := l.c.Client.CoreV1().Pods(namespace).Delete(context.Background(), name, meta.DeleteOptions{GracePeriodSeconds: &zero})
	if err != nil {
		return ""
	}
	return name
}

// left counts workloads that have not ended.
func (l *load) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// drop deletes whatever still stands, for a calm.
func (l *load) drop(ctx context.Context) {
	background := meta.DeletePropagationBackground
	_ = l.c.Client.BatchV1().Jobs(namespace).DeleteCollection(ctx, meta.DeleteOptions{PropagationPolicy: &background}, meta.ListOptions{})
	_ = l.c.Client.CoreV1().Pods(namespace).DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{})
}
