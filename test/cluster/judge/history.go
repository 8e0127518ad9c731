// Package judge decides from what was recorded of a cluster under faults whether the agent kept its word: no core and no
// interface in two running containers, nobody without what was asked for, every sound unit offered again in time, nothing
// leaked. It is pure: no clock, no files, no cluster. All times are of one clock, that of the machine all nodes share.
package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Resource names, as in pods.
const (
	NeuronCore = "aws.amazon.com/neuroncore"
	Neuron     = "aws.amazon.com/neuron"
	EFA        = "vpc.amazonaws.com/efa"
)

// Span is a time from Begin to End. As that of a container it is one in which it surely ran.
type Span struct{ Begin, End time.Time }

func (s Span) overlap(o Span) Span {
	if o.Begin.After(s.Begin) {
		s.Begin = o.Begin
	}
	if o.End.Before(s.End) {
		s.End = o.End
	}
	return s
}

func (s Span) length() time.Duration { return s.End.Sub(s.Begin) }

// without returns what is left of a span outside all others.
func (s Span) without(others []Span) []Span {
	others = slices.SortedFunc(slices.Values(others), func(a, b Span) int { return a.Begin.Compare(b.Begin) })
	var left []Span
	for _, o := range others {
		if !o.End.After(s.Begin) || !o.Begin.Before(s.End) {
			continue
		}
		if o.Begin.After(s.Begin) {
			left = append(left, Span{s.Begin, o.Begin})
		}
		if !o.End.Before(s.End) {
			return left
		}
		s.Begin = o.End
	}
	return append(left, s)
}

func (s Span) String() string { return s.Begin.Format(Clock) + " to " + s.End.Format(Clock) }

// Clock is how times are printed.
const Clock = "15:04:05.000"

// Machine is what a node has.
type Machine struct {
	Devices, CoresPerDevice int               // logical cores
	Verbs                   map[string]string // RDMA device to its node below /dev/infiniband
}

// Container is one run of one container.
type Container struct {
	Node, Pod, UID, Name string
	Span
	Ask      map[string]int
	Reported bool // the fields below are known
	Open     []string
	Refused  []string            // device nodes that are there and do not open
	Visible  string              // NEURON_RT_VISIBLE_CORES
	Set      bool                // ... is set
	Held     map[string][]string // by resource, what the kubelet had on record for it; nil: never seen there
}

func (c *Container) String() string { return fmt.Sprintf("%s/%s.%s", c.Node, c.Pod, c.Name) }

// Pod is what the API said of a pod. Times that never came are zero.
type Pod struct {
	Name, UID, Node string
	Created         time.Time
	Forced          time.Time // deleted with grace 0
	Ended           time.Time // Succeeded, Failed or gone
	Succeeded       bool      // ran to its end, and was not deleted before
	Refused         string    // the kubelet's reason for failing it, empty if it did not
	Message         string
}

// Fault is one that was done to the cluster.
type Fault struct {
	Kind, Node string // Node is empty for the control plane
	Span              // End: it was over: programs run again, the device is back
	Serving    bool   // from Begin to End the node cannot serve: agent, kubelet, or both, are away
	Targets    []string
}

func (f Fault) String() string {
	return fmt.Sprintf("%s %s %s %s", f.Span, f.Kind, f.Node, strings.Join(f.Targets, " "))
}

// Look is what a node's kubelet offered as healthy: the same at Begin, at End and at every look in between. Offered is nil
// when it did not answer.
type Look struct {
	Node string
	Span
	Offered map[string][]string
}

// Hold is what the kubelet had on record for a container, from the first to the last look at the record.
type Hold struct {
	Node, UID, Container string
	Span
	Units map[string][]string
}

// Life is that of one agent process.
type Life struct {
	Node string
	Pid  int
	Pod  string // UID
	Span
	Last bool // it still ran when watching ended
}

// Footprint is what one node's agent and node had at a moment of calm, without any pod of the load.
type Footprint struct {
	Node                 string
	At                   time.Time
	Fds, Threads         int
	AnonymousBytes       int64
	Files                []string // below the agent's directories, sockets without what is new in their names
	NodeFds              int      // of kubelet and containerd
	Processes, Mounts    int
	ResidentAgents       int
	Allocatable, Whole   string // as the API says and as it must be
	Settled, SettleBound time.Duration
}

// History is everything.
type History struct {
	Machines   map[string]Machine
	Containers []*Container
	Pods       map[string]*Pod // by UID
	Faults     []Fault
	Looks      []Look
	Holds      []Hold
	Lives      []Life
	Deleted    map[string]time.Time // when a pod of an agent was last seen before it was deleted, by UID
	Footprints []Footprint
}

// RecordOf is what the kubelet had on record for a container when it last ran: a kubelet that admits the pod anew after a
// reboot writes down other units for the same names. nil: nothing was seen.
func (h *History) RecordOf(c *Container) map[string][]string {
	var last *Hold
	for i := range h.Holds {
		hold := &h.Holds[i]
		if hold.UID != c.UID || hold.Container != c.Name || hold.Begin.After(c.End) {
			continue
		}
		if last == nil || hold.Begin.After(last.Begin) {
			last = hold
		}
	}
	if last == nil {
		return nil
	}
	return last.Units
}

// Bounds are how long things may take after the fault has ended, on this machine.
type Bounds struct {
	Serve    time.Duration // agent and kubelet run again: all is offered
	Hardware time.Duration // a device or interface broke or healed: the list says so
	Release  time.Duration // a pod ended: its silicon is offered under the other name
	Withhold time.Duration // a container runs: its silicon is no longer offered under the other name
}
