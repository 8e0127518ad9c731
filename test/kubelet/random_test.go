package kubelettest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"neuron-agent.test/suite"
	"neuron-agent.test/suite/cores"
)

// weight is what a pod takes from a node at most, cores rounded up to devices.
type weight struct{ devices, efas int }

// randomPod draws a pod of one of the kinds that users write.
func (m machine) randomPod(random *rand.Rand, name string) (podSpec, weight) {
	devices := []int{1, 1, 2, 2, 4, 4, 8}[random.IntN(7)]
	cores := 1 + random.IntN(2*m.coresPerDevice)
	if random.IntN(3) == 0 {
		cores = 8
	}
	ofCores := (cores + m.coresPerDevice - 1) / m.coresPerDevice
	efas := max(1, devices*m.whole.efas/m.whole.devices)
	number := strconv.Itoa
	switch random.IntN(10) {
	case 0, 1, 2:
		return onePod(name, ask{neuron: number(devices), efa: number(efas)}), weight{devices, efas}
	case 3, 4:
		return onePod(name, ask{neuronCore: number(cores), efa: "1"}), weight{ofCores, 1}
	case 5:
		return onePod(name, ask{neuron: number(devices)}), weight{devices, 0}
	case 6:
		return onePod(name, ask{neuronCore: number(cores)}), weight{ofCores, 0}
	case 7: // both resources of one silicon, or interfaces only
		if random.IntN(2) == 0 {
			return onePod(name, ask{efa: "1"}), weight{0, 1}
		}
		return onePod(name, ask{neuron: "1", neuronCore: number(m.coresPerDevice)}), weight{1, 0}
	case 8: // an init container with as much as the application, or more
		s := onePod(name, ask{neuronCore: number(cores)})
		s.init = []container{{"first", ask{neuronCore: number(cores + random.IntN(2))}}}
		return s, weight{cores/m.coresPerDevice + 1, 0}
	default:
		return podSpec{name: name, containers: []container{
			{"devices", ask{neuron: "1", efa: "1"}}, {"cores", ask{neuronCore: number(cores)}}, {"plain", nil},
		}}, weight{1 + ofCores, 1}
	}
}

// stay is what one container had, and when it surely was running.
type stay struct {
	container  string
	begin, end time.Time
	uses       []string // "core 17", "/dev/infiniband/uverbs3"
}

// staysOf reads the reports of a pod that was deleted, once all of its containers have said their last word.
func (n *node) staysOf(t *testing.T, m machine, s podSpec) []stay {
	t.Helper()
	var stays []stay
	for _, c := range slices.Concat(s.init, s.containers) {
		path := filepath.Join(n.reports, s.name+"."+c.name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		one := stay{container: s.name + "." + c.name, begin: modified(path)}
		eventually(t, patience, one.container+" ends", func() error {
			if one.end = modified(path + ".end"); one.end.IsZero() {
				return errors.New("no last word")
			}
			return nil
		})
		one.uses = usesOf(t, suite.ParseReport(string(text)), m.coresPerDevice)
		stays = append(stays, one)
	}
	return stays
}

func modified(path string) time.Time {
	file, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return file.ModTime()
}

// usesOf turns what a container saw into cores of the node and interface nodes.
func usesOf(t *testing.T, found report, coresPerDevice int) []string {
	t.Helper()
	var devices []int
	var uses []string
	for _, path := range found.Open {
		if index, isNeuron := strings.CutPrefix(path, "/dev/neuron"); isNeuron {
			devices = append(devices, number(t, index))
		} else {
			uses = append(uses, path)
		}
	}
	slices.Sort(devices)
	list, err := cores.OfNode(found.Env[visibleCores], devices, coresPerDevice)
	if err != nil {
		t.Fatal(err)
	}
	for _, core := range list {
		uses = append(uses, fmt.Sprintf("core %d", core))
	}
	return uses
}

// expectNeverShared compares all containers that ever used the same thing and returns how many pairs those are.
func expectNeverShared(t *testing.T, history []stay) int {
	t.Helper()
	pairs := 0
	for i, a := range history {
		for _, b := range history[i+1:] {
			shared := slices.IndexFunc(a.uses, func(use string) bool { return slices.Contains(b.uses, use) })
			if shared < 0 {
				continue
			}
			pairs++
			if a.begin.Before(b.end) && b.begin.Before(a.end) {
				t.Errorf("%s in two running containers: %s %v-%v and %s %v-%v", a.uses[shared],
					a.container, a.begin.UnixMilli(), a.end.UnixMilli(), b.container, b.begin.UnixMilli(), b.end.UnixMilli())
			}
		}
	}
	return pairs
}

func TestHistoryFindsWhatIsShared(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	found := report{Env: map[string]string{visibleCores: "0-2,5"}, Open: []string{"/dev/infiniband/uverbs3", "/dev/neuron12", "/dev/neuron3", "/dev/neuron5"}}
	uses := usesOf(t, found, 2)
	if want := []string{"/dev/infiniband/uverbs3", "core 6", "core 7", "core 10", "core 25"}; !slices.Equal(uses, want) {
		t.Errorf("uses %v, want %v", uses, want)
	}
	history := []stay{{"a", at(0), at(10), uses}, {"b", at(10), at(20), []string{"core 7"}}, {"c", at(0), at(20), []string{"core 8"}}}
	if pairs := expectNeverShared(t, history); pairs != 1 {
		t.Errorf("%d pairs", pairs)
	}
}
