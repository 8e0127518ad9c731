package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"neuron-agent.test/suite"
)

const (
	lifeVariable = "ADMISSIONS_LIFE"
	covered      = "/var/lib" // gets a private tmpfs: /var/lib/kubelet is hard-coded in the device manager
)

// privateMounts runs inside a life's namespaces. It returns the place for the simulated host.
func privateMounts() (string, error) {
	if err := suite.Private(covered); err != nil {
		return "", err
	}
	if err := os.MkdirAll(kubeletDir+"/device-plugins", 0o750); err != nil {
		return "", err
	}
	return covered + "/host", os.MkdirAll(podResourcesDir, 0o750)
}

// runAll plays the lives, a few at once, and prints one result per life, the sums and the counts.
func runAll(arguments []string) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("needs root")
	}
	for _, path := range []string{o.bin, o.logs} {
		if absolute, err := filepath.Abs(path); err != nil || strings.HasPrefix(absolute+"/", covered+"/") {
			return fmt.Errorf("%s is below %s, which the nodes have to themselves: put it elsewhere", path, covered)
		}
	}
	if o.seed == 0 {
		o.seed = 1 + rand.Uint64N(1<<31)
	}
	lives := o.lives()
	if len(lives) == 0 {
		return fmt.Errorf("there is no kind of node %q", o.only)
	}
	fmt.Printf("seed %d: %d lives, %d pods, %d kubelet restarts\n", o.seed, len(lives), o.admissions, o.restarts)

	sum, failed := newTally(), 0
	var mutex sync.Mutex
	var group sync.WaitGroup
	places := make(chan bool, o.parallel)
	for _, one := range lives {
		group.Add(1)
		go func() {
			defer group.Done()
			places <- true
			defer func() { <-places }()
			t, err := isolated(one)
			mutex.Lock()
			defer mutex.Unlock()
			if !printLife(o, one, t, err) {
				failed++
			}
			if t != nil {
				sum.add(t)
			}
		}()
	}
	group.Wait()
	fmt.Println("all lives together:")
	sum.print(os.Stdout)
	fmt.Printf("%d passed, %d failed, 0 skipped\n", len(lives)-failed, failed)
	if failed > 0 {
		os.Exit(1)
	}
	return nil
}

// lives shares the work among the kinds of node. On every second one the agent is never restarted, so that leaks show.
func (o runOptions) lives() []lifeOptions {
	var chosen []lifeOptions
	for i, m := range machines {
		if o.only == "" || m.name == o.only {
			chosen = append(chosen, lifeOptions{Machine: m.name, Seed: o.seed + uint64(i)*1000003, Steady: i%2 == 1, Minutes: o.minutes, Fault: o.fault, Bin: o.bin, Logs: o.logs})
		}
	}
	for i := range chosen {
		share := 0
		for _, m := range machines {
			share += weight(m.name)
		}
		if o.only != "" {
			share = weight(o.only)
		}
		own := weight(chosen[i].Machine)
		chosen[i].Admissions = (o.admissions*own + share - 1) / share
		chosen[i].Restarts = (o.restarts*own + share - 1) / share
	}
	return chosen
}

// weight: small nodes have room for few pods at once.
func weight(name string) int {
	if name == "trn1.2xlarge" {
		return 1
	}
	return 5
}

func printLife(o runOptions, one lifeOptions, t *tally, err error) bool {
	if err != nil {
		fmt.Printf("FAIL: %s: %v\n", one.Machine, err)
		return false
	}
	verdict := "PASS"
	if len(t.Violations) > 0 {
		verdict = "FAIL"
	}
	fmt.Printf("%s: %s (%.0f s)\n", verdict, one.Machine, t.Seconds)
	var text bytes.Buffer
	t.print(&text)
	fmt.Printf("  %s\n", strings.ReplaceAll(strings.TrimSpace(text.String()), "\n", "\n  "))
	fmt.Printf("  agent at first and at most: %+v, %+v\n", t.AgentLeast, t.AgentMost)
	for _, violation := range t.Violations {
		fmt.Printf("  VIOLATION %s", violation)
	}
	if len(t.Violations) > 0 {
		fmt.Printf("  again: run.sh --seed %d --only %s --admissions %d --restarts %d\n", o.seed, one.Machine, one.Admissions, one.Restarts)
	}
	return verdict == "PASS"
}

// isolated runs one life as the first process of namespaces of its own, with which all of its processes end.
func isolated(one lifeOptions) (*tally, error) {
	text, err := json.Marshal(one)
	if err != nil {
		return nil, err
	}
	command := exec.Command("/proc/self/exe", "life")
	command.Env = append(os.Environ(), lifeVariable+"="+string(text))
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, os.Stdout
	if err := suite.Isolated(command, 0); err != nil {
		return nil, err
	}
	t := newTally()
	return t, json.Unmarshal(output.Bytes(), t)
}
