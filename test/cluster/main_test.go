// Package scenarios is what must be true of the agent in a real cluster; see the package cluster for what that is made of.
package scenarios

import (
	"testing"

	"neuron-agent.test/cluster/cluster"
)

func TestMain(m *testing.M) { cluster.Main(m) }
