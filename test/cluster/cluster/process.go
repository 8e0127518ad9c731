package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	poll = 20 * time.Millisecond // between two looks at a condition

	// Patience is how long something may take on a slow machine before a test gives up.
	Patience = 90 * time.Second
)

// Eventually waits until check returns nil and fails the test with its last error at the deadline.
func Eventually(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	if err := wait(limit, what, check); err != nil {
		t.Fatal(err)
	}
}

// permanent marks an error that waiting does not cure.
type permanent struct{ error }

func wait(limit time.Duration, what string, check func() error) error {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		var final permanent
		if errors.As(err, &final) {
			return fmt.Errorf("never: %s: %w", what, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %v still not: %s: %w", limit, what, err)
		}
		<-tick.C
	}
}

// Figure prints a measured value; run.sh shows these lines.
func Figure(t testing.TB, what string, value time.Duration) {
	t.Helper()
	t.Logf("FIGURE %s: %v", what, value.Round(time.Millisecond))
}

// Process is a program of the cluster, with its output in a log file that outlives the run.
type Process struct {
	Pid    int // in the suite's PID namespace
	Log    string
	parent int           // of a node's program: the nsenter that waits for it, which stops when the program does
	ended  chan struct{} // closed once the process was waited for
	err    error         // valid after ended
}

// startProcess runs a program; argv[0] is a path. The log is appended to, so that restarts follow each other in one file.
func startProcess(log string, environment []string, argv ...string) (*Process, error) {
	p := &Process{Log: filepath.Join(env.logs, log+".log"), ended: make(chan struct{})}
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
	if p.parent != 0 && signal != syscall.SIGSTOP {
		_ = syscall.Kill(p.parent, syscall.SIGCONT)
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
	select {
	case <-p.ended:
		return nil
	case <-time.After(Patience):
		return fmt.Errorf("%s: did not end within %v of signal %v", p.Log, Patience, signal)
	}
}

// Running returns nil, or an error with the end of the log when the program has ended.
func (p *Process) Running() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended (%v):\n%s", p.Log, p.err, p.tail())
	default:
		return nil
	}
}

func (p *Process) tail() string {
	text, _ := os.ReadFile(p.Log)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// run executes a short command and returns its whole output; one that takes longer than Patience is ended.
func run(path string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	output, err := exec.CommandContext(ctx, path, arguments...).CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("%s %s: %w\n%s", path, strings.Join(arguments, " "), err, output)
	}
	return string(output), nil
}

// expectOK asks a health endpoint.
func expectOK(url string) error {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return nil
}

// processInfo is what /proc says of one process.
type processInfo struct {
	pid, parent int
	name        string
	group       string // its cgroup files, one line per hierarchy
}

// processes lists all living processes of the suite.
func processes() []processInfo {
	var alive []processInfo
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue
		}
		text := string(stat)
		open, last := strings.Index(text, "("), strings.LastIndex(text, ") ")
		if open < 0 || last < open {
			continue
		}
		fields := strings.Fields(text[last+2:])
		if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		group, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cgroup"))
		parent, _ := strconv.Atoi(fields[1])
		alive = append(alive, processInfo{pid, parent, text[open+1 : last], string(group)})
	}
	return alive
}
