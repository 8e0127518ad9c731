package manifests

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

func runsOn(t *testing.T, manifest string, nodeLabels map[string]string, taints ...corev1.Taint) bool {
	t.Helper()
	spec := load(t, manifest).Spec.Template.Spec
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: nodeLabels}}
	matches, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: spec}).Match(node)
	if err != nil {
		t.Fatal(err)
	}
	return matches && tolerated(spec.Tolerations, taints)
}

func tolerated(tolerations []corev1.Toleration, taints []corev1.Taint) bool {
	for _, taint := range taints {
		found := false
		for _, toleration := range tolerations {
			sameKey := toleration.Key == taint.Key || (toleration.Key == "" && toleration.Operator == corev1.TolerationOpExists)
			sameEffect := toleration.Effect == "" || toleration.Effect == taint.Effect
			sameValue := toleration.Operator == corev1.TolerationOpExists || toleration.Value == taint.Value
			found = found || (sameKey && sameEffect && sameValue)
		}
		if !found {
			return false
		}
	}
	return true
}

func TestWhichNodes(t *testing.T) {
	neuronTaint := corev1.Taint{Key: "aws.amazon.com/neuron", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	gpuTaint := corev1.Taint{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}
	efaTaint := corev1.Taint{Key: "aws.amazon.com/efa", Effect: corev1.TaintEffectNoSchedule}
	sickTaint := corev1.Taint{
		Key: "sagemaker.amazonaws.com/node-health-status", Value: "Unschedulable", Effect: corev1.TaintEffectNoSchedule}
	emptied := corev1.Taint{Key: "example.com/maintenance", Value: "x", Effect: corev1.TaintEffectNoExecute}
	cases := []struct {
		name           string
		labels         map[string]string
		taints         []corev1.Taint
		base, efa, dra bool
	}{
		{"plain node", nil, nil, true, false, false},
		{"a type nobody has heard of", map[string]string{"node.kubernetes.io/instance-type": "trn9.48xlarge"}, nil, true, false, false},
		{"tainted Neuron node", nil, []corev1.Taint{neuronTaint, efaTaint, sickTaint}, true, false, false},
		{"foreign taint", nil, []corev1.Taint{{Key: "batch", Effect: corev1.TaintEffectNoSchedule}}, true, false, false},
		{"node that is being emptied", nil, []corev1.Taint{emptied}, true, false, false},
		{"GPU node that is being emptied", map[string]string{"nvidia.com/gpu.present": "true"}, []corev1.Taint{emptied}, false, true, false},
		{"node for claims that is being emptied", map[string]string{"neuron-agent/mode": "dra"}, []corev1.Taint{emptied}, false, false, true},
		{"Windows", map[string]string{"kubernetes.io/os": "windows"}, nil, false, false, false},
		{"Windows with a GPU", map[string]string{"kubernetes.io/os": "windows", "nvidia.com/gpu.present": "true"}, nil, false, false, false},
		{"Windows, for claims", map[string]string{"kubernetes.io/os": "windows", "neuron-agent/mode": "dra"}, nil, false, false, false},
		{"Linux", map[string]string{"kubernetes.io/os": "linux"}, nil, true, false, false},
		{"GPU node", map[string]string{"nvidia.com/gpu.present": "true"}, []corev1.Taint{gpuTaint, efaTaint}, false, true, false},
		{"GPU node of Karpenter", map[string]string{"karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia"}, nil, false, true, false},
		{"marked by hand", map[string]string{"neuron-agent/efa-only": "true"}, nil, false, true, false},
		{"marked off by hand", map[string]string{"neuron-agent/efa-only": "false"}, nil, true, false, false},
		{"EKS Auto Mode", map[string]string{"eks.amazonaws.com/compute-type": "auto"}, nil, false, false, false},
		{"Fargate", map[string]string{"eks.amazonaws.com/compute-type": "fargate"}, nil, false, false, false},
		{"hybrid GPU node", map[string]string{
			"eks.amazonaws.com/compute-type": "hybrid", "nvidia.com/gpu.present": "true"}, nil, false, false, false},
		{"for claims", map[string]string{"neuron-agent/mode": "dra"}, []corev1.Taint{neuronTaint, efaTaint, sickTaint}, false, false, true},
		{"GPU node for claims", map[string]string{
			"neuron-agent/mode": "dra", "nvidia.com/gpu.present": "true"}, []corev1.Taint{gpuTaint, efaTaint}, false, false, true},
		{"EKS Auto Mode, for claims", map[string]string{
			"eks.amazonaws.com/compute-type": "auto", "neuron-agent/mode": "dra"}, nil, false, false, false},
		{"the other mode by name", map[string]string{"neuron-agent/mode": "device-plugin"}, nil, true, false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := runsOn(t, "neuron-agent.yaml", c.labels, c.taints...); got != c.base {
				t.Errorf("neuron-agent.yaml: %v, want %v", got, c.base)
			}
			if got := runsOn(t, "neuron-agent-efa-only.yaml", c.labels, c.taints...); got != c.efa {
				t.Errorf("neuron-agent-efa-only.yaml: %v, want %v", got, c.efa)
			}
			if got := runsOn(t, draFile, c.labels, c.taints...); got != c.dra {
				t.Errorf("%s: %v, want %v", draFile, got, c.dra)
			}
		})
	}
}

