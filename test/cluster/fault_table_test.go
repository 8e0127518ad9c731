package scenarios

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"neuron-agent.test/cluster/cluster"
)

// Nodes of the test, and how far a fault reaches: what leaves allocatable.
const (
	byFile = iota // most faults by files of the driver
	byLog         // most by the kernel log
)

const (
	nothing = iota
	oneCore
	oneDevice
)

// When a fault is made: what is graver comes later, so that the condition is seen with each kind of row.
const (
	calm   = iota // nothing is unhealthy
	low           // unhealthy, and another instance is not needed
	grave         // another instance is needed
	beside        // not made by a round: a heartbeat that stands still
)

// fault is a fault and the row of docs/faults.md that it walks.
type fault struct {
	row   string // first cell of the table
	sign  string // what the table sees it by
	node  int
	unit  string // of neuron-sim set
	set   string
	round int
	takes int
	shown string // by neuron-ls; "": reason and advice; "-": nothing, as one look does not know what was before
}

var faults = []fault{
	{"`hang_on_collectives`", "HANG_ON_COLLECTIVES", byFile, "neuron0", "hw_err=HANG_ON_COLLECTIVES", calm, nothing, ""},
	{"`kernel_log_error`", "NEURON_HW_ERR= of any other kind", byFile, "neuron1", "hw_err=NEW_KIND nd-id=1", calm, nothing, ""},
	{"`mem_ecc_repairable_uncorrected`", "`mem_ecc_repairable_uncorrected`", byFile, "neuron2", "mem_ecc_repairable_uncorrected=1",
		low, oneDevice, ""},
	{"`hw_repairable_hbm_ue_error`", "`hw_repairable_hbm_ue_error` grows", byFile, "neuron3/core1", "hw_repairable_hbm_ue_error=1",
		low, oneDevice, "-"},
	{"`device_vanished`", "it has left `sys/class/neuron_device`", byFile, "neuron4", "vanish", low, oneDevice, "missing: 4"},
	{"`reads_all_ones`", "its serial number and error counts read ones", byFile, "neuron13", "off-bus", low, oneDevice, ""},
	{"`heartbeat_stuck`", "`healthcheck_heartbeat` has stopped", byFile, "neuron5", "", beside, oneDevice, "-"},
	{"`mem_ecc_repairable_uncorrected`", "kernel log, any kind with REPAIRABLE in it", byFile, "neuron6",
		"hw_err=HBM_REPAIRABLE_ERROR", low, oneDevice, ""},
	{"`sram_ecc_uncorrected`", "`sram_ecc_uncorrected`", byFile, "neuron7", "sram_ecc_uncorrected=1", grave, oneDevice, ""},
	{"`mem_ecc_uncorrected`", "`mem_ecc_uncorrected`", byFile, "neuron8", "mem_ecc_uncorrected=1", grave, oneDevice, ""},
	{"`hw_hbm_ue_error`", "`hw_hbm_ue_error` grows", byFile, "neuron9/core1", "hw_hbm_ue_error=1", grave, oneDevice, "-"},
	{"`hw_nc_ue_error`", "`hw_nc_ue_error` grows", byFile, "neuron10/core1", "hw_nc_ue_error=1", grave, oneCore, "-"},
	{"`hw_dma_abort_error`", "`hw_dma_abort_error` grows", byFile, "neuron11/core1", "hw_dma_abort_error=1", grave, oneDevice, "-"},
	{"`hw_error`", "`hw_error` grows", byFile, "neuron12/core1", "hw_error=1", grave, oneCore, "-"},

	{"of the node, `kernel_log_error`", "NEURON_HW_ERR= without `nd-id`", byLog, "host", "kernel_log=NEURON_HW_ERR=NEW_KIND",
		calm, nothing, ""},
	{"of the node, unhealthy", "NEURON_HW_ERR= without `nd-id`", byLog, "host",
		"kernel_log=NEURON_HW_ERR=DMA_ERROR action=TERMINATE_INSTANCE", low, nothing, ""},
	{"`sram_ecc_uncorrected`", "SRAM_UNCORRECTABLE_ERROR", byLog, "neuron0", "hw_err=SRAM_UNCORRECTABLE_ERROR", grave, oneDevice, ""},
	{"`mem_ecc_uncorrected`", "HBM_UNCORRECTABLE_ERROR", byLog, "neuron1", "hw_err=HBM_UNCORRECTABLE_ERROR", grave, oneDevice, ""},
	{"`hw_nc_ue_error`", "NC_UNCORRECTABLE_ERROR", byLog, "neuron2/core3", "hw_err=NC_UNCORRECTABLE_ERROR", grave, oneCore, ""},
	{"`hw_dma_abort_error`", "DMA_ERROR", byLog, "neuron3", "hw_err=DMA_ERROR", grave, oneDevice, ""},
	{"`hw_error`", "NEURON_HW_ERR= of any other kind", byLog, "neuron4", "hw_err=NEW_KIND", grave, oneDevice, ""},
	{"`heartbeat_stuck`, all of them", "`healthcheck_heartbeat` has stopped", byLog, "neuron15", "", beside, nothing, "-"},
}

