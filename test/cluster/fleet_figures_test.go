package scenarios

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"neuron-agent.test/suite"
)

// memory is that of the agents, resident, ascending.
func (f *fleet) memory(m *fleetMode) []int64 {
	f.t.Helper()
	var all []int64
	for _, n := range m.nodes {
		kibibytes, err := suite.Status(n.agent.Pid, "VmRSS")
		if err != nil {
			f.t.Fatal(err)
		}
		all = append(all, kibibytes<<10)
	}
	slices.Sort(all)
	return all
}

// wakeups is the most of an agent, by mode.
func (f *fleet) wakeups() map[*fleetMode]int64 {
	f.t.Helper()
	most := map[*fleetMode]int64{}
	for _, n := range f.nodes() {
		count, err := suite.Wakeups(n.agent.Pid)
		if err != nil {
			f.t.Fatal(err)
		}
		most[n.mode] = max(most[n.mode], count)
	}
	return most
}

// metric adds up the samples of the API server's metrics whose name and labels match.
func (f *fleet) metric(pattern string) float64 {
	f.t.Helper()
	sum := 0.0
	for _, line := range regexp.MustCompile(`(?m)^`+pattern+` (\S+)$`).FindAllStringSubmatch(f.c.Kubectl(f.t, "get", "--raw", "/metrics"), -1) {
		value, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			f.t.Fatal(err)
		}
		sum += value
	}
	return sum
}

// report prints what a mode called in a phase. No call is refused.
func (f *fleet) report(p fleetPhase, m *fleetMode) {
	t := p.traffic[m]
	figure(f.t, "fleet: %-6s %-7s %4.0f s: per node %5.1f calls, %4.1f writes, %6.1f kB; in all %d in the busiest second, %d at once, %.1f ms each",
		m.name, p.name, p.took.Seconds(), t.perNode(len(t.calls)), t.perNode(t.writes()), t.perNode(int(t.bytes))/1000,
		t.busiest(), t.atOnce, milliseconds(t.mean()))
	f.t.Logf("fleet: %s %s: %s", m.name, p.name, t.kinds(func(*apiCall) bool { return true }))
	if refused := t.kinds((*apiCall).isRefused); refused != "" {
		f.t.Errorf("fleet: %s %s: refused: %s", m.name, p.name, refused)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (f *fleet) reportDelays(what string, all []time.Duration) {
	if len(all) > 0 {
		figure(f.t, "fleet: device failed until %s: median %v, longest %v of %d", what, all[len(all)/2].Round(10*time.Millisecond),
			all[len(all)-1].Round(10*time.Millisecond), len(all))
	}
}

// carryOver prints the calls of 5,000 nodes in a second, and the seats that they take of those of their priority level; a device fails on
// one node at a time. A flow that takes more waits in its queues, and is refused when these are full.
func (f *fleet) carryOver(phases []fleetPhase) {
	seats := f.metric(`apiserver_flowcontrol_nominal_limit_seats\{priority_level="` + fleetLevel + `"\}`)
	used := f.metric(`apiserver_flowcontrol_dispatched_requests_total\{[^}]*flow_schema="kube-system-service-accounts"[^}]*\}`)
	if used == 0 || seats == 0 {
		f.t.Errorf("%v seats, %v requests of accounts in kube-system", seats, used)
	}
	for _, p := range phases {
		nodesPerSecond := map[string]float64{"start": podsPerSecond, "update": podsPerSecond, "rest": fleetInDocs / p.took.Seconds(),
			"return": fleetInDocs / returnSeconds}[p.name]
		for _, m := range f.modes {
			t := p.traffic[m]
			calls := t.perNode(len(t.calls)) * nodesPerSecond
			needs := calls * t.mean().Seconds()
			if t.atOnce > int(seats) || needs > seats && len(m.nodes) >= 100 { // few calls have no mean worth a test
				f.t.Errorf("fleet: %s %s: %d calls at once, %.1f for %d nodes; one flow has %v seats", m.name, p.name, t.atOnce, needs, fleetInDocs, seats)
			}
			if calls > 0 {
				figure(f.t, "fleet: %d nodes: %-6s %-7s %6.1f nodes a second × %.2f calls = %6.1f calls a second × %.1f ms = %.1f of %v seats",
					fleetInDocs, m.name, p.name, nodesPerSecond, t.perNode(len(t.calls)), calls, milliseconds(t.mean()), needs, seats)
			}
		}
	}
}
