package main

import (
	"os"
	"strings"
	"time"

	"neuron-agent.test/suite"
)

const scanInterval = 500 * time.Millisecond

func startAgent(path, root, log string) (*suite.Process, error) {
	return suite.Start(log, nil, path, "run", "--root", root, "--kubelet-dir", kubeletDir, "--scan-interval", scanInterval.String(),
		"--log-level", logLevel())
}

// footprint is what could leak.
type footprint struct {
	Descriptors, Threads, ResidentKiB, Sockets int
}

func footprintOf(pid int) (footprint, error) {
	var f footprint
	threads, err := suite.Status(pid, "Threads")
	if err != nil {
		return f, err
	}
	resident, err := suite.Status(pid, "VmRSS")
	if err != nil {
		return f, err
	}
	f.Descriptors, f.Threads, f.ResidentKiB = suite.Descriptors(pid), int(threads), int(resident)
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
