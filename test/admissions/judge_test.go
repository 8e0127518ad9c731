package main

import (
	"strings"
	"testing"
	"time"
)

// bench is a judge over a trn1.32xlarge without any process, and what it complained of.
type bench struct {
	*judge
	complaints []string
}

func newBench() *bench {
	b := &bench{}
	h := &hardware{machine: machines[0], root: "/host", verbs: map[string]string{"rdmap16s25": "uverbs0", "rdmap32s25": "uverbs1"},
		broken: map[int]bool{}, brokenEFA: map[string]bool{}}
	b.judge = &judge{hardware: h, tally: newTally(), say: func(string, ...any) {},
		violate: func(what string, _ ...string) { b.complaints = append(b.complaints, what) }}
	return b
}

// start lets a container begin with ids as the kubelet has them, and with what the agent would answer for them.
func (b *bench) start(pod string, held map[string][]string, visible string, nodes ...string) *stay {
	s := &stay{pod: pod, uid: "uid-" + pod, container: "main"}
	var records []heldIDs
	wanted := ask{}
	for resource, ids := range held {
		records = append(records, heldIDs{s.uid, "main", resource, ids})
		wanted[resource] = len(ids)
	}
	var env []variable
	if visible != "" {
		env = append(env, variable{"NEURON_RT_VISIBLE_CORES", visible})
	}
	var devices []deviceNode
	for _, node := range nodes {
		devices = append(devices, deviceNode{"/host" + node, node, "rw"})
	}
	b.begin(s, wanted, records, env, devices)
	return s
}

func (b *bench) expect(t *testing.T, complaints ...string) {
	t.Helper()
	if len(b.complaints) != len(complaints) {
		t.Fatalf("complaints %q, want %d", b.complaints, len(complaints))
	}
	for i, part := range complaints {
		if !strings.Contains(b.complaints[i], part) {
			t.Errorf("complaint %q, want %q in it", b.complaints[i], part)
		}
	}
}

func TestSharedCoresAreFoundThroughBothNames(t *testing.T) {
	b := newBench()
	first := b.start("a", map[string][]string{neuron: {"3"}}, "0-1", "/dev/neuron3")
	b.start("b", map[string][]string{neuronCore: {"8"}}, "0", "/dev/neuron4")
	b.expect(t)
	b.start("c", map[string][]string{neuronCore: {"7"}}, "1", "/dev/neuron3")
	b.expect(t, "core 7 in two running containers")
	b.end(first)
	b.start("d", map[string][]string{neuronCore: {"6"}}, "0", "/dev/neuron3")
	b.expect(t, "core 7")
}

func TestUnitsThatTheKubeletGivesTwiceAreCountedApart(t *testing.T) {
	b := newBench()
	b.start("a", map[string][]string{efa: {"rdmap16s25"}}, "", "/dev/infiniband/uverbs0")
	b.start("b", map[string][]string{efa: {"rdmap16s25"}}, "", "/dev/infiniband/uverbs0")
	b.expect(t)
	if b.tally.KubeletTwice != 1 {
		t.Errorf("counted %d", b.tally.KubeletTwice)
	}
	forgotten := b.start("c", map[string][]string{neuron: {"0"}}, "0-1", "/dev/neuron0")
	b.excused(forgotten, "the kubelet has forgotten it")
	b.start("d", map[string][]string{neuronCore: {"1"}}, "1", "/dev/neuron0")
	b.expect(t)
	if b.tally.Consequences != 1 {
		t.Errorf("counted %d consequences", b.tally.Consequences)
	}
}

