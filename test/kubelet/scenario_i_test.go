package kubelettest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Scenario i: a pod ends, and the next one asks for the same silicon through the other name soon after. With the
// default interval of questions to the kubelet, none that fits is refused. KUBELET_TURNS is the number of pods per type.
func TestNextPodThroughTheOtherName(t *testing.T) {
	const pause = 2500 * time.Millisecond // from the end of one pod to the next one's file: what is tried
	rounds := 3
	if text := os.Getenv("KUBELET_TURNS"); text != "" {
		rounds = number(t, text)
	}
	inf2 := machine{instanceType: "inf2.48xlarge", coresPerDevice: 2, whole: counts{24, 12, 0}}
	for _, m := range append(slices.Clone(machines), inf2) {
		t.Run(m.instanceType, func(t *testing.T) {
			n := startNode(t, m.instanceType)
			n.expectAllocatable(t, patience, m.whole)
			var refused []string
			for i := range rounds {
				a, left := ask{neuron: fmt.Sprint(m.whole.devices)}, m.whole
				left.cores = 0
				if i%2 == 1 {
					a, left = ask{neuronCore: fmt.Sprint(m.whole.cores)}, m.whole
					left.devices = 0
				}
				s := onePod(fmt.Sprintf("turn-%d", i), a)
				n.submit(t, s)
				if message := n.awaitStart(t, s); message != "" {
					refused = append(refused, fmt.Sprintf("%s: %s", s.name, message))
				} else {
					n.expectAllocatable(t, patience, left) // the other list has been told
				}
				_ = os.Remove(n.podFile(s))
				n.awaitGone(t, s)
				time.Sleep(pause)
			}
			t.Logf("FIGURE %s: %d of %d pods that fit were refused, %v after the end of the one before", m.instanceType,
				len(refused), rounds, pause)
			if len(refused) > 0 {
				t.Errorf("refused though they fit:\n%s", strings.Join(refused, "\n"))
			}
		})
	}
}
