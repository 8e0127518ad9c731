package scenarios

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"neuron-agent.test/cluster/cluster"
)

const (
	workloadsFile = "../test/cluster/workloads.yaml"
	workloadsPage = "../docs/workloads.md"
	tableBegins   = "<!-- table: test/cluster/workloads_test.go -->\n"
	tableEnds     = "<!-- end of table -->\n"

	neuronDevice core.ResourceName = "aws.amazon.com/neurondevice"
	betaType                       = "beta.kubernetes.io/instance-type" // which EKS sets beside the stable one
)

var inf24 = cluster.Spec{Name: "inf24", InstanceType: "inf2.24xlarge"}

// titles are the queueing systems' names in the page.
var titles = map[string]string{"volcano": "Volcano", "mpi-operator": "MPI operator", "jobset": "JobSet", "lws": "LeaderWorkerSet",
	"kueue": "Kueue", "training-operator": "training operator"}

// published is one workload of workloads.yaml, and the row of docs/workloads.md that it makes.
type published struct {
	pod *core.Pod
	row string
}

func (p *published) note(key string) string { return p.pod.Annotations[key] }

// TestWorkloads runs every workload of workloads.yaml on an idle node of its type; docs/workloads.md has what they get.
// UPDATE_GOLDEN=1 writes the page's table anew.
func TestWorkloads(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Trn1, cluster.Trn2, inf24)
	whole := map[string]cluster.Counts{cluster.Trn1.Name: wholeTrn1, cluster.Trn2.Name: {Cores: 64, Devices: 16, EFAs: 16},
		inf24.Name: {Cores: 12, Devices: 6}}
	c.Apply(t, cluster.Manifest("static/neuron-agent.yaml"))
	for _, n := range nodes {
		n.ExpectAllocatable(t, whole[n.Name])
		c.Kubectl(t, "label", "--overwrite", "node", n.Name, betaType+"="+n.InstanceType)
		t.Cleanup(func() { c.Kubectl(t, "label", "node", n.Name, betaType+"-") })
	}
	all := readWorkloads(t)
	waiting := startNotInstalled(t, c)
	runWorkloads(t, c, nodes, whole, all, "")

	c.Kubectl(t, "-n", system, "set", "env", "daemonset/neuron-agent", "NEURON_AGENT_NEURONDEVICE=true")
	c.Kubectl(t, "-n", system, "rollout", "status", "daemonset/neuron-agent", "--timeout=90s")
	runWorkloads(t, c, nodes, whole, all, "neurondevice")
	expectNotInstalled(t, c, waiting)
	compareTable(t, c, all)
}

func readWorkloads(t *testing.T) []*published {
	t.Helper()
	text, err := os.ReadFile(cluster.Manifest(workloadsFile))
	if err != nil {
		t.Fatal(err)
	}
	var all []*published
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		pod := &core.Pod{}
		if err := documents.Decode(pod); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, &published{pod: pod})
	}
}

// runWorkloads gives each node one workload at a time, those that need the same of the agent, and waits until the node is idle
// again, so that the choice is always among all units.
func runWorkloads(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node, whole map[string]cluster.Counts, all []*published, serves string) {
	t.Helper()
	queues := map[*cluster.Node][]*published{}
	longest := 0
	for _, p := range all {
		i := slices.IndexFunc(nodes, func(n *cluster.Node) bool { return n.InstanceType == p.note("node-type") })
		if i < 0 {
			t.Fatalf("%s: no node is a %s", p.pod.Name, p.note("node-type"))
		}
		if p.note("serves") == serves {
			queues[nodes[i]] = append(queues[nodes[i]], p)
			longest = max(longest, len(queues[nodes[i]]))
		}
	}
	for wave := range longest {
		for _, n := range nodes {
			if wave < len(queues[n]) {
				c.CreatePod(t, "default", probing(queues[n][wave].pod, n))
			}
		}
		for _, n := range nodes {
			if wave < len(queues[n]) {
				queues[n][wave].expectRuns(t, c, n)
				c.DeletePod(t, "default", queues[n][wave].pod.Name)
			}
		}
		for _, n := range nodes {
			n.ExpectAllocatable(t, whole[n.Name])
		}
	}
}

// probing is the pod with the probe in place of its program, on one node. It tolerates what it says it tolerates.
func probing(pod *core.Pod, n *cluster.Node) *core.Pod {
	pod = pod.DeepCopy()
	grace := int64(1)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	pod.Spec.DNSPolicy = core.DNSDefault
	if pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = map[string]string{core.LabelInstanceTypeStable: n.InstanceType}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, core.Volume{Name: "out", VolumeSource: core.VolumeSource{
		HostPath: &core.HostPathVolumeSource{Path: "/var/lib/probe"}}})
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		container.Image, container.ImagePullPolicy = cluster.ProbeImage, core.PullNever
		container.Command = []string{"/probe", container.Name, "stay"}
		container.Env = append(container.Env, core.EnvVar{Name: "PROBE_POD", Value: pod.Name})
		container.VolumeMounts = append(container.VolumeMounts, core.VolumeMount{Name: "out", MountPath: "/out"})
	}
	return pod
}

