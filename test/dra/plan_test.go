package dra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"neuron-agent.test/dra/claims"
	"neuron-agent.test/dra/node"
	"neuron-agent.test/dra/pool"
)

// What kubectl-neuron says of pods with random claims, on a fleet with random holders, is what the scheduler's allocator does with them:
// whether a pod fits on each node, each change that would let it in, and how many such pods fit. Both have the same slices and claims.
// DRA_QUESTIONS: pods for each kind of partitions (25); DRA_SEED.
func TestKubectlNeuron(t *testing.T) {
	program := filepath.Join(programs(t), "kubectl-neuron")
	if _, err := os.Stat(program); err != nil {
		t.Skip(err)
	}
	count, seed := fromEnvironment("DRA_QUESTIONS", 25), fromEnvironment("DRA_SEED", 1)
	for i, kind := range []struct {
		name       string
		partitions pool.Partitions
		shares     bool
	}{{"whole", pool.Partitions{}, false}, {"cores", pool.Partitions{Cores: true}, false}, {"all", pool.Partitions{Cores: true, Groups: true}, false}, {"shares", pool.Partitions{}, true}} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			f := newAskedFleet(t, program, kind.partitions, kind.shares, rand.New(rand.NewPCG(uint64(seed), uint64(i))))
			for range count {
				f.question()
			}
			t.Logf("%d questions, %d answers about nodes, of them %d that it fits; %d changes carried out, %d plans; not answered: %d by kubectl-neuron, %d by the allocator",
				count, f.answers, f.fits, f.changes, f.plans, f.unknown, f.late)
			if f.fits == 0 || f.fits == f.answers || f.changes == 0 || 10*f.unknown > f.answers {
				t.Error("this judged too little")
			}
		})
	}
}

const taintKey = pool.Driver + "/unhealthy"

var yes = true

// isAdmin: what such claims have remains free, so that they hold nothing.
func isAdmin(wanted []*resourceapi.ResourceClaim) bool {
	return slices.ContainsFunc(wanted, func(claim *resourceapi.ResourceClaim) bool {
		return slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
			return r.Exactly != nil && r.Exactly.AdminAccess != nil
		})
	})
}

// holder is a pod that runs, with what its claims were given.
type holder struct {
	number  int
	node    string
	claims  []*resourceapi.ResourceClaim
	results []claims.Result
}

func (h *holder) pod() string  { return "default/" + h.name() }
func (h *holder) name() string { return fmt.Sprintf("holder-%d", h.number) }

type askedFleet struct {
	*testing.T
	program, dir string
	nodes        []string
	types        map[string]node.Type
	partitions   pool.Partitions
	shares       bool
	slices       []*resourceapi.ResourceSlice
	random       *rand.Rand
	holders      []*holder
	number       int

	answers, fits, changes, plans, unknown, late int
}

