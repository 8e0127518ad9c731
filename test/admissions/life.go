package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"neuron-agent.test/suite"
)

const (
	clock           = "15:04:05.000"
	nodeStatusEvery = 100 * time.Millisecond // a real kubelet takes 10 s: nothing here waits for it
)

// lifeOptions is what one life is told.
type lifeOptions struct {
	Machine    string
	Seed       uint64
	Admissions int // ends when both are reached
	Restarts   int
	Minutes    float64 // or when this time is over
	Steady     bool    // the agent is never restarted, so that leaks show
	Fault      string  // this kind only: see faults; empty: all
	Bin, Logs  string
}

// life is one node from its first to its last pod: hardware, agent, kubelet, pods, and what happens to them.
type life struct {
	*loop
	lifeOptions
	seed     uint64
	random   *rand.Rand
	hardware *hardware
	judge    *judge
	tally    *tally
	begun    time.Time

	kubelet      *client // nil while it is down
	ready        bool    // it has taken over its pods
	kubeletBegun time.Time
	posted       map[string]int64
	agent        *suite.Process // nil while it is down
	stopped      bool           // by SIGSTOP
	lost         bool           // this kubelet found no readable checkpoint
	killSoon     bool           // the kubelet dies in the next admission
	kubeletLog   *os.File

	pods        map[string]*podRun // by uid, until the kubelet knows of the end
	created     uint64
	containerID uint64
	admitting   int // questions under way
	lastFreed   map[string]past
	lastTrouble time.Time // of kubelet, agent or hardware: its end
	quiet       bool      // nothing new happens: see settle
	closing     bool
	repairs     map[string]bool // broken parts whose healing is under way

	progress io.Writer
	history  []string // the newest last
}

func (l *life) say(format string, values ...any) {
	line := time.Now().Format(clock) + " " + fmt.Sprintf(format, values...)
	l.history = append(l.history, line)
	if len(l.history) > 40000 {
		l.history = slices.Clone(l.history[20000:])
	}
}

// violate records a broken rule with the history around it: all lines of the pods in question, and the newest of all.
func (l *life) violate(what string, pods ...string) {
	l.say("VIOLATION %s", what)
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", what)
	from := max(0, len(l.history)-80)
	for i, line := range l.history {
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" .,:()", r) })
		about := slices.ContainsFunc(pods, func(pod string) bool { return slices.Contains(words, pod) })
		if i >= from || about {
			fmt.Fprintf(&text, "    %s\n", line)
		}
	}
	l.tally.Violations = append(l.tally.Violations, text.String())
	fmt.Fprintf(l.progress, "VIOLATION on %s: %s\n", l.Machine, what)
	_ = os.WriteFile(fmt.Sprintf("%s/%s-violation-%d.txt", l.Logs, l.Machine, len(l.tally.Violations)), []byte(text.String()), 0o644)
	if len(l.tally.Violations) >= 5 { // the rest would be consequences
		l.end()
	}
}

// live plays one life and returns what happened.
func live(o lifeOptions, m machine, root string, progress io.Writer) (*tally, error) {
	l := &life{loop: newLoop(), lifeOptions: o, seed: o.Seed, random: rand.New(rand.NewPCG(o.Seed, 1)), tally: newTally(),
		begun: time.Now(), pods: map[string]*podRun{}, lastFreed: map[string]past{}, repairs: map[string]bool{}, posted: map[string]int64{}, progress: progress}
	var err error
	if l.hardware, err = newHardware(m, o.Bin+"/neuron-sim", root); err != nil {
		return nil, err
	}
	l.judge = &judge{hardware: l.hardware, tally: l.tally, violate: l.violate, say: l.say}
	if l.kubeletLog, err = os.Create(fmt.Sprintf("%s/%s-kubelet.log", o.Logs, m.name)); err != nil {
		return nil, err
	}
	l.startAgent()
	l.startKubelet()
	l.settle("the first start", func() {
		l.rememberFootprint()
		l.watchNode()
		l.nextArrival()
		l.nextTrouble()
	})
	l.report(progress)
	l.run()
	if l.agent != nil {
		_ = l.agent.Signal(syscall.SIGKILL)
	}
	if l.kubelet != nil {
		l.kubelet.kill()
	}
	l.tally.Seconds = time.Since(l.begun).Seconds()
	if err := os.WriteFile(fmt.Sprintf("%s/%s-history.txt", o.Logs, m.name), []byte(strings.Join(l.history, "\n")), 0o644); err != nil {
		return nil, err
	}
	return l.tally, nil
}

func (l *life) report(w io.Writer) {
	t := l.tally
	fmt.Fprintf(w, "%s: %.0f s, %d pods admitted, %d refused, %d kubelet restarts, %d violations\n", l.Machine,
		time.Since(l.begun).Seconds(), t.Admitted, t.Refused, t.KubeletRestarts, len(t.Violations))
	l.after(15*time.Second, func() { l.report(w) }) // several lives are played at once
}

// watchNode lets the scheduler see the node's status.
func (l *life) watchNode() {
	if l.ready {
		l.kubelet.ask(question{Op: "status"}, func(r reply, answered bool) {
			if answered {
				l.posted = r.Posted
			}
		})
	}
	l.after(nodeStatusEvery, l.watchNode)
}

// done tells whether the life has been long enough.
func (l *life) done() bool {
	if l.Minutes > 0 && time.Since(l.begun).Minutes() >= l.Minutes {
		return true
	}
	return l.tally.Admitted >= l.Admissions && l.tally.KubeletRestarts >= l.Restarts
}

// chance is true so often in a hundred.
func (l *life) chance(percent int) bool { return l.random.IntN(100) < percent }

// between draws a time, short ones more often.
func (l *life) between(least, most time.Duration) time.Duration {
	x := l.random.Float64()
	return least + time.Duration(x*x*float64(most-least))
}

// nextArrival lets pods come, in bursts and lulls.
func (l *life) nextArrival() {
	if l.closing {
		return
	}
	if l.done() {
		l.close()
		return
	}
	pause := l.between(time.Millisecond, 20*time.Millisecond)
	if l.chance(3) {
		pause = l.between(100*time.Millisecond, 1500*time.Millisecond) // the agent asks the kubelet in a quiet moment only
	}
	l.after(pause, func() {
		if !l.quiet {
			l.arrive()
		}
		l.nextArrival()
	})
}

// close ends everything that runs and looks whether all came back.
func (l *life) close() {
	l.closing = true
	l.say("closing")
	l.whenCalm(func() {
		l.healAll()
		for _, p := range l.sortedPods() {
			l.cutShort(p)
		}
		l.settle("the end of all pods", func() {
			l.expectNoLeaks()
			l.end()
		})
	})
}

func (l *life) sortedPods() []*podRun {
	var pods []*podRun
	for _, p := range l.pods {
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *podRun) int {
		return a.spec.CreationTimestamp.Time.Compare(b.spec.CreationTimestamp.Time)
	})
	return pods
}