// expectRuns judges each container by what it asked for, and writes the row.
func (p *published) expectRuns(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	t.Helper()
	perDevice := map[string]int{"trn1.32xlarge": 2, "trn2.48xlarge": 4, "inf2.24xlarge": 2}[n.InstanceType]
	for i, report := range c.ReportsOf(t, "default", p.pod.Name) {
		ask := cluster.Ask{}
		for name, quantity := range p.pod.Spec.Containers[i].Resources.Limits {
			if !quantity.IsZero() {
				ask[name] = quantity.String()
			}
		}
		asText := describeAsk(ask)
		if count, alias := ask[neuronDevice]; alias { // the same silicon under its old name
			delete(ask, neuronDevice)
			ask[cluster.Neuron], report.Held[cluster.Neuron] = count, report.Held[neuronDevice]
		}
		if both := ask[cluster.Neuron] != "" && ask[cluster.NeuronCore] != ""; both && len(report.Held[cluster.Neuron])*perDevice !=
			len(report.Held[cluster.NeuronCore]) {
			t.Errorf("%s holds %v", p.pod.Name, report.Held)
		}
		report.ExpectGiven(t, ask, perDevice)
		if user := p.pod.Spec.SecurityContext; user != nil && user.RunAsUser != nil && report.UID != fmt.Sprint(*user.RunAsUser) {
			t.Errorf("%s runs as %s", p.pod.Name, report.UID)
		}
		if p.pod.Spec.Containers[i].Name == "main" {
			p.row = fmt.Sprintf("%s | %s | %s | %s | %s\n", p.note("what"), n.InstanceType, asText,
				orDash(report.Env["NEURON_RT_VISIBLE_CORES"]), p.ranBy(t))
		}
	}
}

// ranBy is the tests that ran the workload, as a pod and under its controller.
func (p *published) ranBy(t *testing.T) string {
	t.Helper()
	text := "TestWorkloads"
	if name, test, has := strings.Cut(p.note("controller"), " "); has {
		text += fmt.Sprintf("; %s, %s", pinned(t, name), test)
	}
	return text
}

// pinned is a queueing system with the version of its folder: "Volcano 1.10.0".
func pinned(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(cluster.SystemFile(name, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^require \S+ v(\S+)$`).FindSubmatch(text)
	if found == nil || titles[name] == "" {
		t.Fatalf("%s: no version, or no title", name)
	}
	return titles[name] + " " + string(found[1])
}

func describeAsk(ask cluster.Ask) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(ask)) {
		_, short, _ := strings.Cut(string(name), "/")
		words = append(words, short+" "+ask[name])
	}
	if len(words) == 0 {
		return `"0"`
	}
	return strings.Join(words, ", ")
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// startNotInstalled makes pods that wait for what is not in this cluster: AWS's scheduler extender, Volcano, a driver for claims, huge
// pages. With each name comes what the scheduler says, which is nothing where the pod is another scheduler's.
func startNotInstalled(t *testing.T, c *cluster.Cluster) map[string]string {
	t.Helper()
	waiting := map[string]string{}
	start := func(w cluster.Workload, words string) {
		c.StartPod(t, w)
		waiting[w.Name] = words
	}
	for _, scheduler := range []string{"my-scheduler", "volcano"} {
		w := cluster.One("waits-for-"+scheduler, cluster.Ask{cluster.Neuron: "1"})
		w.Adjust = func(pod *core.PodSpec) { pod.SchedulerName = scheduler }
		start(w, "")
	}
	template(t, c, "eight-devices", resource.DeviceClaim{Requests: []resource.DeviceRequest{exactly("neurons", cluster.Driver, 8)}})
	start(cluster.One("waits-for-driver", nil).WithClaims(map[string]string{"devices": "eight-devices"}),
		"device class "+cluster.Driver+" does not exist")
	start(cluster.One("waits-for-hugepages", cluster.Ask{core.ResourceHugePagesPrefix + "2Mi": "128Mi", core.ResourceMemory: "64Mi"}),
		"Insufficient hugepages-2Mi")
	return waiting
}

// expectNotInstalled: all that time they have waited, for what is said.
func expectNotInstalled(t *testing.T, c *cluster.Cluster, waiting map[string]string) {
	t.Helper()
	for name, reason := range waiting {
		said := c.Kubectl(t, "describe", "pod", name)
		words := strings.Join(strings.Fields(said), " ")
		without := strings.HasSuffix(words, "Events: <none>")
		if !strings.Contains(words, "Status: Pending") || without != (reason == "") || !strings.Contains(words, reason) {
			t.Errorf("%s, want %q:\n%s", name, reason, said)
		}
	}
}

// compareTable compares the rows with the page, which is of the usual version of Kubernetes and names those of the queueing systems.
func compareTable(t *testing.T, c *cluster.Cluster, all []*published) {
	t.Helper()
	server, err := c.Client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	table := fmt.Sprintf("workload | node | the container asks for | `NEURON_RT_VISIBLE_CORES` | tests, on Kubernetes %s.%s\n---|---|---|---|---\n",
		server.Major, server.Minor)
	for _, p := range all {
		table += p.row
	}
	page, err := os.ReadFile(cluster.Manifest(workloadsPage))
	if err != nil {
		t.Fatal(err)
	}
	for name := range titles {
		if one := pinned(t, name); !strings.Contains(string(page), one) {
			t.Errorf("docs/workloads.md does not name %s", one)
		}
	}
	if len(cluster.Versions()) > 0 && os.Getenv("UPDATE_GOLDEN") != "1" {
		return
	}
	before, rest, begins := strings.Cut(string(page), tableBegins)
	old, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("docs/workloads.md has no table between %q and %q", tableBegins, tableEnds)
	}
	if old == table {
		return
	}
	if os.Getenv("UPDATE_GOLDEN") != "1" {
		t.Errorf("docs/workloads.md says something else (UPDATE_GOLDEN=1 writes it):\n%s", table)
		return
	}
	if err := os.WriteFile(cluster.Manifest(workloadsPage), []byte(before+tableBegins+table+tableEnds+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
