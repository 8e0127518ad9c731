package kubelettest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// poll is how often a condition is looked at; patience is how long one may take on a slow machine.
const (
	poll     = 20 * time.Millisecond
	patience = 60 * time.Second
)

// eventually waits until check returns nil and fails the test with its last error at the deadline.
func eventually(t *testing.T, limit time.Duration, what string, check func() error) {
	t.Helper()
	eventuallyEvery(t, poll, limit, what, check)
}

// eventuallyEvery is eventually with another time between two looks.
func eventuallyEvery(t *testing.T, pause, limit time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v still not: %s: %v", limit, what, err)
		}
		<-tick.C
	}
}

// process is a program started by a test, with its output in a log file that outlives the run.
type process struct {
	command *exec.Cmd
	log     string
	ended   chan struct{} // closed once the process was waited for
	err     error         // valid after ended
}

// start runs a program. name becomes part of the log's name: "TestHealth-2-agent.log".
func start(t *testing.T, name, path string, arguments ...string) *process {
	t.Helper()
	p := &process{
		command: exec.Command(path, arguments...),
		log:     filepath.Join(env.logs, name+".log"),
		ended:   make(chan struct{}),
	}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.command.Stdout, p.command.Stderr = log, log
	if err := p.command.Start(); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.ended)
	}()
	return p
}

// end sends a signal and waits for the process; the error is that of exec's Wait (nil for exit code 0).
func (p *process) end(t *testing.T, signal syscall.Signal, limit time.Duration) error {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	select {
	case <-p.ended:
		return p.err
	case <-time.After(limit):
		t.Fatalf("%s did not end within %v of signal %v", p.command.Path, limit, signal)
		return nil
	}
}

func (p *process) running() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended (%v):\n%s", p.command.Path, p.err, p.tail())
	default:
		return nil
	}
}

func (p *process) output() string {
	text, _ := os.ReadFile(p.log)
	return string(text)
}

// tail returns the last lines of the log, for messages.
func (p *process) tail() string {
	lines := strings.Split(strings.TrimSpace(p.output()), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// run executes a short command and returns its output; one that takes longer than patience is ended.
func run(t *testing.T, path string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	output, err := exec.CommandContext(ctx, path, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", path, strings.Join(arguments, " "), err, output)
	}
	return string(output)
}
