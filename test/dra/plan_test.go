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
	"k8s.io/apimachinery/pkg/types"

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

// expression draws a selector that holds for some devices.
func (f *askedFleet) expression(kind string) string {
	its := "device.attributes['" + pool.Driver + "']."
	all := []string{its + "lnc == 2", its + "instanceType == 'trn1.32xlarge'", its + "instanceType.startsWith('trn')", its + "deviceId < 5",
		its + "deviceId in [0, 2, 4, 6]", "!(" + its + "instanceType == 'inf2.24xlarge')", its + "?topology4_id.orValue(9) == 1",
		its + "neuronDriverVersion == '2.30.2.0' || " + its + "lnc == 1",
		"device.capacity['" + pool.Driver + "'].cores.compareTo(quantity('4')) >= 0"}
	if kind == pool.Group {
		all = append(all[:3:3], claims.GroupOf(4), claims.GroupOf(8), its+"size < 8", its+"first == 4", claims.GroupOf(2))
	}
	if kind == pool.EFA {
		all = append(all[:3:3], its+"rdmaDevice.contains('s2')")
	}
	return all[f.random.IntN(len(all))]
}

func (f *askedFleet) kind() string {
	all := []string{pool.Device, pool.Device, pool.Device, pool.EFA}
	if f.partitions.Cores || f.shares {
		all = append(all, pool.Core, pool.Core)
	}
	if f.partitions.Groups {
		all = append(all, pool.Group, pool.Group)
	}
	return all[f.random.IntN(len(all))]
}

// exact draws what one request asks for.
func (f *askedFleet) exact(name string, most int) *resourceapi.ExactDeviceRequest {
	kind := f.kind()
	if kind == pool.Group {
		most = 2
	}
	claim := claims.Claim(claims.Request(name, kind, 1+f.random.IntN(most)))
	if kind == pool.Core && f.shares {
		claim = claims.Claim(claims.Shares(name, 1+f.random.IntN(3), 1+f.random.IntN(4)))
	}
	exact := claim.Spec.Devices.Requests[0].Exactly
	if f.random.IntN(3) == 0 {
		exact.Selectors = append(exact.Selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: f.expression(kind)}})
	}
	if f.random.IntN(12) == 0 {
		exact.AllocationMode, exact.Count = resourceapi.DeviceAllocationModeAll, 0
	}
	if f.random.IntN(8) == 0 {
		exact.Tolerations = []resourceapi.DeviceToleration{{Key: taintKey, Operator: resourceapi.DeviceTolerationOpExists}}
	}
	if f.random.IntN(15) == 0 && most > 9 { // alternatives have no admin access
		exact.AdminAccess = &yes
	}
	return exact
}

// draw draws the claims of a pod.
func (f *askedFleet) draw() []*resourceapi.ResourceClaim {
	var all []*resourceapi.ResourceClaim
	f.number++
	for i := range 1 + f.random.IntN(5)/4 {
		claim := claims.Claim()
		claim.Name = fmt.Sprintf("claim-%d-%d", f.number, i)
		claim.UID = types.UID(fmt.Sprintf("00000000-0000-0000-%04d-%012d", i, f.number))
		for k := range 1 + f.random.IntN(5)/3 {
			request := resourceapi.DeviceRequest{Name: "r" + strconv.Itoa(k)}
			if f.random.IntN(6) == 0 {
				for alternative := range 2 {
					e := f.exact(request.Name, 9)
					request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{Name: "a" + strconv.Itoa(alternative),
						DeviceClassName: e.DeviceClassName, Selectors: e.Selectors, AllocationMode: e.AllocationMode, Count: e.Count, Capacity: e.Capacity, Tolerations: e.Tolerations})
				}
			} else {
				request.Exactly = f.exact(request.Name, 16)
			}
			claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, request)
		}
		f.constrain(&claim.Spec.Devices)
		all = append(all, claim)
	}
	return all
}