func newAskedFleet(t *testing.T, program string, p pool.Partitions, shares bool, random *rand.Rand) *askedFleet {
	f := &askedFleet{T: t, program: program, dir: t.TempDir(), types: map[string]node.Type{}, partitions: p, shares: shares, random: random}
	for name, instance := range map[string]string{"trn1": "trn1.32xlarge", "trn2": "trn2.48xlarge", "inf2": "inf2.24xlarge"} {
		kind, _ := node.Find(instance)
		f.nodes, f.types[name] = append(f.nodes, name), kind
	}
	slices.Sort(f.nodes)
	for _, name := range f.nodes {
		all := pool.Slices(name, f.types[name], p, pool.Default(), pool.Split)
		if shares {
			all = pool.Share(all)
		}
		for _, slice := range all {
			for i := range slice.Spec.Devices {
				if random.IntN(12) == 0 {
					slice.Spec.Devices[i].Taints = []resourceapi.DeviceTaint{{Key: taintKey, Value: "sram_ecc", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
				}
			}
		}
		f.slices = append(f.slices, all...)
	}
	return f
}

// scheduler knows what the holders have but those that are left out.
func (f *askedFleet) scheduler(without ...string) *claims.Scheduler {
	s := claims.NewScheduler(f.slices)
	for _, h := range f.holders {
		if !slices.Contains(without, h.pod()) {
			s.Take(h.results)
		}
	}
	return s
}

var errLate = errors.New("the allocator takes too long")

// try asks the allocator.
func (f *askedFleet) try(s *claims.Scheduler, node string, wanted []*resourceapi.ResourceClaim) ([]claims.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	pass, err := s.NewPass(ctx, wanted...)
	if err != nil {
		return nil, err
	}
	results, err := pass.Try(ctx, node)
	if ctx.Err() != nil {
		return nil, errLate
	}
	return results, err
}

// onNodes gives what the claims would get on each node. An error of the allocator about one is the end of the pod's scheduling: it gets
// nothing anywhere. nil: it takes too long.
func (f *askedFleet) onNodes(s *claims.Scheduler, wanted []*resourceapi.ResourceClaim) map[string][]claims.Result {
	found, failed := map[string][]claims.Result{}, false
	for _, name := range f.nodes {
		results, err := f.try(s, name, wanted)
		if errors.Is(err, errLate) {
			return nil
		}
		failed = failed || err != nil
		found[name] = results
	}
	if failed {
		return map[string][]claims.Result{}
	}
	return found
}

// question lets pods come and go, asks about one more and judges the answer.
func (f *askedFleet) question() {
	for len(f.holders) > 0 && f.random.IntN(3) == 0 {
		f.holders = slices.Delete(f.holders, 0, 1)
	}
	wanted := f.draw()
	why := f.ask(wanted)
	if why == nil {
		return
	}
	s := f.scheduler()
	found := f.onNodes(s, wanted)
	if found == nil {
		f.late++
		return
	}
	var fitting []string
	for _, name := range f.nodes {
		f.answers++
		switch said := why.of(name); {
		case said == "unknown":
			f.unknown++
		case said != map[bool]string{true: "fits", false: "does_not_fit"}[found[name] != nil]:
			f.Errorf("on %s kubectl-neuron says %s, the allocator gives %s: %s", name, said, listed(found[name]), f.describe(wanted))
		}
		if found[name] != nil {
			f.fits++
			fitting = append(fitting, name)
		}
	}
	for _, change := range why.Changes {
		f.carryOut(change, wanted)
	}
	if len(fitting) == 0 || isAdmin(wanted) {
		return
	}
	f.plan(wanted)
	name := fitting[f.random.IntN(len(fitting))]
	results, err := f.try(s, name, wanted)
	if err != nil || results == nil {
		f.Fatalf("a second time: %v, %v", results, err)
	}
	f.holders = append(f.holders, &holder{f.number, name, wanted, results})
}

type nodesAnswer struct {
	Nodes  []string
	Answer string
}

type change struct {
	Kind, Sentence, Node, To, Value string
	Pods                            []string
}

type whyAnswer struct {
	Answer  string
	Nodes   []nodesAnswer
	Changes []change
}

func (w *whyAnswer) of(name string) string {
	for _, group := range w.Nodes {
		if slices.Contains(group.Nodes, name) {
			return group.Answer
		}
	}
	return "unknown"
}

// carryOut does what a change says, and the pod then has to fit.
func (f *askedFleet) carryOut(c change, wanted []*resourceapi.ResourceClaim) {
	f.changes++
	s, now := f.scheduler(c.Pods...), wanted
	switch c.Kind {
	case "pods_ended":
	case "pod_moved":
		at := slices.IndexFunc(f.holders, func(h *holder) bool { return h.pod() == c.Pods[0] })
		found := f.onNodes(s, f.holders[at].claims)
		if found != nil && found[c.To] == nil {
			f.Errorf("%s: it does not fit there: %s", c.Sentence, f.describe(f.holders[at].claims))
		}
		if found == nil || found[c.To] == nil {
			return
		}
		s.Take(found[c.To])
	case "fewer":
		fewer := wanted[0].DeepCopy()
		count, err := strconv.Atoi(c.Value)
		if err != nil || len(wanted) != 1 || len(fewer.Spec.Devices.Requests) != 1 {
			f.Errorf("%s: %v: %s", c.Sentence, err, f.describe(wanted))
			return
		}
		fewer.Spec.Devices.Requests[0].Exactly.Count = int64(count)
		now = []*resourceapi.ResourceClaim{fewer}
	default:
		f.Errorf("%s is no change in a fleet like this: %s", c.Sentence, f.describe(wanted))
		return
	}
	if found := f.onNodes(s, now); found == nil {
		f.late++
	} else if found[c.Node] == nil {
		f.Errorf("%s: then the allocator gives nothing: %s", c.Sentence, f.describe(wanted))
	}
}

func (f *askedFleet) describe(wanted []*resourceapi.ResourceClaim) string {
	var text strings.Builder
	for _, claim := range wanted {
		one, _ := json.Marshal(claim.Spec.Devices)
		fmt.Fprintf(&text, "%s ", one)
	}
	for _, h := range f.holders {
		fmt.Fprintf(&text, "; %s has %s", h.node, listed(h.results))
	}
	return text.String()
}

func listed(results []claims.Result) string {
	var text strings.Builder
	for _, r := range results {
		fmt.Fprintf(&text, " %s", r.Device)
		if r.ShareID != nil {
			fmt.Fprintf(&text, "(%d)", r.Cores())
		}
	}
	return text.String()
}

// run gives what the program prints, of which a status of 2 is no answer.
func (f *askedFleet) run(arguments ...string) []byte {
	command := exec.Command(f.program, append(arguments, "--from", f.dir, "-o", "json")...)
	var problems strings.Builder
	command.Stderr = &problems
	text, err := command.Output()
	if command.ProcessState == nil || len(text) == 0 {
		f.Fatalf("%s: %v: %s", command, err, problems.String())
	}
	return text
}

func (f *askedFleet) ask(wanted []*resourceapi.ResourceClaim) *whyAnswer {
	f.writeDump(wanted)
	why := &whyAnswer{}
	if err := json.Unmarshal(f.run("why", "asked"), why); err != nil {
		f.Fatal(err)
	}
	return why
}

// plan compares how many pods of this kind fit on all nodes.
func (f *askedFleet) plan(wanted []*resourceapi.ResourceClaim) {
	s, count, late := f.scheduler(), 0, false
	for _, name := range f.nodes {
		for {
			results, err := f.try(s, name, wanted)
			late = late || errors.Is(err, errLate)
			if results == nil {
				break
			}
			s.Take(results)
			count++
		}
	}
	if late {
		f.late++
		return
	}
	file := filepath.Join(f.dir, "manifest.json")
	f.write("manifest.json", podObject("asked", "", wanted, true))
	var plan struct {
		Answer       string
		Placed, More int
	}
	if err := json.Unmarshal(f.run("plan", "-f", file), &plan); err != nil {
		f.Fatal(err)
	}
	f.plans++
	if plan.Answer == "fits" && plan.Placed+plan.More != count {
		f.Errorf("kubectl-neuron plans %d pods, the allocator takes %d: %s", plan.Placed+plan.More, count, f.describe(wanted))
	}
}
