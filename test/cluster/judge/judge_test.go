package judge

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var bounds = Bounds{Serve: 15 * time.Second, Hardware: 12 * time.Second, Release: 15 * time.Second, Withhold: 5 * time.Second}

func at(second float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(second * float64(time.Second)))
}

func span(begin, end float64) Span { return Span{at(begin), at(end)} }

// small is a node with two devices of two cores and one interface, on which everything is offered for 200 s.
func small() *History {
	return &History{
		Machines: map[string]Machine{"n": {Devices: 2, CoresPerDevice: 2, Verbs: map[string]string{"rdmap16s25": "uverbs0"}}},
		Pods:     map[string]*Pod{},
		Looks:    []Look{offering(0, 200, "0 1", "0 1 2 3")},
	}
}

func offering(begin, end float64, devices, cores string) Look {
	return Look{Node: "n", Span: span(begin, end), Offered: map[string][]string{
		Neuron: strings.Fields(devices), NeuronCore: strings.Fields(cores), EFA: {"rdmap16s25"}}}
}

// container is one that has exactly what it asked for through one name.
func container(pod, resource string, begin, end float64, ids ...string) *Container {
	c := &Container{Node: "n", Pod: pod, UID: "uid-" + pod, Name: "main", Span: span(begin, end), Ask: map[string]int{resource: len(ids)},
		Held: map[string][]string{resource: ids}, Reported: true, Set: resource != EFA}
	switch {
	case resource == EFA:
		c.Open = []string{"/dev/infiniband/uverbs0"}
	case resource == Neuron && len(ids) == 2:
		c.Open, c.Visible = []string{"/dev/neuron0", "/dev/neuron1"}, "0-3"
	case resource == Neuron:
		c.Open, c.Visible = []string{"/dev/neuron" + ids[0]}, "0-1"
	default: // one core
		c.Open = []string{"/dev/neuron" + map[string]string{"0": "0", "1": "0", "2": "1", "3": "1"}[ids[0]]}
		c.Visible = map[string]string{"0": "0", "1": "1", "2": "0", "3": "1"}[ids[0]]
	}
	return c
}

func expect(t *testing.T, h *History, parts ...string) *Verdict {
	t.Helper()
	v := Judge(h, bounds)
	for i, violation := range v.Violations {
		if i >= len(parts) || !strings.Contains(violation.What, parts[i]) {
			t.Errorf("violation %d: %s", i, violation.What)
		}
	}
	if len(v.Violations) < len(parts) {
		t.Errorf("%d violations, want %q", len(v.Violations), parts)
	}
	return v
}

// crossed has a pod on device 0 from 10 s to 20 s, another on its core 1 from some moment on, and the lists that go with it.
func crossed(begin float64) *History {
	h := small()
	h.Looks = []Look{offering(0, 10, "0 1", "0 1 2 3"), offering(10.1, begin, "0 1", "2 3"), offering(begin+0.1, 30, "1", "2 3")}
	held(h, container("a", Neuron, 10, 20, "0"))
	held(h, container("b", NeuronCore, begin, 30, "1"))
	return h
}

func held(h *History, c *Container) {
	h.Containers = append(h.Containers, c)
	h.Pods[c.UID] = &Pod{Name: c.Pod, UID: c.UID, Node: "n", Created: c.Begin, Ended: c.End}
	h.Holds = append(h.Holds, Hold{Node: "n", UID: c.UID, Container: c.Name, Span: c.Span, Units: c.Held})
}

func TestTheRecordIsThatOfTheTimeWhenTheContainerRan(t *testing.T) {
	h := small()
	c := container("a", Neuron, 10, 20, "0")
	held(h, c)
	h.Holds = append(h.Holds, Hold{Node: "n", UID: c.UID, Container: c.Name, Span: span(60, 90), Units: map[string][]string{Neuron: {"1"}}})
	if record := h.RecordOf(c); len(record[Neuron]) != 1 || record[Neuron][0] != "0" {
		t.Errorf("%v is of the admission after a reboot", record)
	}
	if record := h.RecordOf(container("b", Neuron, 10, 20, "0")); record != nil {
		t.Errorf("%v, and nothing was recorded", record)
	}
}