// hangOfNode is alone on its node, since of two such lines the node reports one.
var hangOfNode = fault{"of the node, `hang_on_collectives`", "NEURON_HW_ERR= without `nd-id`", byLog, "host",
	"kernel_log=NEURON_HW_ERR=HANG_ON_COLLECTIVES", calm, nothing, ""}

// row is one of the table, and the advice for its reason in docs/health.md.
type row struct{ kubelet, condition, alert, advice string }

var quoted = regexp.MustCompile("`([A-Za-z_]+)`")

// reason is the code in metrics and tables.
func (f fault) reason() string {
	if found := quoted.FindStringSubmatch(f.row); found != nil {
		return found[1]
	}
	return "hw_dma_abort_error" // "that of the reason": that of the line
}

func (f fault) eventReason() string { return camelCase(f.reason()) }

func (f fault) device() string {
	name, _, _ := strings.Cut(f.unit, "/")
	return strings.TrimPrefix(name, "neuron")
}

func (f fault) name() string {
	return strings.NewReplacer("`", "", " ", "-", ",", "").Replace(f.row) + "-" + f.device()
}

func camelCase(code string) string {
	var name string
	for _, word := range strings.Split(code, "_") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}

// state is that of the reason: of two reasons with one code the state decides.
func (f fault) state() string {
	if f.round == calm || f.round == beside && f.takes == nothing {
		return "degraded"
	}
	return "unhealthy"
}

func readDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(cluster.Manifest("")), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var reasonRow = regexp.MustCompile("(?m)^`([a-z_]+)` \\| ([a-z]+) \\| [^|]* \\| ([^|\\n]*)$")

// readFaults reads the table of docs/faults.md. Each row of it has a fault here, and each fault has a row.
func readFaults(t *testing.T) map[string]row {
	t.Helper()
	advice := map[string]string{} // by reason and state
	for _, found := range reasonRow.FindAllStringSubmatch(readDocument(t, "docs/health.md"), -1) {
		advice[found[1]+" "+found[2]] = found[3]
	}
	all := append(slices.Clone(faults), hangOfNode)
	rows, unseen := map[string]row{}, slices.Clone(all)
	for _, line := range strings.Split(readDocument(t, "docs/faults.md"), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) == 1 || cells[0] == "reason" {
			continue
		}
		if len(cells) != 6 {
			t.Fatalf("%d cells: %s", len(cells), line)
		}
		rows[cells[0]] = row{kubelet: cells[3], condition: cells[4], alert: strings.Trim(cells[5], "`")}
		unseen = expectWalked(t, cells[0], cells[2], unseen)
	}
	for _, f := range unseen {
		t.Errorf("%s by %s is in no row", f.row, f.sign)
	}
	for name := range rows {
		if !slices.ContainsFunc(all, func(f fault) bool { return f.row == name }) {
			t.Errorf("nothing walks the row %s", name)
		}
	}
	for _, f := range all {
		found := rows[f.row]
		found.advice = advice[f.reason()+" "+f.state()]
		if found.kubelet == "" || found.advice == "" {
			t.Errorf("no row %s, or docs/health.md has no advice for it", f.row)
		}
		rows[f.row] = found
	}
	if t.Failed() {
		t.FailNow()
	}
	return rows
}

// expectWalked: each way by which a row is seen has a fault; returns the faults that are left.
func expectWalked(t *testing.T, row, seenBy string, unseen []fault) []fault {
	t.Helper()
	for _, way := range strings.Split(seenBy, ";") {
		way = strings.TrimPrefix(strings.TrimSpace(way), "kernel log ")
		of := func(f fault) bool { return f.row == row && (f.sign == way || strings.HasPrefix(way, f.sign+" ")) }
		if !slices.ContainsFunc(append(slices.Clone(faults), hangOfNode), of) {
			t.Errorf("%s: nothing makes a fault that is seen by %s", row, way)
		}
		unseen = slices.DeleteFunc(unseen, of)
	}
	return unseen
}