func TestAContainerSeesWhatItHolds(t *testing.T) {
	for _, c := range []struct {
		held    map[string][]string
		visible string
		nodes   []string
		want    string
	}{
		{map[string][]string{neuron: {"3", "5"}}, "0-3", []string{"/dev/neuron3", "/dev/neuron5"}, ""},
		{map[string][]string{neuron: {"3"}, neuronCore: {"6", "7"}}, "0-1", []string{"/dev/neuron3"}, ""},
		{map[string][]string{neuronCore: {"6", "8"}}, "0,2", []string{"/dev/neuron3", "/dev/neuron4"}, ""},
		{map[string][]string{neuronCore: {"6"}}, "1", []string{"/dev/neuron3"}, "sees cores [7]"},
		{map[string][]string{neuron: {"3"}}, "0-1", []string{"/dev/neuron4"}, "sees cores [8 9]"},
		{map[string][]string{neuron: {"3"}}, "0-1", []string{"/dev/neuron3", "/dev/neuron4"}, "names no core of some"},
		{map[string][]string{neuron: {"3"}}, "0-2", []string{"/dev/neuron3"}, `NEURON_RT_VISIBLE_CORES="0-2"`},
		{map[string][]string{neuron: {"3"}}, "", []string{"/dev/neuron3"}, "visible cores set: false"},
		{map[string][]string{efa: {"rdmap16s25"}}, "", []string{"/dev/infiniband/uverbs1"}, "interfaces [rdmap32s25]"},
		{map[string][]string{neuron: {"16"}}, "0-1", []string{"/dev/neuron15"}, `no aws.amazon.com/neuron "16"`},
	} {
		b := newBench()
		b.start("a", c.held, c.visible, c.nodes...)
		if c.want == "" {
			b.expect(t)
		} else if len(b.complaints) == 0 || !strings.Contains(strings.Join(b.complaints, "; "), c.want) {
			t.Errorf("%v %q %v: %q", c.held, c.visible, c.nodes, b.complaints)
		}
	}
}

func TestTheCountMustBeTheOneAskedFor(t *testing.T) {
	b := newBench()
	s := &stay{pod: "a", uid: "uid-a", container: "main"}
	b.begin(s, ask{neuron: 2}, []heldIDs{{"uid-a", "main", neuron, []string{"3"}}}, []variable{{"NEURON_RT_VISIBLE_CORES", "0-1"}},
		[]deviceNode{{"/host/dev/neuron3", "/dev/neuron3", "rw"}})
	b.expect(t, "asked for 2 aws.amazon.com/neuron and has 1")
}

func TestTwoSiliconsAreExcusedOnlyWhenTwoKubeletsAdmitted(t *testing.T) {
	held := []heldIDs{{"uid-a", "main", neuron, []string{"0"}}, {"uid-a", "main", neuronCore, []string{"6", "7"}}}
	env := []variable{{"NEURON_RT_VISIBLE_CORES", "0-1"}}
	nodes := []deviceNode{{"/host/dev/neuron0", "/dev/neuron0", "rw"}, {"/host/dev/neuron3", "/dev/neuron3", "rw"}}
	for _, twice := range []bool{false, true} {
		b := newBench()
		b.begin(&stay{pod: "a", uid: "uid-a", container: "main", twice: twice}, ask{neuron: 1, neuronCore: 2}, held, env, nodes)
		if (len(b.complaints) == 0) != twice || (b.tally.Split == 1) != twice {
			t.Errorf("admitted by two kubelets %v: %q, counted %d", twice, b.complaints, b.tally.Split)
		}
	}
}

// A list that is as it must be, and one unit offered or withheld too much.
func TestListsAreComparedWithWhatIsHeld(t *testing.T) {
	b := newBench()
	l := &life{loop: newLoop(), hardware: b.hardware}
	b.hardware.efas = 2
	b.hardware.broken[5] = true
	right := func() reply {
		r := reply{Held: []heldIDs{{"u", "main", neuronCore, []string{"6"}}}, Healthy: map[string][]string{}}
		for _, resource := range resources {
			for _, id := range b.hardware.allIDs(resource) {
				if b.hardware.well(resource, id) && !(resource == neuron && id == "3") {
					r.Healthy[resource] = append(r.Healthy[resource], id)
				}
			}
		}
		return r
	}
	if wrong := l.wrong(right()); wrong != "" {
		t.Errorf("complained: %s", wrong)
	}
	offered := right()
	offered.Healthy[neuron] = append(offered.Healthy[neuron], "3")
	broken := right()
	broken.Healthy[neuronCore] = append(broken.Healthy[neuronCore], "10")
	withheld := right()
	withheld.Healthy[efa] = withheld.Healthy[efa][1:]
	for what, r := range map[string]reply{"neuron 3": offered, "neuroncore 10": broken, "efa rdmap16s25": withheld} {
		if wrong := l.wrong(r); !strings.Contains(wrong, what) {
			t.Errorf("%s: %q", what, wrong)
		}
	}
}

func TestLoopRunsTimersInOrder(t *testing.T) {
	l, order := newLoop(), ""
	l.after(2*time.Millisecond, func() { order += "c"; l.end() })
	l.after(time.Millisecond, func() { order += "b" })
	l.post(func() { order += "a" })
	l.run()
	if order != "abc" {
		t.Errorf("order %q", order)
	}
}
