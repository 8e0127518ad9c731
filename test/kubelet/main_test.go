// Package kubelettest proves the agent against a real kubelet and a real containerd: what a container
// sees (environment, device nodes, whether they open) and what the kubelet's PodResources service says.
//
// The test binary starts itself again inside its own mount and PID namespace, so that /var/lib/kubelet,
// /run/containerd and /var/log of the machine are never touched and every process ends with it.
// Needs root. Environment (set by run.sh): NEURON_BIN directory with neuron-agent and neuron-sim,
// KUBELET_BIN the kubelet, KUBELET_LOGS directory for the logs of all programs.
package kubelettest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"neuron-agent.test/suite"
)

// programs are the binaries under test and the place for their logs.
type programs struct {
	agent, sim, kubelet string
	logs                string
}

// inside is what TestMain prepared in the private namespaces.
type inside struct {
	programs
	work       string // private tmpfs; short, since sockets live below it
	cgroupRoot string // absolute cgroup path for the kubelet, present in every hierarchy
	image      string // path of the image archive
}

var env inside

func TestMain(m *testing.M) {
	if suite.Work() == "" {
		code, err := runIsolated()
		if err != nil {
			fmt.Fprintln(os.Stderr, "kubelet suite:", err)
		}
		os.Exit(code)
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet suite: cannot prepare:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func prepare() error {
	bin := os.Getenv("NEURON_BIN")
	env = inside{
		programs: programs{
			agent:   filepath.Join(bin, "neuron-agent"),
			sim:     filepath.Join(bin, "neuron-sim"),
			kubelet: os.Getenv("KUBELET_BIN"),
			logs:    os.Getenv("KUBELET_LOGS"),
		},
		work:       suite.Work(),
		cgroupRoot: suite.Group(),
	}
	for _, path := range []string{env.agent, env.sim, env.kubelet} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%w (see run.sh for NEURON_BIN and KUBELET_BIN)", err)
		}
	}
	if err := os.MkdirAll(env.logs, 0o755); err != nil {
		return err
	}
	if err := suite.Private(append([]string{env.work}, covered...)...); err != nil {
		return err
	}
	if err := suite.CoverKernel("/proc", env.work, nil); err != nil {
		return err
	}
	env.image = filepath.Join(env.work, "image.tar")
	return suite.WriteProbeImage(env.image)
}
