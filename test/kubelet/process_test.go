package kubelettest

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"neuron-agent.test/suite"
)

const patience = suite.Patience

// eventually waits until check returns nil and fails the test with its last error at the deadline.
func eventually(t *testing.T, limit time.Duration, what string, check func() error) {
	t.Helper()
	suite.Eventually(t, limit, what, check)
}

// start runs a program. name becomes part of the log's name: "TestHealth-2-agent.log".
func start(t *testing.T, name string, argv ...string) *suite.Process {
	t.Helper()
	p, err := suite.Start(filepath.Join(env.logs, name+".log"), nil, argv...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// kill ends a program without any chance to tidy up.
func kill(t *testing.T, p *suite.Process) {
	t.Helper()
	if err := p.End(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// run executes a short command.
func run(t *testing.T, path string, arguments ...string) {
	t.Helper()
	if _, err := suite.Run(path, arguments...); err != nil {
		t.Fatal(err)
	}
}
