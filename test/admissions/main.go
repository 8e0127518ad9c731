// Command admissions plays whole lives of nodes on the kubelet's real device manager, Topology Manager and PodResources
// service and the real neuron-agent, with faults of both and of the hardware at random times, and judges every container.
//
//	admissions run      plays one life per kind of node, several at once (see run.sh for the options)
//	admissions life     one life, inside namespaces of its own
//	admissions kubelet  the kubelet's part of a node, killed and started again by a life
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
)

func main() {
	if len(os.Args) < 2 {
		fail(errors.New("usage: admissions run|life|kubelet (see run.sh)"))
	}
	var err error
	switch os.Args[1] {
	case "run":
		err = runAll(os.Args[2:])
	case "life":
		err = runLife()
	case "kubelet":
		err = runKubelet()
	default:
		err = fmt.Errorf("unknown command %q", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "admissions:", err)
	os.Exit(1)
}

// runLife is told what to do in a line of JSON and ends with a line of JSON.
func runLife() error {
	var o lifeOptions
	if err := json.Unmarshal([]byte(os.Getenv(lifeVariable)), &o); err != nil {
		return err
	}
	root, err := privateMounts()
	if err != nil {
		return err
	}
	for _, m := range machines {
		if m.name != o.Machine {
			continue
		}
		t, err := live(o, m, root, os.Stderr)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(t)
	}
	return fmt.Errorf("unknown machine %q", o.Machine)
}

// options of "admissions run".
type runOptions struct {
	seed       uint64
	admissions int
	restarts   int
	minutes    float64
	only       string
	parallel   int
	fault      string
	bin, logs  string
}

func parse(arguments []string) (runOptions, error) {
	var o runOptions
	flags := flag.NewFlagSet("admissions run", flag.ContinueOnError)
	flags.Uint64Var(&o.seed, "seed", 0, "draws the same pods and faults again (their times stay the machine's own); 0: a new one")
	flags.IntVar(&o.admissions, "admissions", 3000, "pods admitted in all lives together")
	flags.IntVar(&o.restarts, "restarts", 60, "kubelet restarts in all lives together")
	flags.Float64Var(&o.minutes, "minutes", 0, "ends every life after so long; 0: when the counts are reached")
	flags.StringVar(&o.only, "only", "", "one kind of node, for example trn1.32xlarge")
	flags.IntVar(&o.parallel, "parallel", 3, "lives at once")
	flags.StringVar(&o.fault, "fault", "", "this kind of fault only: kill, terminate, stop, device, efa, none")
	flags.StringVar(&o.bin, "bin", "", "directory with neuron-agent and neuron-sim")
	flags.StringVar(&o.logs, "logs", "", "directory for the logs of all programs")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if o.bin == "" || o.logs == "" || o.admissions < 1 || o.parallel < 1 {
		return o, errors.New("--bin and --logs are needed, --admissions and --parallel must be at least 1")
	}
	if o.fault != "" && !slices.Contains(faults, o.fault) {
		return o, fmt.Errorf("there is no fault %q", o.fault)
	}
	return o, nil
}
