package scenarios

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"neuron-agent.test/cluster/cluster"
)

const (
	draManifest = "static/neuron-agent-dra.yaml"
	draAccount  = "neuron-agent-dra"
)

// ofClaims makes a node one for claims.
func ofClaims(spec cluster.Spec) cluster.Spec {
	spec.Name += "-dra"
	spec.Labels = map[string]string{"neuron-agent/mode": "dra"}
	return spec
}

// TestSlicePolicy: with the driver's token, that of a pod on a node, only slices of that node, driver and pool are written; with
// another token of the account none; and nobody else is touched.
func TestSlicePolicy(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Trn1, cluster.Bare) // without the label: no agent comes up
	c.Apply(t, cluster.Manifest(draManifest))
	own, other := nodes[0].Name, nodes[1].Name
	driver := c.As(t, tokenOn(t, c, own))
	slicesOf := func(node string) *resource.ResourceSlice { return slicesByHand(node)[2] }
	awaitPolicy(t, driver, slicesOf(other))

	t.Run("Create", func(t *testing.T) {
		for name, change := range map[string]func(*resource.ResourceSlice){
			"spec.nodeName names another":  func(s *resource.ResourceSlice) { s.Spec.NodeName = &other },
			"spec.driver names another":    func(s *resource.ResourceSlice) { s.Spec.Driver = "gpu.example.com" },
			"spec.pool.name names another": func(s *resource.ResourceSlice) { s.Spec.Pool.Name = own + "x" },
			"metadata.name is another":     func(s *resource.ResourceSlice) { s.Name = slicesOf(other).Name },
			"slices of node " + own + " only": func(s *resource.ResourceSlice) {
				all := true
				s.Spec.NodeName, s.Spec.AllNodes = nil, &all
			},
		} {
			slice := slicesOf(own)
			change(slice)
			_, err := driver.ResourceV1().ResourceSlices().Create(context.Background(), slice, meta.CreateOptions{})
			expectDenied(t, err, name)
		}
	})
	below := slicesOf(own)
	below.Spec.Pool.Name, below.Name = own+"/second", strings.Replace(below.Name, "00002", "00009", 1)
	_, err := driver.ResourceV1().ResourceSlices().Create(context.Background(), below, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
	if err != nil {
		t.Error("a pool below the node's: ", err)
	}
	t.Run("GenerateName", func(t *testing.T) { // the server makes the name before the policy sees it
		slice := slicesOf(own)
		slice.GenerateName, slice.Name = slicesOf(other).Name+"-", ""
		_, err := driver.ResourceV1().ResourceSlices().Create(context.Background(), slice, meta.CreateOptions{})
		expectDenied(t, err, "metadata.name is another")
	})
	created, err := driver.ResourceV1().ResourceSlices().Create(context.Background(), slicesOf(own), meta.CreateOptions{})
	if err != nil {
		t.Fatal("a slice of the own node: ", err)
	}
	foreign, err := c.Client.ResourceV1().ResourceSlices().Create(context.Background(), slicesOf(other), meta.CreateOptions{})
	if err != nil {
		t.Fatal("a slice by an administrator: ", err)
	}
	t.Cleanup(func() { c.Kubectl(t, "delete", "--ignore-not-found", "resourceslice", created.Name, foreign.Name) })
	t.Run("UpdateAndDelete", func(t *testing.T) { expectOwnSlicesOnly(t, driver, created, foreign) })
	t.Run("OtherTokens", func(t *testing.T) {
		for name, token := range map[string]string{"of another node": tokenOn(t, c, other), "of no pod": tokenOf(t, c, nil)} {
			slice := slicesOf(own)
			slice.Name = strings.Replace(slice.Name, "00002", "00008", 1)
			_, err := c.As(t, token).ResourceV1().ResourceSlices().Create(context.Background(), slice, meta.CreateOptions{})
			expectDenied(t, err, map[string]string{"of no pod": "token of a pod on a node only"}[name])
		}
	})
	t.Run("NothingElse", func(t *testing.T) { expectNothingElse(t, driver) })
}

