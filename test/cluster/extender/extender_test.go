package extender

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"slices"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	protocol "k8s.io/kube-scheduler/extender/v1"
)

func node(kind, devices, cores string) *core.Node {
	one := &core.Node{ObjectMeta: meta.ObjectMeta{Name: "n1", Labels: map[string]string{core.LabelInstanceTypeStable: kind}}}
	one.Status.Capacity = core.ResourceList{Devices: resource.MustParse(devices), Cores: resource.MustParse(cores)}
	return one
}

func pod(name string, asks ...core.ResourceList) *core.Pod {
	one := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)}}
	for _, ask := range asks {
		one.Spec.Containers = append(one.Spec.Containers, core.Container{Resources: core.ResourceRequirements{Limits: ask}})
	}
	return one
}

func ask(name core.ResourceName, count string) core.ResourceList {
	return core.ResourceList{name: resource.MustParse(count)}
}

func TestPlace(t *testing.T) {
	for _, one := range []struct {
		kind, devices, cores string
		pod                  *core.Pod
		want                 []int // nil: refused
	}{
		{"trn1.32xlarge", "16", "32", pod("a", ask(Devices, "1")), []int{15}},
		{"trn1.32xlarge", "16", "32", pod("a", ask(Devices, "4")), []int{12, 13, 14, 15}},
		{"trn1.32xlarge", "16", "32", pod("a", ask(Devices, "16")), []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		{"trn1.32xlarge", "16", "32", pod("a", ask(Devices, "7")), nil},
		{"trn1.32xlarge", "16", "32", pod("a", ask(Cores, "1")), []int{30}},
		{"trn1.32xlarge", "16", "32", pod("a", ask(Cores, "8")), []int{24, 25, 26, 27, 28, 29, 30, 31}},
		{"trn1.32xlarge", "16", "32", pod("a", ask(Cores, "3")), nil},
		{"trn1.32xlarge", "16", "32", pod("a", ask(Devices, "1"), core.ResourceList{}, ask(Cores, "2")), []int{15, 28, 29}},
		{"inf2.48xlarge", "12", "24", pod("a", ask(Devices, "3")), []int{9, 10, 11}},
		{"inf2.48xlarge", "12", "24", pod("a", ask(Devices, "13")), nil},
	} {
		state, err := NodeOf(node(one.kind, one.devices, one.cores))
		if err != nil {
			t.Fatal(err)
		}
		placed, err := state.Place(one.pod)
		if (err == nil) != (one.want != nil) || !slices.Equal(placed.IDs, one.want) {
			t.Errorf("%s %v: %v, %v, want %v", one.kind, requestsOf(one.pod), placed.IDs, err, one.want)
		}
	}
}

func TestFilterAndBind(t *testing.T) {
	before, next := pod("before", ask(Cores, "1")), pod("next", ask(Cores, "2"))
	before.Spec.NodeName, before.Annotations = "n1", map[string]string{IDs: "30"}
	client := fake.NewClientset(node("trn1.32xlarge", "16", "32"), before, next)
	served := New(client)
	post := func(path string, args, answer any) {
		t.Helper()
		body, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		recorder := httptest.NewRecorder()
		served.ServeHTTP(recorder, httptest.NewRequest("POST", path, bytes.NewReader(body)))
		if err := json.Unmarshal(recorder.Body.Bytes(), answer); err != nil {
			t.Fatalf("%s: %d %s", path, recorder.Code, recorder.Body)
		}
	}
	var filtered protocol.ExtenderFilterResult
	post("/filter", protocol.ExtenderArgs{Pod: next, NodeNames: &[]string{"n1", "n2"}}, &filtered)
	if filtered.NodeNames == nil || !slices.Equal(*filtered.NodeNames, []string{"n1"}) || filtered.FailedNodes["n2"] == "" {
		t.Errorf("by names: %+v", filtered)
	}
	filtered = protocol.ExtenderFilterResult{}
	post("/filter", protocol.ExtenderArgs{Pod: next, Nodes: &core.NodeList{Items: []core.Node{*node("trn1.32xlarge", "16", "32")}}}, &filtered)
	if filtered.Nodes == nil || len(filtered.Nodes.Items) != 1 {
		t.Errorf("by nodes: %+v", filtered)
	}
	filtered = protocol.ExtenderFilterResult{}
	post("/filter", protocol.ExtenderArgs{Pod: next}, &filtered)
	if len(filtered.FailedNodes) != 0 {
		t.Errorf("without nodes: %+v", filtered)
	}
	var bound protocol.ExtenderBindingResult
	post("/bind", protocol.ExtenderBindingArgs{PodName: "next", PodNamespace: "default", PodUID: next.UID, Node: "n1"}, &bound)
	if bound.Error != "" {
		t.Fatal(bound.Error)
	}
	got, err := client.CoreV1().Pods("default").Get(t.Context(), "next", meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Annotations[IDs] != "28,29" || got.Annotations[Allocated] != "false" || got.Annotations[Type] != string(Cores) || len(got.Annotations[AllocTime]) != 19 {
		t.Errorf("annotations %v", slices.Collect(maps.Keys(got.Annotations)))
	}
	post("/bind", protocol.ExtenderBindingArgs{PodName: "next", PodNamespace: "default", PodUID: "another", Node: "n1"}, &bound)
	if bound.Error == "" {
		t.Error("another pod of that name was bound")
	}
}
