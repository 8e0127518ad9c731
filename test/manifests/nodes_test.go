package manifests

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			sameKey := toleration.Key == taint.Key
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
	cases := []struct {
		name      string
		labels    map[string]string
		taints    []corev1.Taint
		base, efa bool
	}{
		{"plain node", nil, nil, true, false},
		{"a type nobody has heard of", map[string]string{"node.kubernetes.io/instance-type": "trn9.48xlarge"}, nil, true, false},
		{"tainted Neuron node", nil, []corev1.Taint{neuronTaint, efaTaint, sickTaint}, true, false},
		{"foreign taint", nil, []corev1.Taint{{Key: "batch", Effect: corev1.TaintEffectNoSchedule}}, false, false},
		{"GPU node", map[string]string{"nvidia.com/gpu.present": "true"}, []corev1.Taint{gpuTaint, efaTaint}, false, true},
		{"GPU node of Karpenter", map[string]string{"karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia"}, nil, false, true},
		{"marked by hand", map[string]string{"neuron-agent/efa-only": "true"}, nil, false, true},
		{"marked off by hand", map[string]string{"neuron-agent/efa-only": "false"}, nil, true, false},
		{"EKS Auto Mode", map[string]string{"eks.amazonaws.com/compute-type": "auto"}, nil, false, false},
		{"Fargate", map[string]string{"eks.amazonaws.com/compute-type": "fargate"}, nil, false, false},
		{"hybrid GPU node", map[string]string{
			"eks.amazonaws.com/compute-type": "hybrid", "nvidia.com/gpu.present": "true"}, nil, false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := runsOn(t, "neuron-agent.yaml", c.labels, c.taints...); got != c.base {
				t.Errorf("neuron-agent.yaml: %v, want %v", got, c.base)
			}
			if got := runsOn(t, "neuron-agent-efa-only.yaml", c.labels, c.taints...); got != c.efa {
				t.Errorf("neuron-agent-efa-only.yaml: %v, want %v", got, c.efa)
			}
		})
	}
}

// Whatever a node is labelled, the two manifests never meet on it.
func TestNoNodeRunsBoth(t *testing.T) {
	choices := map[string][]string{
		"eks.amazonaws.com/compute-type":              {"", "auto", "ec2"},
		"nvidia.com/gpu.present":                      {"", "true", "false"},
		"karpenter.k8s.aws/instance-gpu-manufacturer": {"", "nvidia"},
		"neuron-agent/efa-only":                       {"", "true", "false"},
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
		base, efa := runsOn(t, "neuron-agent.yaml", node), runsOn(t, "neuron-agent-efa-only.yaml", node)
		if base && efa {
			t.Errorf("both run on a node labelled %v", node)
		}
		if !base && !efa && node["eks.amazonaws.com/compute-type"] != "auto" {
			t.Errorf("neither runs on a node labelled %v", node)
		}
	}
}

func TestStaysAwayFromAwsPlugin(t *testing.T) {
	for name := range rendered {
		if name == "neuron-agent-efa-only.yaml" {
			continue // no Neuron resources there
		}
		affinity := load(t, name).Spec.Template.Spec.Affinity.PodAntiAffinity
		if affinity == nil || len(affinity.RequiredDuringSchedulingIgnoredDuringExecution) != 1 {
			t.Fatalf("%s: may run beside AWS's Neuron device plugin", name)
		}
		term := affinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
		if term.TopologyKey != "kubernetes.io/hostname" || term.LabelSelector.MatchLabels["name"] != "neuron-device-plugin-ds" {
			t.Errorf("%s: may run beside AWS's Neuron device plugin", name)
		}
		// Without a selector only our own namespace would count; an empty one selects all.
		if all := term.NamespaceSelector; all == nil || len(all.MatchLabels)+len(all.MatchExpressions) != 0 {
			t.Errorf("%s: may run beside AWS's Neuron device plugin of another namespace", name)
		}
	}
}
