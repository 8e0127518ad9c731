package dra

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"neuron-agent.test/dra/check"
	"neuron-agent.test/dra/claims"
	"neuron-agent.test/dra/node"
	"neuron-agent.test/dra/pool"
)

// NEURON_BIN: the folder of the programs under test.
func programs(t *testing.T) string {
	bin := cmp.Or(os.Getenv("NEURON_BIN"), "../../build/release/bin")
	help, err := exec.Command(filepath.Join(bin, "neuron-agent"), "run", "--help").Output()
	if err != nil {
		t.Skipf("no programs in %s: %v", bin, err)
	}
	if !strings.Contains(string(help), "--dra-partitions") {
		t.Skip("this agent makes no slices")
	}
	return bin
}

func run(t *testing.T, program string, arguments ...string) []byte {
	t.Helper()
	command := exec.Command(program, arguments...)
	var problems strings.Builder
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, problems.String())
	}
	return output
}

// simulated writes the directory of a host: tens of thousands of small files, so in memory where that can be.
func simulated(t *testing.T, bin string, kind node.Type) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "dra")
	if err != nil {
		folder = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	root := filepath.Join(folder, "host")
	arguments := []string{"node", root, "--instance-type", kind.Name}
	if kind.Physical == 8 {
		arguments = append(arguments, "--lnc", strconv.Itoa(kind.LNC))
	}
	run(t, filepath.Join(bin, "neuron-sim"), arguments...)
	return root
}

// The slices that the agent would publish on a host, as text and read.
func printed(t *testing.T, bin, root string, options ...string) ([]json.RawMessage, []*resourceapi.ResourceSlice) {
	t.Helper()
	var list struct{ Items []json.RawMessage }
	arguments := append([]string{"run", "--mode", "dra", "--once", "--root", root, "--node-name", nodeName}, options...)
	text := run(t, filepath.Join(bin, "neuron-agent"), arguments...)
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	var all []*resourceapi.ResourceSlice
	for _, item := range list.Items {
		slice := &resourceapi.ResourceSlice{}
		if err := json.Unmarshal(item, slice); err != nil {
			t.Fatal(err)
		}
		all = append(all, slice)
	}
	return list.Items, all
}

// What the agent prints is taken by the server as it stands, is usable by the scheduler, and says the same of the same
// silicon as this package, each kind in the same order. DRA_ALL=1: every type, else one of those that are built alike.
func TestAgentsSlices(t *testing.T) {
	bin := programs(t)
	for _, kind := range kinds(os.Getenv("DRA_ALL") != "") {
		t.Run(fmt.Sprintf("%s-lnc%d", kind.Name, kind.LNC), func(t *testing.T) {
			root := simulated(t, bin, kind)
			for _, p := range pool.AllPartitions {
				t.Run(p.String(), func(t *testing.T) { compare(t, bin, root, kind, p) })
			}
		})
	}
}

func compare(t *testing.T, bin, root string, kind node.Type, p pool.Partitions) {
	texts, all := printed(t, bin, root, "--dra-ultraserver", "devices", "--dra-partitions", p.String())
	for _, text := range texts {
		if _, err := check.StoredText(text); err != nil {
			t.Error(err)
		}
	}
	accepted(t, all)
	compareFacts(t, root, kind, all)
	got := describe(all, len(kind.EFAs) > 0)
	mirror := pool.Slices(nodeName, kind, p, pool.Default(), pool.Split)
	leaveOutPlaces(mirror, all)
	want := describe(mirror, true)
	for i := range max(len(got), len(want)) {
		if at(got, i) != at(want, i) {
			t.Fatalf("line %d:\ngot  %s\nwant %s", i, at(got, i), at(want, i))
		}
	}
}

// From 1.37 the same devices may be shared, with --dra-shares=on from 1.36, and a server keeps that.
func TestAgentsShares(t *testing.T) {
	bin := programs(t)
	for _, name := range []string{"inf2.xlarge", "trn1.32xlarge", "trn2.48xlarge"} {
		kind, _ := node.Find(name)
		root := simulated(t, bin, kind)
		texts, all := printed(t, bin, root, "--dra-shares", "on", "--dra-server", "1.36.3")
		if _, newer := printed(t, bin, root, "--dra-server", "1.37.2"); !apiequality.Semantic.DeepEqual(all, newer) {
			t.Errorf("%s: a server of 1.37 gets %s", name, describe(newer, true))
		}
		for _, text := range texts {
			if _, err := check.StoredText(text); err != nil {
				t.Error(err)
			}
		}
		accepted(t, all)
		want := pool.Share(pool.Slices(nodeName, kind, pool.Partitions{}, pool.Default(), pool.Split))
		if got := describe(all, len(kind.EFAs) > 0); !slices.Equal(got, describe(want, true)) {
			t.Errorf("got %s\nwant %s", got, describe(want, true))
		}
		for _, slice := range all {
			for _, device := range slice.Spec.Devices {
				if *device.Attributes["resourceType"].StringValue != pool.Device {
					continue
				}
				cores := device.Capacity[pool.Cores]
				wanted := want[0].Spec.Devices[0].Capacity[pool.Cores]
				if !apiequality.Semantic.DeepEqual(cores, wanted) || device.AllowMultipleAllocations == nil || !*device.AllowMultipleAllocations ||
					!*device.Attributes["whole"].BoolValue || device.Capacity["memory"].RequestPolicy.Default.Sign() != 0 {
					t.Errorf("%s: %+v", device.Name, device)
				}
			}
		}
		// Older servers get what they got before.
		_, before := printed(t, bin, root, "--dra-shares", "off")
		for _, options := range [][]string{{"--dra-shares", "on", "--dra-server", "1.35.2"}, {"--dra-server", "1.36.3"}} {
			if _, older := printed(t, bin, root, options...); !apiequality.Semantic.DeepEqual(before, older) {
				t.Errorf("%s: with %v it gets %s", name, options, describe(older, true))
			}
		}
	}
}