// A taint with NoExecute ends every pod that does not tolerate it at the same time. Pods with claims can end only while their driver
// runs (the kubelet calls Unprepare), and a toleration with an end would end the driver first, too.
func TestEveryDaemonSetToleratesEverything(t *testing.T) {
	want := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	for _, name := range staticFiles {
		if got := load(t, name).Spec.Template.Spec.Tolerations; !reflect.DeepEqual(got, want) {
			t.Errorf("%s tolerates %v, want %v", name, got, want)
		}
	}
}

// Whatever a node is labelled, no two of the three manifests meet on it.
func TestNoNodeRunsTwo(t *testing.T) {
	choices := map[string][]string{
		"eks.amazonaws.com/compute-type":              {"", "auto", "ec2"},
		"nvidia.com/gpu.present":                      {"", "true", "false"},
		"karpenter.k8s.aws/instance-gpu-manufacturer": {"", "nvidia"},
		"neuron-agent/efa-only":                       {"", "true", "false"},
		"neuron-agent/mode":                           {"", "dra", "device-plugin"},
	}
	nodes := []map[string]string{{}}
	for key, values := range choices {
		var longer []map[string]string
		for _, node := range nodes {
			for _, value := range values {
				next := map[string]string{}
				for k, v := range node {
					next[k] = v
				}
				if value != "" {
					next[key] = value
				}
				longer = append(longer, next)
			}
		}
		nodes = longer
	}
	for _, node := range nodes {
		var here []string
		for _, name := range []string{"neuron-agent.yaml", "neuron-agent-efa-only.yaml", draFile} {
			if runsOn(t, name, node) {
				here = append(here, name)
			}
		}
		if want := node["eks.amazonaws.com/compute-type"] != "auto"; len(here) > 1 || (len(here) == 1) != want {
			t.Errorf("on a node labelled %v run %v", node, here)
		}
	}
}

func TestStaysAwayFromAwsPlugin(t *testing.T) {
	for _, name := range staticFiles {
		if name == "neuron-agent-efa-only.yaml" {
			continue // no Neuron resources there
		}
		affinity := load(t, name).Spec.Template.Spec.Affinity.PodAntiAffinity
		if affinity == nil || len(affinity.RequiredDuringSchedulingIgnoredDuringExecution) != 1 { // dra_test.go says why one
			t.Fatalf("%s: may run beside AWS's Neuron device plugin", name)
		}
		term := affinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil || term.TopologyKey != "kubernetes.io/hostname" || !selector.Matches(labels.Set{"name": "neuron-device-plugin-ds"}) {
			t.Errorf("%s: may run beside AWS's Neuron device plugin", name)
		}
		// Without a selector only our own namespace would count; an empty one selects all.
		if all := term.NamespaceSelector; all == nil || len(all.MatchLabels)+len(all.MatchExpressions) != 0 {
			t.Errorf("%s: may run beside AWS's Neuron device plugin of another namespace", name)
		}
	}
}
