// Package karpenter: what `neuron-agent catalogue` prints for Karpenter, in Karpenter's own scheduling simulation.
package karpenter

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	core "k8s.io/api/core/v1"
	dynamic "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers/dynamicresources/deviceallocation"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	requirements "sigs.k8s.io/karpenter/pkg/scheduling"
	testapi "sigs.k8s.io/karpenter/pkg/test/v1alpha1"
	"sigs.k8s.io/yaml"
)

// provider has the types of the catalogue, on demand in one zone.
type provider struct {
	cloudprovider.CloudProvider
	types []*cloudprovider.InstanceType
}

func (p *provider) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return p.types, nil
}
func (p *provider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&testapi.TestNodeClass{}}
}
func (p *provider) Name() string { return "catalogue" }

// instanceType has a made-up price by size, different for each.
func instanceType(f facts, place int, devices cloudprovider.DynamicResources) *cloudprovider.InstanceType {
	offered := requirements.NewLabelRequirements(map[string]string{v1.CapacityTypeLabelKey: v1.CapacityTypeOnDemand, core.LabelTopologyZone: "a"})
	labels := requirements.NewLabelRequirements(map[string]string{core.LabelInstanceTypeStable: f.Name, core.LabelArchStable: "amd64",
		core.LabelOSStable: "linux", v1.CapacityTypeLabelKey: v1.CapacityTypeOnDemand, core.LabelTopologyZone: "a"})
	return &cloudprovider.InstanceType{Name: f.Name, Requirements: labels, Capacity: f.capacity(), DynamicResources: devices,
		Overhead:  &cloudprovider.InstanceTypeOverhead{},
		Offerings: cloudprovider.Offerings{{Requirements: offered, Available: true, Price: float64(f.VCPUs) + float64(place)/1000}}}
}

// simulation is Karpenter with one NodePool, whose nodes start with the agent's startup taint, and no node.
type simulation struct {
	ctx         context.Context
	client      client.Client
	provisioner *provisioning.Provisioner
}

// start takes the NodeOverlays of the cluster, what the provider knows of the slices of each type, and the types of the NodePool; none: all.
func start(t *testing.T, placed []v1alpha1.NodeOverlay, devices map[string]cloudprovider.DynamicResources, ignoreClaims bool, only ...string) *simulation {
	t.Helper()
	of := &provider{}
	for i, f := range allTypes(t) {
		of.types = append(of.types, instanceType(f, i, devices[f.Name]))
	}
	pool := &v1.NodePool{ObjectMeta: meta.ObjectMeta{Name: "neuron"}}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.test.sh", Kind: "TestNodeClass", Name: "default"}
	pool.Spec.Template.Spec.StartupTaints = []core.Taint{{Key: "neuron-agent/starting", Effect: core.TaintEffectNoSchedule}}
	if len(only) > 0 {
		pool.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
			{Key: core.LabelInstanceTypeStable, Operator: core.NodeSelectorOpIn, Values: only}}
	}
	for _, condition := range []string{v1.ConditionTypeValidationSucceeded, v1.ConditionTypeNodeClassReady} {
		pool.StatusConditions().SetTrue(condition)
	}
	objects := []client.Object{pool}
	for i := range placed {
		objects = append(objects, &placed[i])
	}
	objects = append(objects, classes(t)...)
	s := &simulation{client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithStatusSubresource(&v1alpha1.NodeOverlay{}).
		WithIndex(&core.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*core.Pod).Spec.NodeName} }).
		WithObjects(objects...).Build()}
	settings := options.Options{IgnoreDRARequests: ignoreClaims, FeatureGates: options.FeatureGates{NodeOverlay: true}}
	s.ctx = options.ToContext(t.Context(), &settings)
	store, cluster := nodeoverlay.NewInstanceTypeStore(), state.NewCluster(clock.RealClock{}, s.client, of)
	evaluator := nodeoverlay.NewController(clock.RealClock{}, s.client, of, store, cluster)
	if _, err := evaluator.Reconcile(s.ctx, reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	held := deviceallocation.NewController(s.client)
	held.Hydrate(s.ctx)
	s.provisioner = provisioning.NewProvisioner(s.client, events.NewRecorder(&record.FakeRecorder{}), overlay.Decorate(of, s.client, store), cluster,
		clock.RealClock{}, held, nil)
	return s
}

// classes are the DeviceClasses of the manifests.
func classes(t *testing.T) []client.Object {
	t.Helper()
	text, err := os.ReadFile("../../manifests/static/neuron-agent-dra.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []client.Object
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if !strings.Contains(document, "\nkind: DeviceClass\n") {
			continue
		}
		class := &dynamic.DeviceClass{}
		if err := yaml.UnmarshalStrict([]byte(document), class); err != nil {
			t.Fatal(err)
		}
		all = append(all, class)
	}
	return all
}

// answer is what Karpenter would do: for each node that it starts the types that fit, cheapest first, and why other pods get none.
type answer struct {
	nodes   [][]string
	pods    []int // of each node
	refused map[string]error
}

func (s *simulation) schedule(t *testing.T, pods ...*core.Pod) answer {
	t.Helper()
	for _, pod := range pods {
		pod.UID = types.UID(pod.Name)
	}
	scheduler, err := s.provisioner.NewScheduler(s.ctx, pods, nil, sets.New[types.UID](), scheduling.NumConcurrentReconciles(1))
	if err != nil {
		t.Fatal(err)
	}
	results, err := scheduler.Solve(s.ctx, pods)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{refused: map[string]error{}}
	for _, claim := range results.NewNodeClaims {
		var names []string
		for _, one := range claim.InstanceTypeOptions.OrderByPrice(claim.Requirements) {
			names = append(names, one.Name)
		}
		a.nodes, a.pods = append(a.nodes, names), append(a.pods, len(claim.Pods))
	}
	for pod, err := range results.PodErrors {
		a.refused[pod.Name] = err
	}
	return a
}

// expect: one node of this type is started for the pod; "": none, as Karpenter says with these words, if any.
func (a answer) expect(t *testing.T, want, words string) {
	t.Helper()
	if want == "" && words == "" && len(a.nodes) == 0 {
		return
	}
	if want == "" {
		for _, err := range a.refused {
			if len(a.nodes) == 0 && strings.Contains(err.Error(), words) {
				return
			}
		}
		t.Errorf("refused %v, nodes %v; want a refusal with %q", a.refused, a.nodes, words)
		return
	}
	if len(a.refused) > 0 || len(a.nodes) != 1 || a.nodes[0][0] != want {
		t.Errorf("nodes %v, refused %v; want %s", a.nodes, a.refused, want)
	}
}
