package scenarios

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"neuron-agent.test/cluster/cluster"
)

// Chips with all signals, and a logical core for each physical one, so that a core's faults are a core's.
var reportingChips = []string{"--driver", "2.30.2.0", "--lnc", "1"}

// Both sources of faults, the driver's files and the kernel log, and shorter waits. The log of a simulated node is a file, which a pod
// sees through the node's /dev alone.
const reportingManifest = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../node-status]
components: [../../components/kernel-log, ../../components/lnc-file]
patches:
  - target: {kind: DaemonSet}
    patch: |-
      - {op: add, path: /spec/template/spec/containers/0/args/-, value: --scan-interval=1s}
      - {op: add, path: /spec/template/spec/volumes/-, value: {name: dev, hostPath: {path: /dev}}}
      - {op: add, path: /spec/template/spec/containers/0/volumeMounts/-, value: {name: dev, mountPath: /dev}}
`

// faultReports is one run: the nodes, the rows of docs/faults.md, and the scraped series.
type faultReports struct {
	c     *cluster.Cluster
	nodes []*cluster.Node
	rows  map[string]row
	found []firing
}

// firing is a series as scraped and the alert that it has to fire.
type firing struct{ name, alert, series string }

// TestFaultsReported walks each row of docs/faults.md: a fault is seen in allocatable, the metric, the condition, an event, an alert
// and neuron-ls, with the same reason and the same advice; healed, all of them return.
func TestFaultsReported(t *testing.T) {
	x := &faultReports{c: cluster.Get(t), rows: readFaults(t)}
	// An agent that starts waits for up to a minute, by the name of its node, before it writes the status: with these for two seconds.
	x.nodes = x.c.Nodes(t, cluster.Spec{Name: "faults-by-files", InstanceType: "trn2.48xlarge", Simulation: reportingChips},
		cluster.Spec{Name: "faults-by-log-file", InstanceType: "trn2.48xlarge", Simulation: reportingChips})
	t.Cleanup(func() {
		for _, n := range x.nodes {
			x.c.RemoveNode(t, n) // its kernel log is no kernel's any more
		}
	})
	for _, n := range x.nodes {
		useLogFile(t, n)
	}
	dir := cluster.Copy(t, "manifests")
	overlay := filepath.Join(dir, "manifests/overlays/fault-reports")
	text := x.c.Shell(t, `mkdir "$DIR"; echo "$TEXT" > "$DIR/kustomization.yaml"; kubectl kustomize "$DIR"`, "DIR="+overlay, "TEXT="+reportingManifest)
	file := filepath.Join(dir, "fault-reports.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	x.c.Apply(t, file)
	// From the start: a heartbeat that has stood still for a while is given ten times as long before it counts as stopped.
	defer beat(x.nodes[byFile], 5)()
	stop := beat(x.nodes[byLog], -1)
	whole := cluster.Counts{Cores: 128, Devices: 16, EFAs: 16}
	for _, n := range x.nodes {
		n.ExpectAllocatable(t, whole)
		awaitCondition(t, x.c, n, neuronHealth, core.ConditionFalse, "NeuronHasNoError")
	}
	began := time.Now()
	x.nodes[byLog].Inject(t, hangOfNode.unit, hangOfNode.set)
	x.expectReported(t, hangOfNode)
	x.nodes[byLog].Inject(t, "host", "heal")
	time.Sleep(time.Until(began.Add(5 * time.Second))) // some beats were seen
	stop()

	for round, conditions := range [][2]string{calm: {"SomeDevicesNotHealthy", "NeuronHasNoError"},
		low: {"BelowThreshold", "HwDmaAbortError"}, grave: {"SramEccUncorrected", "SramEccUncorrected"}} {
		x.makeRound(t, round, conditions)
	}
	cluster.Figure(t, "all faults but heartbeats reported", time.Since(began))
	for _, f := range faults {
		if f.round == beside {
			x.expectReported(t, f)
		}
	}
	for i, n := range x.nodes {
		n.ExpectAllocatable(t, left(whole, i))
	}
	x.expectListed(t)
	x.expectFiring(t)
	for _, n := range x.nodes {
		n.Inject(t, "host", "heal")
		defer beat(n, -1)()
	}
	for _, n := range x.nodes {
		n.ExpectAllocatable(t, whole)
		awaitCondition(t, x.c, n, neuronHealth, core.ConditionFalse, "NeuronHasNoError")
		cluster.Eventually(t, cluster.Patience, "the metrics say healthy", func() error { return x.allHealthy(t, n) })
	}
}

// useLogFile puts a file of records in the place of the kernel's device.
func useLogFile(t *testing.T, n *cluster.Node) {
	t.Helper()
	path := filepath.Join(n.Host(), "dev/kmsg")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("6,1,0,-;Neuron Driver Started with Version:2.30.2.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// beat lets the firmware of all devices but one live until the returned function is called.
func beat(n *cluster.Node, but int) (stop func()) {
	end := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		for value := 100; ; value = 100 + (value+1)%100 {
			for device := range 16 {
				path := filepath.Join(n.Host(), "sys/class/neuron_device", fmt.Sprintf("neuron%d", device),
					"stats/hardware/health_status/healthcheck_heartbeat")
				if file, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil && device != but { // one may have vanished
					_, _ = fmt.Fprintln(file, value) // in one piece: a reader sees the old or the new one
					_ = file.Close()
				}
			}
			select {
			case <-end:
				return
			case <-time.After(time.Second):
			}
		}
	})
	return sync.OnceFunc(func() { close(end); beating.Wait() })
}

// left is what of a node stays allocatable with all its faults.
func left(whole cluster.Counts, node int) cluster.Counts {
	for _, f := range faults {
		if f.node == node && f.takes != nothing {
			whole.Devices--
			whole.Cores -= map[int]int64{oneCore: 1, oneDevice: 8}[f.takes]
		}
	}
	return whole
}

// makeRound makes all faults of a round and waits until each is reported everywhere.
func (x *faultReports) makeRound(t *testing.T, round int, conditions [2]string) {
	t.Helper()
	for _, f := range faults {
		if f.round == round {
			x.nodes[f.node].Inject(t, f.unit, f.set)
		}
	}
	for i, n := range x.nodes {
		x.expectCondition(t, n, conditions[i])
	}
	for _, f := range faults {
		if f.round == round {
			t.Run(f.name(), func(t *testing.T) { x.expectReported(t, f) })
		}
	}
}

// expectCondition: the status is that of the rows of this reason, and the message has an advice.
func (x *faultReports) expectCondition(t *testing.T, n *cluster.Node, reason string) {
	t.Helper()
	status := core.ConditionTrue
	if slices.Contains([]string{"SomeDevicesNotHealthy", "NeuronHasNoError", "BelowThreshold"}, reason) {
		status = core.ConditionFalse
	}
	awaitCondition(t, x.c, n, neuronHealth, status, reason)
	if said := conditionOf(nodeOf(t, x.c, n), neuronHealth); reason != "NeuronHasNoError" && !strings.Contains(said.Message, "what to do: ") {
		t.Errorf("the condition does not say what to do: %+v", said)
	}
}

// expectReported: metric and event, and the document says so.
func (x *faultReports) expectReported(t *testing.T, f fault) {
	t.Helper()
	n, row := x.nodes[f.node], x.rows[f.row]
	wanted := map[int]string{calm: "False", low: "threshold", grave: "True", beside: "threshold"}[f.round]
	if f.unit == "host" {
		wanted = map[int]string{calm: "not affected", low: "True, unless a device needs another instance"}[f.round]
	}
	if f.round == beside && f.takes == nothing {
		wanted = "False"
	}
	if row.condition != wanted {
		t.Errorf("docs/faults.md: the condition with %s is %q, want %q", f.row, row.condition, wanted)
	}
	kept := map[int]string{nothing: "all stay", oneCore: "the core leaves `neuroncore`, its device leaves `neuron`",
		oneDevice: "the device"}[f.takes]
	if !strings.Contains(row.kubelet, kept) {
		t.Errorf("docs/faults.md: %s: %q, want %q", f.row, row.kubelet, kept)
	}
	var series string
	cluster.Eventually(t, cluster.Patience, "the metric of "+f.name(), func() (err error) {
		series, err = x.seriesOf(t, f)
		return err
	})
	x.found = append(x.found, firing{f.name(), row.alert, series})
	cluster.Eventually(t, statusPatience, f.eventReason()+" is reported", func() error {
		unit := regexp.MustCompile(`\bneuron` + f.device() + `\b`) // one event names all devices that have the fault
		if f.unit == "host" {
			unit = regexp.MustCompile("^node: ")
		}
		for _, event := range eventsOf(t, x.c) {
			if event.InvolvedObject.Name == n.Name && event.Reason == f.eventReason() && event.Type == "Warning" && unit.MatchString(event.Message) {
				if !strings.Contains(event.Message, row.advice) {
					t.Errorf("the event does not say %q: %s", row.advice, event.Message)
				}
				return nil
			}
		}
		return fmt.Errorf("no event of %s", unit)
	})
}

// seriesOf is the sample by which the agent reports a fault, as scraped.
func (x *faultReports) seriesOf(t *testing.T, f fault) (string, error) {
	text, err := x.scrape(t, x.nodes[f.node])
	if err != nil {
		return "", err
	}
	metric, place := "neuron_device_health_info{", `neuron_device_index="`+f.device()+`"`
	if f.unit == "host" {
		metric, place = "neuron_kernel_log_health_info{", ""
	}
	says := func(metric string) string {
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, metric) && strings.Contains(line, place) && strings.Contains(line, `reason="`+f.reason()+`"`) &&
				strings.HasSuffix(line, " 1") {
				return strings.TrimSuffix(line, " 1")
			}
		}
		return ""
	}
	series := says(metric)
	if series == "" {
		return "", fmt.Errorf("no %s of %s with reason %s", metric, f.unit, f.reason())
	}
	if f.takes == oneCore && says("neuron_core_health_info{") == "" {
		return "", fmt.Errorf("no core of %s has reason %s", f.unit, f.reason())
	}
	return series, nil
}

func (x *faultReports) scrape(t *testing.T, n *cluster.Node) (string, error) {
	return x.c.TryKubectl("get", "--raw", "/api/v1/namespaces/"+system+"/pods/"+agentPodOn(t, x.c, n).Name+":8000/proxy/metrics")
}

func (x *faultReports) allHealthy(t *testing.T, n *cluster.Node) error {
	text, err := x.scrape(t, n)
	if err != nil {
		return err
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, "_health_info{") && !strings.Contains(line, `state="healthy"`) && !strings.HasPrefix(line, "efa_") {
			return fmt.Errorf("still %s", line)
		}
	}
	return nil
}

// expectListed: neuron-ls on the node says it too, of what one look can see, and of the node the graver line. The agent's own pod is
// not asked: it has no device node.
func (x *faultReports) expectListed(t *testing.T) {
	t.Helper()
	for i, n := range x.nodes {
		shown, err := n.List("--health")
		for _, f := range faults {
			wanted := []string{f.reason(), x.rows[f.row].advice}
			if f.shown != "" {
				wanted = []string{f.shown}
			}
			for _, words := range wanted {
				if f.node == i && f.shown != "-" && f.row != "of the node, `kernel_log_error`" && !strings.Contains(shown, words) {
					t.Errorf("%s: neuron-ls does not say %q (%v):\n%s", f.name(), words, err, shown)
				}
			}
		}
	}
}

// expectFiring: Prometheus, with the rules as shipped, fires the alert of each row on its series as scraped, and the runbook of the
// rule has the same advice.
func (x *faultReports) expectFiring(t *testing.T) {
	t.Helper()
	rules := cluster.Manifest("monitoring/neuron-agent.rules.yaml")
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range x.rows {
		_, rule, _ := strings.Cut(string(text), "alert: "+row.alert+"\n")
		rule, _, _ = strings.Cut(rule, "- alert: ")
		if !strings.Contains(strings.ToLower(rule), strings.ToLower(row.advice)) {
			t.Errorf("%s: the rule of %s does not say %q:\n%s", name, row.alert, row.advice, rule)
		}
	}
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Log("SKIPPED: whether the alerts fire: no promtool")
		return
	}
	test := fmt.Sprintf("rule_files: [%q]\nevaluation_interval: 15s\ntests:\n", rules)
	for _, f := range x.found {
		series := strings.Replace(f.series, "{", `{instance="n", job="neuron-agent", `, 1)
		test += fmt.Sprintf("- name: %q\n  interval: 15s\n  input_series: [{series: '%s', values: '1x80'}]\n  promql_expr_test:\n"+
			"  - expr: count(ALERTS{alertname=%q, alertstate=\"firing\"})\n    eval_time: 15m\n    exp_samples: [{labels: '{}', value: 1}]\n",
			f.name, series, f.alert)
	}
	file := filepath.Join(t.TempDir(), "firing.yaml")
	if err := os.WriteFile(file, []byte(test), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("promtool", "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("not every alert fires: %s\n%s", output, test)
	}
}