// constrain lets some claims demand that their devices have something in common, with few devices: the search grows with their number.
func (f *askedFleet) constrain(claim *resourceapi.DeviceClaim) {
	if f.random.IntN(4) > 0 {
		return
	}
	for i := range claim.Requests {
		if exact := claim.Requests[i].Exactly; exact != nil {
			exact.Count = min(exact.Count, 4)
		}
	}
	names := []string{claims.GroupID(4), claims.GroupID(8), claims.GroupID(1), claims.DeviceID, pool.Driver + "/lnc", claims.OwnID(2)}
	name := names[f.random.IntN(len(names))]
	if f.random.IntN(5) == 0 {
		distinct := resourceapi.FullyQualifiedName(name)
		claim.Constraints = append(claim.Constraints, resourceapi.DeviceConstraint{DistinctAttribute: &distinct})
		return
	}
	claims.Match(name)(claim)
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
	var fitting []string
	for _, name := range f.nodes {
		results, err := f.try(s, name, wanted)
		if errors.Is(err, errLate) {
			f.late++
			continue
		}
		f.answers++
		switch said := why.of(name); {
		case said == "unknown":
			f.unknown++
		case said != map[bool]string{true: "fits", false: "does_not_fit"}[results != nil]:
			f.Errorf("on %s kubectl-neuron says %s, the allocator gives %s (%v): %s", name, said, listed(results), err, f.describe(wanted))
		}
		if results != nil {
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
		results, err := f.try(s, c.To, f.holders[at].claims)
		if results == nil {
			f.Errorf("%s: it does not fit there: %v: %s", c.Sentence, err, f.describe(f.holders[at].claims))
			return
		}
		s.Take(results)
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
	results, err := f.try(s, c.Node, now)
	if errors.Is(err, errLate) {
		f.late++
	} else if results == nil {
		f.Errorf("%s: then the allocator gives nothing: %v: %s", c.Sentence, err, f.describe(wanted))
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

// ---- What kubectl-neuron reads: a dump

type object = map[string]any

func (f *askedFleet) write(name string, content any) {
	text, err := json.Marshal(content)
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o600)); err != nil {
		f.Fatal(err)
	}
}

func podObject(name, on string, of []*resourceapi.ResourceClaim, templates bool) object {
	var uses []object
	for i, claim := range of {
		use := object{"name": "c" + strconv.Itoa(i), "resourceClaimName": claim.Name}
		if templates {
			use = object{"name": "c" + strconv.Itoa(i), "resourceClaimTemplateName": claim.Name}
		}
		uses = append(uses, use)
	}
	status := object{"phase": "Running"}
	if on == "" {
		status = object{"phase": "Pending", "conditions": []object{{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}}}
	}
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"namespace": "default", "name": name}, "status": status,
		"spec": object{"nodeName": on, "resourceClaims": uses, "containers": []object{{"name": "main"}}}}
}

func (f *askedFleet) writeDump(wanted []*resourceapi.ResourceClaim) {
	f.write("dump.json", object{"format": "kubectl-neuron-dump/1", "read_at": "2026-11-26T12:00:00Z", "namespace": "default"})
	var nodes, pods, made, templates []any
	for _, name := range f.nodes {
		nodes = append(nodes, object{"metadata": object{"name": name, "labels": object{"kubernetes.io/hostname": name}},
			"status": object{"conditions": []object{{"type": "Ready", "status": "True"}}}})
	}
	for _, h := range f.holders {
		pods = append(pods, podObject(h.name(), h.node, h.claims, false))
		made = append(made, h.allocated()...)
	}
	for _, claim := range wanted {
		templates = append(templates, object{"metadata": object{"namespace": "default", "name": claim.Name}, "spec": object{"spec": claim.Spec}})
	}
	pods = append(pods, podObject("asked", "", wanted, true))
	for name, items := range map[string]any{"nodes": nodes, "pods": pods, "resourceslices": f.slices, "resourceclaims": made,
		"resourceclaimtemplates": templates, "deviceclasses": claims.Classes()} {
		f.write(name+"/0.json", object{"items": items})
	}
}

// allocated are the holder's claims with what they were given.
func (h *holder) allocated() []any {
	var all []any
	for i, claim := range h.claims {
		one := claim.DeepCopy()
		one.Status.Allocation = &resourceapi.AllocationResult{}
		one.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: h.name(), UID: "1"}}
		devices := &one.Status.Allocation.Devices
		for _, r := range h.results {
			if r.Claim == i {
				devices.Results = append(devices.Results, resourceapi.DeviceRequestAllocationResult{
					Request: r.Request, Driver: pool.Driver, Pool: r.Pool, Device: r.Device, ShareID: r.ShareID, ConsumedCapacity: r.Consumed})
			}
		}
		all = append(all, one)
	}
	return all
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
