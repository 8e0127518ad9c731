package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"neuron-agent.test/cluster/cluster"
)

// What pods ask for in the questions to kubectl neuron.

// licence is a resource of another driver, which an administrator lists in the status of nodes.
const licence core.ResourceName = "example.com/licence"

// listLicences lists some on some of the nodes, until the end of the test, and waits until pods can have them.
func listLicences(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node) {
	t.Helper()
	list := func(n *cluster.Node, count int64) {
		patch := `{"status":{"capacity":{"example.com/licence":null}}}`
		if count > 0 {
			patch = fmt.Sprintf(`{"status":{"capacity":{"example.com/licence":"%d"}}}`, count)
		}
		c.Kubectl(t, "patch", "node", n.Name, "--subresource=status", "--type=merge", "-p", patch)
		cluster.Eventually(t, cluster.Patience, n.Name+" lists licences", func() error {
			if now, is := allocatable(t, c, n)[licence]; is != (count > 0) || now.Value() != count {
				return fmt.Errorf("%v, want %d", now.Value(), count)
			}
			return nil
		})
	}
	for i, n := range nodes {
		if count := []int64{4, 0, 2}[i%3]; count > 0 {
			list(n, count)
			t.Cleanup(func() { list(n, 0) })
		}
	}
}

// drawOrdinary is processor time, memory and licences, in eighths of what the node has: few, sometimes more than that.
func (a *asker) drawOrdinary(n *cluster.Node) core.ResourceList {
	whole, all := a.whole[n.Name], core.ResourceList{}
	for _, name := range []core.ResourceName{core.ResourceCPU, core.ResourceMemory, licence} {
		if a.random.IntN(2) == 0 {
			continue
		}
		eighths, has := int64(1+min(a.random.IntN(9), a.random.IntN(9), a.random.IntN(9))), whole[name]
		switch name {
		case core.ResourceCPU:
			all[name] = *apiresource.NewMilliQuantity(has.MilliValue()*eighths/8, apiresource.DecimalSI)
		case core.ResourceMemory:
			all[name] = *apiresource.NewQuantity(has.Value()/8*eighths, apiresource.BinarySI)
		case licence:
			all[name] = counted(1 + eighths/2)
		}
	}
	return all
}

// addOrdinary lets a container of the pod ask for it, or one that ends before the others start.
func (a *asker) addOrdinary(pod *core.Pod, ask core.ResourceList) {
	containers := pod.Spec.Containers
	if a.random.IntN(6) == 0 {
		before := *containers[0].DeepCopy()
		before.Name, before.Command, before.Resources = "before", []string{"/probe", "before", "once"}, core.ResourceRequirements{}
		pod.Spec.InitContainers = []core.Container{before}
		containers = pod.Spec.InitContainers
	}
	resources := &containers[a.random.IntN(len(containers))].Resources
	limits := a.random.IntN(3) == 0 // alone: the API server makes requests of them
	for name, amount := range ask {
		list := &resources.Requests
		if limits || name == licence {
			list = &resources.Limits
		}
		if *list == nil {
			*list = core.ResourceList{}
		}
		(*list)[name] = amount
	}
}