func TestQuietHistory(t *testing.T) {
	h := small()
	held(h, container("a", Neuron, 10, 20, "0"))
	held(h, container("b", Neuron, 20, 30, "0"))
	held(h, container("c", EFA, 5, 30, "rdmap16s25"))
	h.Looks = []Look{offering(0, 9, "0 1", "0 1 2 3"), offering(10, 31, "0 1", "2 3"), offering(32, 200, "0 1", "0 1 2 3")}
	h.Lives = []Life{{Node: "n", Pid: 7, Span: span(0, 200), Last: true}}
	v := expect(t, h)
	if v.Pairs != 1 || v.Exact != 3 || len(v.Back["release"]) != 2 || v.Back["release"][0] != 2*time.Second {
		t.Errorf("%d pairs, %d exact, back %v", v.Pairs, v.Exact, v.Back)
	}
}

func TestCoreInTwoContainersAcrossNames(t *testing.T) {
	h := crossed(19.9)
	expect(t, h, "core 1 in two running containers for 100ms")
}

func TestInterfaceInTwoContainersIsTheKubelets(t *testing.T) {
	h := small()
	held(h, container("a", EFA, 10, 20, "rdmap16s25"))
	held(h, container("b", EFA, 15, 30, "rdmap16s25"))
	if v := expect(t, h); len(v.Kubelet[GaveTwice]) != 1 {
		t.Errorf("%v", v.Kubelet)
	}
	h.Containers[1].Held = nil // nobody saw that the kubelet gave the same id
	expect(t, h, "efa rdmap16s25 in two running containers")
}

func TestFaultsOfTheKubeletAreCountedApart(t *testing.T) {
	for kind, change := range map[string]func(*Pod){
		ReleasedForced: func(p *Pod) { p.Forced = at(15) },
		RefusedRunning: func(p *Pod) { p.Refused = "UnexpectedAdmissionError" },
	} {
		h := crossed(19)
		change(h.Pods["uid-a"])
		if v := expect(t, h); len(v.Kubelet[kind]) != 1 {
			t.Errorf("%s: %v", kind, v.Kubelet)
		}
	}
	h := crossed(19) // deleted at once, but only after the other had begun
	h.Pods["uid-a"].Forced = at(19.5)
	expect(t, h, "core 1 in two running containers")
}

func TestContainerWithoutExactlyWhatItAskedFor(t *testing.T) {
	for want, change := range map[string]func(*Container){
		"asked for 1 aws.amazon.com/neuron and holds []": func(c *Container) { c.Held = map[string][]string{} },
		"asked for map[aws.amazon.com/neuron:1]":         func(c *Container) { c.Held, c.Visible = nil, "0" },
		"sees [core 2 core 3]":                           func(c *Container) { c.Open = []string{"/dev/neuron1"} },
		"sees [core 1]":                                  func(c *Container) { c.Visible = "1" },
		"is set: false":                                  func(c *Container) { c.Set = false },
		`="0-2" over devices [0]`:                        func(c *Container) { c.Visible = "0-2" },
		`="two"`:                                         func(c *Container) { c.Visible = "two" },
		"unknown device node /dev/neuron9":               func(c *Container) { c.Open = []string{"/dev/neuron9"} },
		"unknown verbs node":                             func(c *Container) { c.Open = append(c.Open, "/dev/infiniband/uverbs7") },
		"do not open":                                    func(c *Container) { c.Refused = []string{"/dev/neuron1"} },
		"without a report":                               func(c *Container) { c.Reported = false },
	} {
		h := small()
		c := container("a", Neuron, 10, 50, "0")
		change(c)
		h.Containers = []*Container{c}
		v := Judge(h, bounds)
		if !slices.ContainsFunc(v.Violations, func(v Violation) bool { return strings.Contains(v.What, want) }) {
			t.Errorf("%q: %v", want, v.Violations)
		}
	}
}

func TestBrokenDeviceDoesNotOpen(t *testing.T) {
	h := small()
	c := container("a", EFA, 10, 12, "rdmap16s25")
	c.Refused = []string{"/dev/neuron1"}
	h.Containers = []*Container{c}
	h.Faults = []Fault{{Kind: "device-vanishes", Node: "n", Span: span(9, 15), Targets: []string{"neuron1"}}}
	expect(t, h)
}

