package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const scanInterval = 500 * time.Millisecond

// agentProcess is one neuron-agent.
type agentProcess struct {
	command *exec.Cmd
	begin   time.Time
	gone    chan struct{}
}

func startAgent(path, root string, log *os.File) (*agentProcess, error) {
	a := &agentProcess{begin: time.Now(), gone: make(chan struct{})}
	a.command = exec.Command(path, "run", "--root", root, "--kubelet-dir", kubeletDir, "--scan-interval", scanInterval.String(),
		"--log-level", logLevel())
	a.command.Stdout, a.command.Stderr = log, log
	if err := a.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = a.command.Wait()
		close(a.gone)
	}()
	return a, nil
}

func (a *agentProcess) alive() bool {
	select {
	case <-a.gone:
		return false
	default:
		return true
	}
}

func (a *agentProcess) signal(s syscall.Signal) { _ = a.command.Process.Signal(s) }

// wait tells how the process ended; an error when it does not within the limit.
func (a *agentProcess) wait(limit time.Duration) (*os.ProcessState, error) {
	select {
	case <-a.gone:
		return a.command.ProcessState, nil
	case <-time.After(limit):
		return nil, fmt.Errorf("the agent did not end within %v", limit)
	}
}

// footprint is what could leak.
type footprint struct {
	Descriptors, Threads, ResidentKiB, Sockets int
}

func (a *agentProcess) footprint() (footprint, error) {
	var f footprint
	directory := filepath.Join("/proc", strconv.Itoa(a.command.Process.Pid))
	descriptors, err := os.ReadDir(directory + "/fd")
	if err != nil {
		return f, err
	}
	f.Descriptors = len(descriptors)
	status, err := os.ReadFile(directory + "/status")
	if err != nil {
		return f, err
	}
	for _, line := range strings.Split(string(status), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "Threads:":
			f.Threads, _ = strconv.Atoi(fields[1])
		case "VmRSS:":
			f.ResidentKiB, _ = strconv.Atoi(fields[1])
		}
	}
	entries, err := os.ReadDir(kubeletDir + "/device-plugins") // nothing else here is the agent's
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "neuron-agent") {
			f.Sockets++
		}
	}
	return f, err
}

// logLevel: debug makes the agent write about every answer.
func logLevel() string {
	if level := os.Getenv("ADMISSIONS_LOG_LEVEL"); level != "" {
		return level
	}
	return "info"
}
