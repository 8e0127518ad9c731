package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	Poll = 20 * time.Millisecond // between two looks at a condition

	// Patience is how long something may take on a slow machine before a test gives up: longer than the 90 s after which
	// the kubelet looks at a pod again whose event it did not act on.
	Patience = 150 * time.Second
)

// Eventually waits until check returns nil and fails the test with its last error at the deadline.
func Eventually(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	if err := Wait(limit, what, check); err != nil {
		t.Fatal(err)
	}
}

type permanent struct{ error }

// Permanent marks an error that waiting does not cure.
func Permanent(err error) error { return permanent{err} }

// Wait is Eventually where there is no test to fail. After a second it looks less often: what asks takes processor time from what
// is waited for.
func Wait(limit time.Duration, what string, check func() error) error {
	return wait(Poll, 5*Poll, limit, what, check)
}

// WaitEvery is Wait with another time between two looks.
func WaitEvery(pause, limit time.Duration, what string, check func() error) error {
	return wait(pause, pause, limit, what, check)
}

func wait(pause, later, limit time.Duration, what string, check func() error) error {
	begin := time.Now()
	for {
		err := check()
		if err == nil {
			return nil
		}
		var final permanent
		if errors.As(err, &final) {
			return fmt.Errorf("never: %s: %w", what, err)
		}
		waited := time.Since(begin)
		if waited > limit {
			return fmt.Errorf("after %v still not: %s: %w", limit, what, err)
		}
		if waited > time.Second {
			pause = later
		}
		time.Sleep(pause)
	}
}

// Process is a program of the cluster, with its output in a log file that outlives the run.
type Process struct {
	Pid    int // in the suite's PID namespace
	Log    string
	Parent int           // another process, as nsenter, that waits for this one and stops when it does; 0: none
	ended  chan struct{} // closed once the process was waited for
	err    error         // valid after ended
}

// Start runs a program; argv[0] is a path or a name in PATH. The log is appended to, so that restarts follow each other in one
// file.
func Start(log string, environment []string, argv ...string) (*Process, error) {
	p := &Process{Log: log, ended: make(chan struct{})}
	file, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	command := exec.Command(argv[0], argv[1:]...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = file, file
	if err := command.Start(); err != nil {
		return nil, err
	}
	p.Pid = command.Process.Pid
	go func() {
		p.err = command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Signal sends a signal; that the process has ended is no error.
func (p *Process) Signal(signal syscall.Signal) error {
	if err := p.Running(); err != nil {
		return nil
	}
	if err := syscall.Kill(p.Pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %v to %s: %w", signal, p.Log, err)
	}
	if p.Parent != 0 && signal != syscall.SIGSTOP {
		_ = syscall.Kill(p.Parent, syscall.SIGCONT)
	}
	return nil
}

// Pause stops the program as a debugger would, Resume lets it go on.
func (p *Process) Pause() error  { return p.Signal(syscall.SIGSTOP) }
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// End sends a signal and waits until the process has ended.
func (p *Process) End(signal syscall.Signal) error {
	if err := p.Signal(signal); err != nil {
		return err
	}
	return p.Await(Patience)
}

// Await waits until the process has ended.
func (p *Process) Await(limit time.Duration) error {
	select {
	case <-p.ended:
		return nil
	case <-time.After(limit):
		return fmt.Errorf("%s: did not end within %v", p.Log, limit)
	}
}

// Running returns nil, or an error with the end of the log when the program has ended.
func (p *Process) Running() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended (%v):\n%s", p.Log, p.err, p.Tail())
	default:
		return nil
	}
}

// Exit tells how the program ended, nil for status 0. Only once it has, as after End.
func (p *Process) Exit() error { return p.err }

// Output returns the whole log.
func (p *Process) Output() string {
	text, _ := os.ReadFile(p.Log)
	return string(text)
}

// Tail returns the last lines of the log, for messages.
func (p *Process) Tail() string {
	lines := strings.Split(strings.TrimSpace(p.Output()), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// Run executes a short command and returns its whole output; one that takes longer than Patience is ended.
func Run(path string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	output, err := exec.CommandContext(ctx, path, arguments...).CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("%s %s: %w\n%s", path, strings.Join(arguments, " "), err, output)
	}
	return string(output), nil
}