// A device breaks for 30 s: how long it may be offered, and when it must be back.
func TestBrokenDeviceIsOfferedOnlySoLong(t *testing.T) {
	fault := Fault{Kind: "device-vanishes", Node: "n", Span: span(50, 80), Targets: []string{"neuron1"}}
	for _, c := range []struct {
		gone, back float64
		want       string
	}{
		{55, 86, ""}, {63, 86, "offered though device-vanishes"}, {55, 108, "sound and free, and not offered for 1"},
	} {
		h := small()
		h.Faults = []Fault{fault}
		h.Looks = []Look{offering(0, c.gone, "0 1", "0 1 2 3"), offering(c.gone+0.2, c.back-0.2, "0", "0 1"), offering(c.back, 200, "0 1", "0 1 2 3")}
		var parts []string
		if c.want != "" {
			parts = []string{"aws.amazon.com/neuron 1, aws.amazon.com/neuroncore 2, aws.amazon.com/neuroncore 3 " + c.want}
		}
		v := expect(t, h, parts...)
		if back := v.Back["device-vanishes"]; len(back) != 3 || back[0] != at(c.back).Sub(at(80)) {
			t.Errorf("back %v", back)
		}
	}
}

// A node that cannot serve, and a kubelet that nobody can ask, offer nothing; the API server's absence is no excuse.
func TestNothingOfferedNeedsAReason(t *testing.T) {
	for _, c := range []struct {
		fault Fault
		count int
	}{
		{Fault{Kind: "agent-kill", Node: "n", Span: span(50, 60), Serving: true}, 0},
		{Fault{Kind: "rolling-restart", Span: span(50, 60), Serving: true}, 0},
		{Fault{Kind: "agent-kill", Node: "other", Span: span(50, 60), Serving: true}, 1},
		{Fault{Kind: "agent-kill", Node: "n", Span: span(20, 30), Serving: true}, 1},
		{Fault{Kind: "api-away", Span: span(50, 74)}, 1},
	} {
		h := small()
		h.Faults = []Fault{c.fault}
		h.Looks = []Look{offering(0, 50, "0 1", "0 1 2 3"), {Node: "n", Span: span(50.2, 73)}, offering(73.2, 200, "0 1", "0 1 2 3")}
		if v := Judge(h, bounds); len(v.Violations) != c.count {
			t.Errorf("%v: %v", c.fault, v.Violations)
		}
	}
}

func TestSiliconOfARunningContainerIsNotOffered(t *testing.T) {
	h := small()
	held(h, container("a", Neuron, 10, 40, "0"))
	h.Looks = []Look{offering(0, 41, "0 1", "1 2 3")}
	expect(t, h, "neuroncore 1 is offered while n/a.main runs on it")
	h.Pods["uid-a"].Forced = at(38) // offered from its beginning on
	expect(t, h, "neuroncore 1 is offered while n/a.main runs on it")
	h.Looks = []Look{offering(0, 38.5, "0 1", "2 3"), offering(39, 41, "0 1", "1 2 3")}
	expect(t, h)
}

func TestSiliconOfAnEndedPodComesBack(t *testing.T) {
	h := small()
	held(h, container("a", Neuron, 10, 40, "0"))
	h.Looks = []Look{offering(0, 10, "0 1", "0 1 2 3"), offering(10, 90, "0 1", "2 3"), offering(91, 200, "0 1", "0 1 2 3")}
	expect(t, h, "neuroncore 0, aws.amazon.com/neuroncore 1 sound and free")
}

func TestAgentThatEndsByItself(t *testing.T) {
	h := small()
	h.Lives = []Life{{Node: "n", Pid: 7, Span: span(0, 50)}, {Node: "n", Pid: 8, Span: span(51, 100)}}
	h.Faults = []Fault{{Kind: "agent-kill", Node: "n", Span: span(50, 51), Serving: true}}
	expect(t, h, "the agent (pid 8) ended")
	h.Lives[1].Pod = "surge"
	h.Deleted = map[string]time.Time{"surge": at(120), "other": at(99)}
	expect(t, h, "the agent (pid 8) ended")
	h.Deleted["surge"] = at(99)
	expect(t, h)
}