func describeAmounts(lists ...core.ResourceList) string {
	var all []string
	for _, list := range lists {
		for name, amount := range list {
			all = append(all, fmt.Sprintf("%s=%s", name, amount.String()))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

func counted(number int64) apiresource.Quantity {
	return *apiresource.NewQuantity(number, apiresource.DecimalSI)
}

// amount: half of the pods ask for few, so that many fit beside others.
func (a *asker) amount(most int) int64 {
	if a.random.IntN(2) == 0 {
		most = min(most, 4)
	}
	return int64(1 + a.random.IntN(most))
}

// drawCounts: numbers of one name and perhaps of interfaces, now and then of two names in one container or in two.
func drawCounts(names ...core.ResourceName) func(*asker, *core.Pod) {
	return func(a *asker, pod *core.Pod) {
		first := &pod.Spec.Containers[0]
		first.Resources.Limits = core.ResourceList{names[a.random.IntN(len(names))]: counted(a.amount(18))}
		if a.random.IntN(3) == 0 {
			first.Resources.Limits[cluster.EFA] = counted(a.amount(10))
		}
		if len(names) < 2 || a.random.IntN(4) > 0 {
			return
		}
		other := core.ResourceList{names[a.random.IntN(len(names))]: counted(a.amount(8))}
		if a.random.IntN(2) == 0 {
			for name, amount := range other {
				first.Resources.Limits[name] = amount
			}
			return
		}
		second := *first.DeepCopy()
		second.Name, second.Resources.Limits = "second", other
		pod.Spec.Containers = append(pod.Spec.Containers, second)
	}
}

// drawClaimed: one or two claims, or numbers that the scheduler makes a claim for.
func drawClaimed(a *asker, pod *core.Pod) {
	if a.random.IntN(4) == 0 {
		names := []core.ResourceName{cluster.Neuron, cluster.NeuronCore}
		pod.Spec.Containers[0].Resources.Limits = core.ResourceList{names[a.random.IntN(2)]: counted(a.amount(20))}
		return
	}
	for place := range 1 + a.random.IntN(5)/4 {
		a.useClaim(pod, place, a.claim())
	}
}

// drawShares: cores of one device or of several that claims may share, and whole devices between them; and numbers, which no class serves
// there.
func drawShares(a *asker, pod *core.Pod) {
	if a.random.IntN(6) == 0 {
		drawCounts(cluster.Neuron)(a, pod)
		return
	}
	for place := range 1 + a.random.IntN(4)/3 {
		claim := shareOf(strconv.Itoa(1 + a.random.IntN(2)))
		claim.Requests[0].Exactly.Count = a.amount(18)
		switch a.random.IntN(6) {
		case 0:
			claim = resource.DeviceClaim{Requests: []resource.DeviceRequest{exactly("neurons", "neuron.aws.com", a.amount(12))}}
		case 1:
			claim.Requests[0].Exactly.Capacity = nil // alone on each device
		case 2:
			second := shareOf(strconv.Itoa(1 + a.random.IntN(2))).Requests[0]
			second.Name, second.Exactly.Count = "more", a.amount(8)
			claim.Requests = append(claim.Requests, second)
		case 3:
			claim.Requests = append(claim.Requests, exactly("efas", "efa.neuron.aws.com", a.amount(9)))
		}
		a.useClaim(pod, place, claim)
	}
}

func drawAny(a *asker, pod *core.Pod) {
	if a.random.IntN(2) == 0 {
		drawClaimed(a, pod)
	} else {
		drawCounts(cluster.Neuron, cluster.NeuronCore)(a, pod)
	}
}

func (a *asker) claim() resource.DeviceClaim {
	match := func(name resource.FullyQualifiedName) []resource.DeviceConstraint {
		return []resource.DeviceConstraint{{MatchAttribute: &name}}
	}
	devices := exactly("neurons", "neuron.aws.com", a.amount(18))
	switch a.random.IntN(7) {
	case 0:
		return resource.DeviceClaim{Requests: []resource.DeviceRequest{exactly("cores", "core.neuron.aws.com", a.amount(9))}}
	case 1:
		group := exactly("group", "group.neuron.aws.com", 1)
		group.Exactly.Selectors = []resource.DeviceSelector{{CEL: &resource.CELDeviceSelector{
			Expression: fmt.Sprintf("device.attributes['%s'].size == %d", cluster.Driver, []int{4, 8, 16}[a.random.IntN(3)])}}}
		return resource.DeviceClaim{Requests: []resource.DeviceRequest{group}}
	case 2:
		devices.Exactly.Count = min(devices.Exactly.Count, 4)
		return resource.DeviceClaim{Requests: []resource.DeviceRequest{devices}, Constraints: match("resource.aws.com/devicegroup4_id")}
	case 3:
		devices.Exactly.Count = 1
		return resource.DeviceClaim{Requests: []resource.DeviceRequest{devices, exactly("efas", "efa.neuron.aws.com", 1)},
			Constraints: match("resource.aws.com/devicegroup1_id")}
	case 4:
		devices.Exactly.AllocationMode, devices.Exactly.Count = resource.DeviceAllocationModeAll, 0
	case 5:
		return resource.DeviceClaim{Requests: []resource.DeviceRequest{devices, exactly("efas", "efa.neuron.aws.com", a.amount(9))}}
	}
	return resource.DeviceClaim{Requests: []resource.DeviceRequest{devices}}
}