// --core-devices: cores that are devices of their own, without a counter.
func TestAgentsCoreDevices(t *testing.T) {
	bin := programs(t)
	kind, _ := node.Find("trn2.48xlarge")
	_, all := printed(t, bin, simulated(t, bin, kind), "--core-devices", "0-3", "--dra-shares", "on")
	accepted(t, all)
	kinds := map[string]int{}
	for _, slice := range all {
		for _, device := range slice.Spec.Devices {
			kinds[*device.Attributes["resourceType"].StringValue]++
			if len(device.ConsumesCounters)+len(slice.Spec.SharedCounters) > 0 {
				t.Errorf("%s uses counters", device.Name)
			}
		}
	}
	if kinds[pool.Device] != 12 || kinds[pool.Core] != 16 {
		t.Errorf("devices by kind: %v", kinds)
	}
	s := claims.NewScheduler(all)
	for _, claim := range []*resourceapi.ResourceClaim{claims.Claim(claims.Request(claims.Units, pool.Device, 12)), claims.Claim(claims.Shares(claims.Units, 16, 1))} {
		if results, err := s.Allocate(context.Background(), nodeName, claim); err != nil || results == nil {
			t.Errorf("%+v: %v, %v", claim.Spec, results, err)
		}
	}
}

// A server without counters and taints is given what overlaps with nothing, whatever is asked for.
func TestAgentsSlicesForAnOlderServer(t *testing.T) {
	bin := programs(t)
	kind, _ := node.Find("trn1.32xlarge")
	_, all := printed(t, bin, simulated(t, bin, kind), "--dra-partitions", "all", "--dra-server", "1.35.2")
	accepted(t, all)
	got, want := describe(all, true), describe(pool.Slices(nodeName, kind, pool.Partitions{}, pool.Default(), pool.Split), true)
	if !slices.Equal(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// In an UltraServer the node is one device, whatever else is asked for.
func TestAgentsUltraServer(t *testing.T) {
	bin := programs(t)
	kind, _ := node.Find("trn2u.48xlarge")
	root := simulated(t, bin, kind)
	_, all := printed(t, bin, root, "--dra-partitions", "all")
	accepted(t, all)
	if len(all) != 1 || len(all[0].Spec.Devices) != 1+len(kind.EFAs) || all[0].Spec.Devices[0].Name != "neuron-node" {
		t.Errorf("%d slices: %s", len(all), describe(all, true))
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}

// leaveOutPlaces takes from the mirror's devices the places in the torus that the agent's devices of that name have no room for.
func leaveOutPlaces(mirror, all []*resourceapi.ResourceSlice) {
	full := map[string]resourceapi.Device{}
	for _, slice := range all {
		for _, device := range slice.Spec.Devices {
			if isFull(device) {
				full[device.Name] = device
			}
		}
	}
	for _, slice := range mirror {
		for _, device := range slice.Spec.Devices {
			agents, is := full[device.Name]
			for _, name := range []resourceapi.QualifiedName{"topology_x", "topology_y", "topology4_id", "topology8_id"} {
				if _, has := agents.Attributes[name]; is && !has {
					delete(device.Attributes, name)
				}
			}
		}
	}
}

// describe gives a line for each counter set and device, kind by kind, of devices what schedulers and claims go by.
func describe(all []*resourceapi.ResourceSlice, withEFAs bool) []string {
	var lines []string
	byKind := map[string][]string{}
	for _, slice := range all {
		for _, set := range slice.Spec.SharedCounters {
			lines = append(lines, set.Name+" "+counters(set.Counters))
		}
		for _, device := range slice.Spec.Devices {
			kind := *device.Attributes["resourceType"].StringValue
			if kind == pool.EFA && !withEFAs {
				continue
			}
			line := device.Name + " " + kind
			for _, name := range []resourceapi.QualifiedName{"instanceType", "size", "deviceId", "lnc", "first", "topology_x", "topology_y", "topology4_id", "topology8_id",
				"group2_id", "group3_id", "group4_id", "group6_id", "group8_id", "resource.aws.com/devicegroup1_id", "resource.aws.com/devicegroup4_id", "resource.aws.com/devicegroup8_id",
				"resource.aws.com/devicegroup16_id"} {
				if attribute, has := device.Attributes[name]; has {
					line += fmt.Sprintf(" %s=%s", name, value(attribute))
				}
			}
			for _, use := range device.ConsumesCounters {
				line += " " + use.CounterSet + " " + counters(use.Counters)
			}
			byKind[kind] = append(byKind[kind], line)
		}
	}
	for _, kind := range pool.Default().Kinds {
		lines = append(lines, byKind[kind]...)
	}
	return lines
}

func value(a resourceapi.DeviceAttribute) string {
	switch {
	case a.StringValue != nil:
		return *a.StringValue
	case a.IntValue != nil:
		return strconv.FormatInt(*a.IntValue, 10)
	}
	return "?"
}

func counters(all map[string]resourceapi.Counter) string {
	var texts []string
	for name, counter := range all {
		texts = append(texts, name+":"+counter.Value.String())
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}