// The controller of the DaemonSet makes the next pod when it gets to it.
func TestNothingIsOfferedWhileTheAgentsPodIsMissing(t *testing.T) {
	h := small()
	h.Looks = []Look{offering(0, 50, "0 1", "0 1 2 3"), offering(50, 90, "", ""), offering(91, 200, "0 1", "0 1 2 3")}
	h.Lives = []Life{{Node: "n", Pid: 7, Pod: "old", Span: span(0, 50)}, {Node: "n", Pid: 8, Span: span(89, 200), Last: true}}
	h.Deleted = map[string]time.Time{"old": at(90)}
	h.Faults = []Fault{{Kind: "agent-term", Node: "n", Span: span(50, 51), Serving: true}}
	expect(t, h, "sound and free, and not offered")
	h.Deleted = map[string]time.Time{"old": at(55)} // by hand, while the kubelet waited to start it again
	expect(t, h)
	h.Faults = nil
	h.Deleted = map[string]time.Time{"old": at(48)}
	expect(t, h)
	h.Lives[1].Span = span(55, 200)
	expect(t, h, "sound and free, and not offered")
	h.Lives[1].Span = span(45, 200) // beside the old one
	expect(t, h, "sound and free, and not offered")
}

func TestLeaks(t *testing.T) {
	calm := func() Footprint {
		return Footprint{Node: "n", At: at(1), Fds: 30, Threads: 12, AnonymousBytes: 6 << 20, Files: []string{"kubelet.sock"}, NodeFds: 200,
			Processes: 4, Mounts: 40, ResidentAgents: 1, Allocatable: "all", Whole: "all", Settled: time.Second, SettleBound: time.Minute}
	}
	for want, change := range map[string]func(*Footprint){
		"":                   func(*Footprint) {},
		"descriptors":        func(f *Footprint) { f.Fds = 60 },
		"threads":            func(f *Footprint) { f.Threads = 40 },
		"memory":             func(f *Footprint) { f.AnonymousBytes = 60 << 20 },
		"files in":           func(f *Footprint) { f.Files = append(f.Files, "left.sock") },
		"kubelet and":        func(f *Footprint) { f.NodeFds = 900 },
		"mounts":             func(f *Footprint) { f.Mounts = 80 },
		"2 agents":           func(f *Footprint) { f.ResidentAgents = 2 },
		"allocatable is few": func(f *Footprint) { f.Allocatable = "few" },
		"only after":         func(f *Footprint) { f.Settled = time.Hour },
	} {
		h := small()
		later := calm()
		change(&later)
		h.Footprints = []Footprint{calm(), later}
		if want == "" {
			expect(t, h)
		} else {
			expect(t, h, want)
		}
	}
}

func TestHistoryWithoutLooks(t *testing.T) {
	h := small()
	h.Looks = nil
	expect(t, h, "nobody looked")
}

func TestPodThatWasNotSeenRunning(t *testing.T) {
	h := small()
	h.Pods["uid-a"] = &Pod{Name: "a", UID: "uid-a", Node: "n", Ended: at(10), Succeeded: true}
	expect(t, h, "a succeeded, and nobody saw it run")
}

// What is the kubelet's fault for a device plugin is the driver's for claims.
func TestClaimsHaveNoExcuse(t *testing.T) {
	h := small()
	h.Looks = nil // of what a kubelet offers nobody speaks
	held(h, container("a", Neuron, 10, 20, "0"))
	held(h, container("b", NeuronCore, 20, 30, "1"))
	if v := JudgeClaims(h); len(v.Violations) != 0 || v.Exact != 2 || v.Pairs != 1 {
		t.Errorf("one after the other: %+v", v)
	}
	held(h, container("c", Neuron, 15, 25, "0"))
	h.Pods["uid-a"].Forced = at(14)
	v := JudgeClaims(h)
	if len(v.Violations) == 0 || !strings.Contains(v.Violations[0].What, "core 0 in two running containers") &&
		!strings.Contains(v.Violations[0].What, "core 1 in two running containers") || len(v.Kubelet) != 0 {
		t.Errorf("one id twice, by force: %+v", v)
	}
}