// awaitPolicy: the API server learns of a new policy from its own watch.
func awaitPolicy(t *testing.T, driver kubernetes.Interface, foreign *resource.ResourceSlice) {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, "the policy is in force", func() error {
		_, err := driver.ResourceV1().ResourceSlices().Create(context.Background(), foreign, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return fmt.Errorf("a slice of another node: %v", err)
		}
		return nil
	})
}

func expectDenied(t *testing.T, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'neuron-agent-dra'") || !strings.Contains(err.Error(), words) {
		t.Errorf("%v, want a refusal with %q", err, words)
	}
}

func expectOwnSlicesOnly(t *testing.T, driver kubernetes.Interface, own, foreign *resource.ResourceSlice) {
	ctx, all := context.Background(), driver.ResourceV1().ResourceSlices()
	own.Spec.Pool.Generation++
	if _, err := all.Update(ctx, own, meta.UpdateOptions{}); err != nil {
		t.Error("the own slice is not updated: ", err)
	}
	foreign.Spec.Pool.Generation++
	_, err := all.Update(ctx, foreign, meta.UpdateOptions{})
	expectDenied(t, err, "spec.nodeName names another")
	patch := []byte(`{"spec":{"pool":{"generation":7}}}`)
	_, err = all.Patch(ctx, foreign.Name, "application/merge-patch+json", patch, meta.PatchOptions{})
	expectDenied(t, err, "spec.nodeName names another")
	expectDenied(t, all.Delete(ctx, foreign.Name, meta.DeleteOptions{}), "spec.nodeName names another")
	if err := all.DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{}); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("all slices at once: %v", err)
	}
	if err := all.Delete(ctx, own.Name, meta.DeleteOptions{}); err != nil {
		t.Error("the own slice is not deleted: ", err)
	}
}

// expectNothingElse: what the role does not say.
func expectNothingElse(t *testing.T, driver kubernetes.Interface) {
	ctx := context.Background()
	_, secrets := driver.CoreV1().Secrets(system).List(ctx, meta.ListOptions{})
	_, pods := driver.CoreV1().Pods(system).List(ctx, meta.ListOptions{})
	_, nodes := driver.CoreV1().Nodes().List(ctx, meta.ListOptions{})
	_, claims := driver.ResourceV1().ResourceClaims("default").List(ctx, meta.ListOptions{})
	_, made := driver.CoreV1().Pods("default").Create(ctx, &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "x"}}, meta.CreateOptions{})
	for what, err := range map[string]error{"secrets": secrets, "pods": pods, "nodes": nodes, "claims": claims, "a new pod": made} {
		if err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// tokenOn returns a token of the driver's account, bound to a pod on that node, as the kubelet mounts them.
func tokenOn(t *testing.T, c *cluster.Cluster, node string) string {
	t.Helper()
	w := cluster.One("token-"+node, nil)
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: w.Name}, Spec: w.PodTemplate().Spec}
	pod.Spec.NodeName, pod.Spec.ServiceAccountName = node, draAccount
	c.CreatePod(t, system, pod)
	made, err := c.Client.CoreV1().Pods(system).Get(context.Background(), pod.Name, meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return tokenOf(t, c, made)
}

// tokenOf returns one that is bound to that pod, or to nothing.
func tokenOf(t *testing.T, c *cluster.Cluster, pod *core.Pod) string {
	t.Helper()
	return tokenFor(t, c, draAccount, pod)
}

// tokenFor returns one of any account.
func tokenFor(t *testing.T, c *cluster.Cluster, account string, pod *core.Pod) string {
	t.Helper()
	request := &authentication.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authentication.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	answer, err := c.Client.CoreV1().ServiceAccounts(system).CreateToken(context.Background(), account, request, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}
