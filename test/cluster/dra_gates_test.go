package scenarios

import (
	"errors"
	"fmt"
	"maps"
	"syscall"
	"testing"
	"time"

	"neuron-agent.test/cluster/cluster"
)

// TestGatesOff: an API server as of 1.34 and 1.35, without counters and taints, drops those fields and says nothing. The driver sees
// what was stored and withdraws what would overlap; with the gates on everything is back at its next start (by itself within an hour).
func TestGatesOff(t *testing.T) {
	c := cluster.Get(t)
	restart := func(gates string) {
		c.Gates = gates
		if err := errors.Join(c.APIServer.End(syscall.SIGKILL), c.StartAPIServer(), c.RestartClients()); err != nil {
			t.Fatal(err)
		}
	}
	restart("DRAPartitionableDevices=false,DRADeviceTaints=false,DRADeviceTaintRules=false")
	t.Cleanup(func() {
		if c.Gates != "" {
			restart("")
		}
	})
	n := c.Nodes(t, trn1DRA)[0]
	t.Cleanup(func() { c.ExpectNoPods(t, system, draPod) })
	applyDRA(t, c, partitioned)
	applyExamples(t, c)
	plain := map[string]int{"neuron_device": 16, "efa": 8}
	awaitKinds(t, n, plain)
	before, begin := sliceWrites(t, c), time.Now()
	for _, s := range []shape{{template: "neuron-4", counts: cluster.Counts{Devices: 4}, within: 4},
		{template: "neuron-16-efa-8", counts: cluster.Counts{Devices: 16, EFAs: 8}, within: 16},
		{template: "cores-3", none: "cannot allocate all claims"}} {
		t.Run(s.template, func(t *testing.T) { expectShape(t, c, n, s) })
	}
	figure(t, "claims: writes of slices in %v where counters are dropped: %d", time.Since(begin).Round(time.Second), sliceWrites(t, c)-before)
	if writes := sliceWrites(t, c) - before; writes > 2 {
		t.Errorf("%d writes: the driver fights the server", writes)
	}
	restart("")
	c.Kubectl(t, "-n", system, "rollout", "restart", "daemonset/neuron-agent-dra")
	awaitPool(t, n)
	t.Run("with-gates", func(t *testing.T) { expectShape(t, c, n, shape{template: "cores-3", counts: cluster.Counts{Cores: 3}}) })
}

// awaitKinds waits until the node offers exactly so many devices of each kind.
func awaitKinds(t *testing.T, n *cluster.Node, want map[string]int) {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, fmt.Sprintf("%s offers %v", n.Name, want), func() error {
		devices, err := n.Offered()
		if kinds := countKinds(devices); err == nil && !maps.Equal(kinds, want) {
			err = fmt.Errorf("it offers %v", kinds)
		}
		return err
	})
}
