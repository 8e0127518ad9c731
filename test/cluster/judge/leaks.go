package judge

import (
	"slices"
	"time"
)

// What an agent may have grown by between two calms, whichever of its processes it is: threads that gRPC keeps for a while
// and their descriptors, and arenas of the allocator.
const (
	moreFds     = 8
	moreThreads = 8
	moreBytes   = 8 << 20
	// Kubelet and containerd keep connections and watches of their own.
	moreNodeFds   = 120
	moreProcesses = 2
	moreMounts    = 2
)

// leaks compares every calm of a node with its first.
func (v *Verdict) leaks(h *History) {
	first := map[string]Footprint{}
	for _, f := range h.Footprints {
		if f.Allocatable != f.Whole {
			v.violate(f.At, f.Node, "in the calm allocatable is %s, not %s, after %v", f.Allocatable, f.Whole, f.Settled.Round(time.Millisecond))
		} else if f.Settled > f.SettleBound {
			v.violate(f.At, f.Node, "in the calm everything was allocatable only after %v (bound %v)", f.Settled, f.SettleBound)
		}
		begin, seen := first[f.Node]
		if !seen {
			first[f.Node] = f
			continue
		}
		grown := func(what string, before, now, more int64) {
			if now > before+more {
				v.violate(f.At, f.Node, "%s grew from %d to %d", what, before, now)
			}
		}
		grown("the agent's descriptors", int64(begin.Fds), int64(f.Fds), moreFds)
		grown("the agent's threads", int64(begin.Threads), int64(f.Threads), moreThreads)
		grown("the agent's anonymous memory", begin.AnonymousBytes, f.AnonymousBytes, moreBytes)
		grown("descriptors of kubelet and containerd", int64(begin.NodeFds), int64(f.NodeFds), moreNodeFds)
		grown("processes in containers", int64(begin.Processes), int64(f.Processes), moreProcesses)
		grown("mounts", int64(begin.Mounts), int64(f.Mounts), moreMounts)
		if f.ResidentAgents != 1 {
			v.violate(f.At, f.Node, "%d agents run", f.ResidentAgents)
		}
		if !slices.Equal(begin.Files, f.Files) {
			v.violate(f.At, f.Node, "files in the agent's directories are %v, were %v", f.Files, begin.Files)
		}
	}
}
