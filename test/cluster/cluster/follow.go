package cluster

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"neuron-agent.test/suite"
)

// watchSpan bounds one watch. A stream that outlives its API server may stay silent without an error, so pods are listed again after it.
const watchSpan = 10 * time.Second

// Watched hands every object of a watch to see until ctx ends, the present ones first and again at every span. begin starts a
// watch that lives as long as its context.
func Watched(ctx context.Context, begin func(context.Context) (watch.Interface, error), see func(watch.Event)) {
	watched(ctx, watchSpan, begin, see)
}

func watched(ctx context.Context, span time.Duration, begin func(context.Context) (watch.Interface, error), see func(watch.Event)) {
	const pause = 50 * time.Millisecond // while the API server is away
	for ctx.Err() == nil {
		if watchOnce(ctx, span, begin, see) {
			continue
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// watchOnce follows one stream; false when it could not be begun, or ended by itself.
func watchOnce(ctx context.Context, span time.Duration, begin func(context.Context) (watch.Interface, error), see func(watch.Event)) bool {
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	changes, err := begin(ctx)
	if err != nil {
		return false
	}
	defer changes.Stop()
	for {
		select {
		case event, open := <-changes.ResultChan():
			if !open {
				return false
			}
			see(event)
		case <-ctx.Done():
			return true
		}
	}
}

// podSource is the part of the API's client that follows pods.
type podSource interface {
	List(ctx context.Context, options meta.ListOptions) (*core.PodList, error)
	Watch(ctx context.Context, options meta.ListOptions) (watch.Interface, error)
}

// podFollower reads the state of the selected pods until see returns true.
type podFollower struct {
	source   podSource
	selector string
	span     time.Duration // of one watch
	see      func(*core.Pod) (enough bool)
	last     map[string]string // name to the last state that was read, for the message at the limit
}

// Follow hands every state of the selected pods to see, in the order of a pod's changes; the present states come first, deleted
// pods last, in their final state. A state may come more than once. Follow returns once see returns true, and fails the test at
// the limit with the last state of each pod. API servers may come and go meanwhile.
func (c *Cluster) Follow(t testing.TB, limit time.Duration, namespace, selector string, see func(*core.Pod) (enough bool)) {
	t.Helper()
	f := &podFollower{source: c.Client.CoreV1().Pods(namespace), selector: selector, span: watchSpan, see: see}
	if err := f.run(limit); err != nil {
		t.Fatal(err)
	}
}

func (f *podFollower) run(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	f.last = map[string]string{}
	return suite.Wait(limit, "pods of "+f.selector, func() error {
		enough, err := f.round(ctx)
		if enough {
			return nil
		}
		return fmt.Errorf("last states: %s (%w)", f.states(), err)
	})
}

// round lists the pods, then watches them for at most one span.
func (f *podFollower) round(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, f.span)
	defer cancel()
	list, err := f.source.List(ctx, meta.ListOptions{LabelSelector: f.selector})
	if err != nil {
		return false, err
	}
	for i := range list.Items {
		if f.note(&list.Items[i]) {
			return true, nil
		}
	}
	changes, err := f.source.Watch(ctx, meta.ListOptions{LabelSelector: f.selector, ResourceVersion: list.ResourceVersion})
	if err != nil {
		return false, err
	}
	defer changes.Stop()
	for {
		select {
		case event, open := <-changes.ResultChan():
			if !open {
				return false, fmt.Errorf("the watch ended")
			}
			if pod, is := event.Object.(*core.Pod); is && f.note(pod) {
				return true, nil
			}
		case <-ctx.Done():
			return false, fmt.Errorf("no change within %v", f.span)
		}
	}
}

func (f *podFollower) note(pod *core.Pod) bool {
	state := string(pod.Status.Phase)
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Waiting != nil {
			state += "/" + status.State.Waiting.Reason
		}
	}
	f.last[pod.Name] = state
	return f.see(pod)
}

// states lists the pods that have not ended by state, and counts the others.
func (f *podFollower) states() string {
	var open []string
	for name, state := range f.last {
		if state != string(core.PodSucceeded) && state != string(core.PodFailed) {
			open = append(open, name+" "+state)
		}
	}
	sort.Strings(open)
	return fmt.Sprintf("%d of %d pods have ended; %s", len(f.last)-len(open), len(f.last), strings.Join(open, ", "))
}
