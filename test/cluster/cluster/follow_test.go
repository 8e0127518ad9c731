package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// fakePods is an API whose lists come from a script; the last entry repeats.
type fakePods struct {
	lists   []*core.PodList // nil: the request fails
	watches []watch.Interface
}

func (p *fakePods) List(context.Context, meta.ListOptions) (*core.PodList, error) {
	list := p.lists[0]
	if len(p.lists) > 1 {
		p.lists = p.lists[1:]
	}
	if list == nil {
		return nil, errors.New("connection refused")
	}
	return list, nil
}

func (p *fakePods) Watch(context.Context, meta.ListOptions) (watch.Interface, error) {
	if len(p.watches) == 0 {
		return watch.NewFake(), nil // never sends anything
	}
	next := p.watches[0]
	p.watches = p.watches[1:]
	return next, nil
}

func podsIn(phase core.PodPhase, names ...string) *core.PodList {
	list := &core.PodList{}
	for _, name := range names {
		list.Items = append(list.Items, core.Pod{ObjectMeta: meta.ObjectMeta{Name: name}, Status: core.PodStatus{Phase: phase}})
	}
	return list
}

func follower(source podSource) *podFollower {
	return &podFollower{source: source, selector: "queue=q", span: 20 * time.Millisecond,
		see: func(pod *core.Pod) bool { return pod.Status.Phase == core.PodSucceeded }}
}

func TestFollowListsAgainAfterASilentWatch(t *testing.T) {
	source := &fakePods{lists: []*core.PodList{podsIn(core.PodRunning, "a"), podsIn(core.PodSucceeded, "a")}}
	if err := follower(source).run(time.Minute); err != nil {
		t.Error(err)
	}
}

func TestFollowSurvivesAnAPIServerThatIsAway(t *testing.T) {
	ended := watch.NewFake()
	ended.Stop()
	source := &fakePods{watches: []watch.Interface{ended},
		lists: []*core.PodList{podsIn(core.PodRunning, "a"), nil, nil, podsIn(core.PodSucceeded, "a")}}
	if err := follower(source).run(time.Minute); err != nil {
		t.Error(err)
	}
}

// A stream that outlives its API server stays silent; one that ends says no more either.
func TestWatchedBeginsAgainAfterEveryStream(t *testing.T) {
	ended, changes := watch.NewFake(), watch.NewFakeWithChanSize(1, false)
	ended.Stop()
	changes.Modify(&podsIn(core.PodSucceeded, "a").Items[0])
	streams := []watch.Interface{nil, watch.NewFake(), ended, changes}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	seen := 0
	watched(ctx, 20*time.Millisecond, func(context.Context) (watch.Interface, error) {
		if len(streams) == 0 {
			return watch.NewFake(), nil
		}
		next := streams[0]
		streams = streams[1:]
		if next == nil {
			return nil, errors.New("connection refused")
		}
		return next, nil
	}, func(watch.Event) {
		seen++
		cancel()
	})
	if seen != 1 {
		t.Errorf("%d changes of the last stream were seen, not 1", seen)
	}
}

func TestFollowSeesChangesOfTheWatch(t *testing.T) {
	changes := watch.NewFakeWithChanSize(1, false)
	changes.Modify(&podsIn(core.PodSucceeded, "a").Items[0])
	source := &fakePods{watches: []watch.Interface{changes}, lists: []*core.PodList{podsIn(core.PodRunning, "a")}}
	if err := follower(source).run(time.Minute); err != nil {
		t.Error(err)
	}
}

func TestFollowNamesThePodsThatAreMissing(t *testing.T) {
	source := &fakePods{lists: []*core.PodList{podsIn(core.PodPending, "b", "a")}}
	err := follower(source).run(50 * time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "0 of 2 pods have ended; a Pending, b Pending") {
		t.Errorf("the error does not name the pods and their states: %v", err)
	}
}
