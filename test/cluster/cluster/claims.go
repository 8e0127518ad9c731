package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"neuron-agent.test/suite"
)

// Driver is the name under which the agent serves claims.
const Driver = "neuron.aws.com"

// WithClaims makes the claims part of the pod, name to template, and lets every container see all of them. What Adjust does already
// is done first.
func (w Workload) WithClaims(templates map[string]string) Workload {
	before := w.Adjust
	w.Adjust = func(pod *core.PodSpec) {
		if before != nil {
			before(pod)
		}
		for _, name := range slices.Sorted(maps.Keys(templates)) {
			template := templates[name]
			pod.ResourceClaims = append(pod.ResourceClaims, core.PodResourceClaim{Name: name, ResourceClaimTemplateName: &template})
			for i := range pod.Containers {
				pod.Containers[i].Resources.Claims = append(pod.Containers[i].Resources.Claims, core.ResourceClaim{Name: name})
			}
		}
	}
	return w
}

// Slices lists the slices of a node that are the driver's, by name.
func (n *Node) Slices() ([]resource.ResourceSlice, error) {
	list, err := n.cluster.Client.ResourceV1().ResourceSlices().List(context.Background(),
		meta.ListOptions{FieldSelector: "spec.driver=" + Driver + ",spec.nodeName=" + n.Name})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b resource.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// Offered are the devices of the node's pool as a scheduler takes them.
func (n *Node) Offered() ([]resource.Device, error) {
	all, err := n.Slices()
	if err != nil {
		return nil, err
	}
	devices, _, err := OfferedBy(all)
	return devices, err
}

// OfferedBy returns the devices of a pool: of the newest generation, and only if that is complete.
func OfferedBy(all []resource.ResourceSlice) (devices []resource.Device, newest int64, err error) {
	for _, slice := range all {
		newest = max(newest, slice.Spec.Pool.Generation)
	}
	count, want := int64(0), int64(0)
	for _, slice := range all {
		if slice.Spec.Pool.Generation == newest {
			devices = append(devices, slice.Spec.Devices...)
			count, want = count+1, slice.Spec.Pool.ResourceSliceCount
		}
	}
	if count != want {
		return nil, newest, fmt.Errorf("%d of %d slices of generation %d are there", count, want, newest)
	}
	return devices, newest, nil
}

// ClaimsOf returns the claims of a pod by the name that its containers use; that of its extended resources under "".
func (c *Cluster) ClaimsOf(pod *core.Pod) (map[string]*resource.ResourceClaim, error) {
	names := map[string]string{}
	for _, claim := range pod.Spec.ResourceClaims {
		if claim.ResourceClaimName != nil {
			names[claim.Name] = *claim.ResourceClaimName
		}
	}
	for _, made := range pod.Status.ResourceClaimStatuses {
		if made.ResourceClaimName != nil {
			names[made.Name] = *made.ResourceClaimName
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		names[""] = extended.ResourceClaimName
	}
	claims := map[string]*resource.ResourceClaim{}
	for name, claim := range names {
		found, err := c.Client.ResourceV1().ResourceClaims(pod.Namespace).Get(context.Background(), claim, meta.GetOptions{})
		if err != nil {
			return nil, err
		}
		if found.Status.Allocation == nil {
			return nil, fmt.Errorf("claim %s is not allocated", claim)
		}
		claims[name] = found
	}
	return claims, nil
}

// ClaimedBy returns what each container of a pod may use of its claims, as units of a node of that many devices.
func (c *Cluster) ClaimedBy(pod *core.Pod, devices, coresPerDevice int) (map[string]Held, error) {
	claims, err := c.ClaimsOf(pod)
	if err != nil {
		return nil, err
	}
	all := map[string]Held{}
	take := func(container, claim, request string) error {
		if claims[claim] == nil {
			return fmt.Errorf("%s uses %q, which the pod does not have", container, claim)
		}
		if all[container] == nil {
			all[container] = Held{}
		}
		for _, result := range claims[claim].Status.Allocation.Devices.Results {
			if base, _, _ := strings.Cut(result.Request, "/"); request == "" || request == base || request == result.Request {
				if err := HoldDevice(all[container], result.Device, devices, coresPerDevice); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, container := range append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...) {
		for _, use := range container.Resources.Claims {
			err = errors.Join(err, take(container.Name, use.Name, use.Request))
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		for _, mapping := range extended.RequestMappings {
			err = errors.Join(err, take(mapping.ContainerName, "", mapping.RequestName))
		}
	}
	return all, err
}

var deviceName = regexp.MustCompile(`^(?:neuron-device-(\d+)(?:-core-(\d+))?|neuron-group-(\d+)-(\d+)|efa-(.+)|(neuron-node))$`)

// HoldDevice adds a device of a pool: "neuron-device-3", "neuron-device-3-core-1", "neuron-group-4-7", "efa-rdmap16s25", "neuron-node".
// The members of a group go on from 0 behind the last device.
func HoldDevice(held Held, name string, devices, coresPerDevice int) error {
	parts := deviceName.FindStringSubmatch(name)
	if parts == nil {
		return fmt.Errorf("no device of ours is named %q", name)
	}
	number := func(i int) int { n, _ := strconv.Atoi(parts[i]); return n }
	add := func(resource core.ResourceName, id string) {
		if !slices.Contains(held[resource], id) {
			held[resource] = append(held[resource], id)
			slices.SortFunc(held[resource], suite.CompareIDs)
		}
	}
	switch {
	case parts[6] != "":
		for device := range devices {
			add(Neuron, strconv.Itoa(device))
		}
	case parts[5] != "":
		add(EFA, parts[5])
	case parts[4] != "":
		for device := number(3); ; device = (device + 1) % devices {
			add(Neuron, strconv.Itoa(device))
			if device == number(4) || device >= devices {
				break
			}
		}
	case parts[2] != "":
		add(NeuronCore, strconv.Itoa(number(1)*coresPerDevice+number(2)))
	default:
		add(Neuron, parts[1])
	}
	return nil
}

// AwaitClaimReports is AwaitReports for a workload that is given devices by claims: Held is what the scheduler has chosen.
func (c *Cluster) AwaitClaimReports(t testing.TB, w Workload, devices, coresPerDevice int) []Report {
	t.Helper()
	reports := c.AwaitReports(t, w)
	pods, err := c.Pods(w.namespace(), "workload="+w.Name)
	if err != nil || len(pods) != 1 {
		t.Fatalf("%d pods of %s: %v", len(pods), w.Name, err)
	}
	held, err := c.ClaimedBy(&pods[0], devices, coresPerDevice)
	if err != nil {
		t.Fatal(err)
	}
	for i := range reports {
		reports[i].Held = held[reports[i].Container]
	}
	return reports
}

// ExpectSeen: the container sees exactly what it holds.
func (r Report) ExpectSeen(t testing.TB, coresPerDevice int) {
	t.Helper()
	if err := r.CheckGiven(r.Held, coresPerDevice, r.Node.Verbs()); err != nil {
		t.Errorf("%s/%s: %v", r.Pod, r.Container, err)
	}
}

// As returns a client that has nothing but this token.
func (c *Cluster) As(t testing.TB, token string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://" + apiService, BearerToken: token, QPS: 200, Burst: 400,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.pem}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// CDIFiles lists the files in the node's CDI directory that runtimes read; none where there is no directory.
func (n *Node) CDIFiles() ([]string, error) {
	entries, err := os.ReadDir(n.ofNode("/run/cdi"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".json") || strings.HasSuffix(entry.Name(), ".yaml") {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

// SharesOf are the cores that claims have of devices which several share, as places of each device: by what the CDI files on the node
// say, "<claim's uid>-neuron-device-3-share-4-7". An error where two have the same.
func (n *Node) SharesOf() (map[string]map[int][]int, error) {
	files, err := n.CDIFiles()
	if err != nil {
		return nil, err
	}
	shares, holder := map[string]map[int][]int{}, map[[2]int]string{}
	for _, file := range files {
		text, err := os.ReadFile(n.ofNode("/run/cdi/" + file))
		if err != nil {
			return nil, err
		}
		for _, found := range shareName.FindAllStringSubmatch(string(text), -1) {
			claim := found[1]
			device, _ := strconv.Atoi(found[2])
			ends := strings.Split(found[3], "-")
			for i := 0; i+1 < len(ends); i += 2 {
				first, _ := strconv.Atoi(ends[i])
				last, _ := strconv.Atoi(ends[i+1])
				for place := first; place <= last; place++ {
					if other := holder[[2]int{device, place}]; other != "" {
						return nil, fmt.Errorf("place %d of device %d is in the claims %s and %s", place, device, other, claim)
					}
					holder[[2]int{device, place}] = claim
					if shares[claim] == nil {
						shares[claim] = map[int][]int{}
					}
					shares[claim][device] = append(shares[claim][device], place)
				}
			}
		}
	}
	return shares, nil
}

var shareName = regexp.MustCompile(`"name": *"([0-9a-f-]{36})-neuron-device-(\d+)-share-([0-9-]+)"`)
