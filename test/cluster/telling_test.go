package scenarios

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"neuron-agent.test/cluster/cluster"
)

// fault is a fault of neuron3 and what everybody is told of it.
type fault struct {
	set       string // of neuron-sim set
	reason    string // the code in metrics and tables
	condition core.ConditionStatus
	said      string // the reason of condition and event
	alert     string
	advice    string // what to do
	shown     string // by neuron-ls; "": reason and advice
}

// TestToldEverywhere: a chip that fails is seen in allocatable, the metric, the condition, an event, an alert and neuron-ls, with the same
// reason and the same advice; healed, all of them return.
func TestToldEverywhere(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, cluster.Trn1)[0]
	c.Apply(t, cluster.Manifest(statusManifest))
	n.ExpectAllocatable(t, wholeTrn1)
	awaitCondition(t, c, n, neuronHealth, core.ConditionFalse, "NeuronHasNoError")
	for _, f := range []fault{
		{"sram_ecc_uncorrected=1", "sram_ecc_uncorrected", core.ConditionTrue, "SramEccUncorrected", "NeuronUncorrectableError",
			"replace the instance (terminate, or stop and start)", ""},
		{"mem_ecc_repairable_uncorrected=1", "mem_ecc_repairable_uncorrected", core.ConditionFalse, "MemEccRepairableUncorrected",
			"NeuronRepairableHbmError", "drain the node, then reload the Neuron driver or reboot", ""},
		{"vanish", "device_vanished", core.ConditionFalse, "DeviceVanished", "NeuronDeviceGone",
			"look at the kernel log; reboot or replace the instance", "missing: 3"}, // one look does not know that it was there
	} {
		t.Run(f.reason, func(t *testing.T) { expectToldEverywhere(t, c, n, f) })
	}
}

func expectToldEverywhere(t *testing.T, c *cluster.Cluster, n *cluster.Node, f fault) {
	broken := time.Now()
	n.Inject(t, "neuron3", f.set)
	defer n.Inject(t, "neuron3", "heal")
	var metric string
	cluster.Eventually(t, cluster.Patience, "the metric", func() (err error) {
		metric, err = healthMetric(t, c, n, f.reason)
		return err
	})
	cluster.Figure(t, "fault written, metric seen", time.Since(broken))
	n.ExpectAllocatable(t, cluster.Counts{Cores: 30, Devices: 15, EFAs: 8})
	awaitNode(t, c, n, "the condition", func(node *core.Node) error {
		said := conditionOf(node, neuronHealth)
		wanted := f.said
		if f.condition == core.ConditionFalse {
			wanted = "BelowThreshold"
		}
		if said.Status != f.condition || said.Reason != wanted || !strings.Contains(said.Message, f.advice) {
			return fmt.Errorf("%+v", said)
		}
		return nil
	})
	awaitEvent(t, c, n, "Warning", f.said, 1)
	for _, event := range eventsOf(t, c) {
		if event.Reason == f.said && !strings.Contains(event.Message, f.advice) {
			t.Errorf("the event does not say what to do: %s", event.Message)
		}
	}
	shown, err := n.List("--health") // the agent's own pod has no device node, so it is asked on the node
	wanted := []string{f.reason, f.advice}
	if f.shown != "" {
		wanted = []string{f.shown}
	}
	for _, words := range wanted {
		if !strings.Contains(shown, words) {
			t.Errorf("neuron-ls does not say %q (%v):\n%s", words, err, shown)
		}
	}
	expectFiring(t, f, metric)
	n.Inject(t, "neuron3", "heal")
	n.ExpectAllocatable(t, wholeTrn1)
	awaitCondition(t, c, n, neuronHealth, core.ConditionFalse, "NeuronHasNoError")
	cluster.Eventually(t, cluster.Patience, "the metric says healthy", func() error {
		if still, err := healthMetric(t, c, n, f.reason); err == nil {
			return fmt.Errorf("still %s", still)
		}
		return nil
	})
}

// healthMetric is the sample by which the agent of the node says that neuron3 is ill for this reason, as scraped.
func healthMetric(t *testing.T, c *cluster.Cluster, n *cluster.Node, reason string) (string, error) {
	path := "/api/v1/namespaces/" + system + "/pods/" + agentPodOn(t, c, n).Name + ":8000/proxy/metrics"
	text, err := c.TryKubectl("get", "--raw", path)
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "neuron_device_health_info{") && strings.Contains(line, `neuron_device_index="3"`) &&
			strings.Contains(line, `reason="`+reason+`"`) && strings.HasSuffix(line, " 1") {
			return strings.TrimSuffix(line, " 1"), nil
		}
	}
	return "", fmt.Errorf("no neuron_device_health_info of neuron3 with reason %s", reason)
}

// expectFiring: Prometheus, with the rules as shipped, fires the alert of this fault on the series as scraped, and its runbook has the
// same advice.
func expectFiring(t *testing.T, f fault, metric string) {
	t.Helper()
	rules := cluster.Manifest("monitoring/neuron-agent.rules.yaml")
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	_, rule, _ := strings.Cut(string(text), "alert: "+f.alert+"\n")
	rule, _, _ = strings.Cut(rule, "- alert: ")
	if !strings.Contains(strings.ToLower(rule), strings.ToLower(f.advice)) {
		t.Errorf("the rule of %s does not say %q:\n%s", f.alert, f.advice, rule)
	}
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Log("SKIPPED: whether the alert fires: no promtool")
		return
	}
	series := regexp.MustCompile(`\{`).ReplaceAllString(metric, `{instance="n", job="neuron-agent", `)
	file := filepath.Join(t.TempDir(), "firing.yaml")
	test := fmt.Sprintf("rule_files: [%q]\nevaluation_interval: 15s\ntests:\n- interval: 15s\n  input_series: [{series: '%s', values: '1x40'}]\n"+
		"  promql_expr_test:\n  - expr: count(ALERTS{alertname=%q, alertstate=\"firing\"})\n    eval_time: 8m\n    exp_samples: [{labels: '{}', value: 1}]\n",
		rules, series, f.alert)
	if err := os.WriteFile(file, []byte(test), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("promtool", "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%s does not fire on %s: %s", f.alert, metric, output)
	}
}
