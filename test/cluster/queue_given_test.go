package scenarios

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"neuron-agent.test/cluster/cluster"
)

// stay is one container's time on a device.
type stay struct {
	pod        string
	begin, end time.Time
	whole      bool // it was given the device, not cores of it
}

// expectGiven: every pod that ran had what it asked for, and nobody was on a device that another had whole. Pods that share
// a device by its cores are not told apart here.
func expectGiven(t *testing.T, n *cluster.Node, pods []*core.Pod) {
	t.Helper()
	stays := map[string][]stay{}
	for _, pod := range pods {
		ask := pod.Spec.Containers[0].Resources.Limits
		devices, cores, efas := ask[cluster.Neuron], ask[cluster.NeuronCore], ask[cluster.EFA]
		found, err := readProbe(n, pod.Name)
		if err != nil {
			t.Errorf("%s: %v", pod.Name, err)
			continue
		}
		wanted := cores.Value()
		if devices.Value() > 0 {
			wanted = devices.Value() * coresPerDevice(n)
		}
		if found.cores != wanted || found.verbs != efas.Value() || devices.Value() > 0 && int64(len(found.devices)) != devices.Value() {
			t.Errorf("%s asked for %v, got %+v", pod.Name, ask, found)
		}
		for _, device := range found.devices {
			stays[device] = append(stays[device], stay{pod.Name, found.begin, found.end, devices.Value() > 0})
		}
	}
	for device, all := range stays {
		for i, a := range all {
			for _, b := range all[:i] {
				if (a.whole || b.whole) && a.begin.Before(b.end) && b.begin.Before(a.end) {
					t.Errorf("%s %s: %s %v to %v and %s %v to %v", n.Name, device, a.pod, a.begin, a.end, b.pod, b.begin, b.end)
				}
			}
		}
	}
}

func coresPerDevice(n *cluster.Node) int64 {
	if strings.HasPrefix(n.InstanceType, "trn2") || strings.HasPrefix(n.InstanceType, "inf1") {
		return 4
	}
	return 2
}

// probed is what a probe that ended left.
type probed struct {
	begin, end   time.Time
	devices      []string
	cores, verbs int64
}

func readProbe(n *cluster.Node, pod string) (probed, error) {
	path := n.Disk("/var/lib/probe/" + pod + ".main")
	text, err := os.ReadFile(path)
	if err != nil {
		return probed{}, err
	}
	begin, err := os.Stat(path)
	if err != nil {
		return probed{}, err
	}
	end, err := os.Stat(path + ".end")
	if err != nil {
		return probed{}, err
	}
	found := probed{begin: begin.ModTime(), end: end.ModTime()}
	for _, line := range strings.Split(string(text), "\n") {
		if device, is := strings.CutPrefix(line, "open /dev/neuron"); is {
			found.devices = append(found.devices, device)
		}
		if strings.HasPrefix(line, "open /dev/infiniband/uverbs") {
			found.verbs++
		}
		if ranges, is := strings.CutPrefix(line, "env NEURON_RT_VISIBLE_CORES="); is {
			if found.cores, err = countRanges(ranges); err != nil {
				return probed{}, err
			}
		}
	}
	return found, nil
}

// countRanges counts the numbers in "0-3,6".
func countRanges(text string) (int64, error) {
	count := int64(0)
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q: %w", text, err)
		}
		b, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q: %w", text, err)
		}
		count += b - a + 1
	}
	return count, nil
}
