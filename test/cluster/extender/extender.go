// Package extender is a scheduler extender for Neuron that speaks the documented protocol (filter and bind) and writes on pods what
// AWS's and HAMi write. Its state is the pods themselves.
package extender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	protocol "k8s.io/kube-scheduler/extender/v1"
)

const (
	Devices core.ResourceName = "aws.amazon.com/neuron"
	Cores   core.ResourceName = "aws.amazon.com/neuroncore"

	IDs       = "AWS_NEURON_IDS"
	AllocTime = "NEURON_ALLOC_TIME"
	Allocated = "NEURON_ALLOCATED"
	Type      = "NEURON_RESOURCE_TYPE"          // of HAMi, for cores
	Predicate = "aws.amazon.com/predicate-node" // of HAMi
)

// Extender serves /filter and /bind.
type Extender struct {
	client kubernetes.Interface
	mutex  sync.Mutex // one decision at a time
}

func New(client kubernetes.Interface) *Extender { return &Extender{client: client} }

func (e *Extender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	var answer any
	switch r.URL.Path {
	case "/filter":
		var args protocol.ExtenderArgs
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil || args.Pod == nil {
			http.Error(w, "no ExtenderArgs", http.StatusBadRequest)
			return
		}
		answer = e.filter(r.Context(), args)
	case "/bind":
		var args protocol.ExtenderBindingArgs
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			http.Error(w, "no ExtenderBindingArgs", http.StatusBadRequest)
			return
		}
		result := protocol.ExtenderBindingResult{}
		if err := e.bind(r.Context(), args); err != nil {
			result.Error = err.Error()
		}
		answer = result
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// filter takes nodes, or only their names (nodeCacheCapable), and answers in kind.
func (e *Extender) filter(ctx context.Context, args protocol.ExtenderArgs) protocol.ExtenderFilterResult {
	var names []string
	switch {
	case args.NodeNames != nil:
		names = *args.NodeNames
	case args.Nodes != nil:
		for _, node := range args.Nodes.Items {
			names = append(names, node.Name)
		}
	}
	result := protocol.ExtenderFilterResult{FailedNodes: protocol.FailedNodesMap{}}
	var fitting []string
	for _, name := range names {
		if _, err := e.place(ctx, args.Pod, name); err != nil {
			result.FailedNodes[name] = err.Error()
		} else {
			fitting = append(fitting, name)
		}
	}
	if args.Nodes != nil {
		result.Nodes = &core.NodeList{}
		for _, node := range args.Nodes.Items {
			if slices.Contains(fitting, node.Name) {
				result.Nodes.Items = append(result.Nodes.Items, node)
			}
		}
	} else {
		result.NodeNames = &fitting
	}
	return result
}

// bind writes the ids on the pod, by a merge patch of these keys alone, and then binds it.
func (e *Extender) bind(ctx context.Context, args protocol.ExtenderBindingArgs) error {
	pods := e.client.CoreV1().Pods(args.PodNamespace)
	pod, err := pods.Get(ctx, args.PodName, meta.GetOptions{})
	if err != nil {
		return err
	}
	if pod.UID != args.PodUID {
		return errors.New("another pod of that name")
	}
	placed, err := e.place(ctx, pod, args.Node)
	if err != nil {
		return err
	}
	if len(placed.IDs) > 0 {
		keys := map[string]any{"metadata": map[string]any{"uid": pod.UID, "annotations": placed.annotations(args.Node, time.Now())}}
		patch, err := json.Marshal(keys)
		if err != nil {
			return err
		}
		if _, err := pods.Patch(ctx, args.PodName, types.MergePatchType, patch, meta.PatchOptions{}); err != nil {
			return err
		}
	}
	return pods.Bind(ctx, &core.Binding{ObjectMeta: meta.ObjectMeta{Namespace: args.PodNamespace, Name: args.PodName, UID: args.PodUID},
		Target: core.ObjectReference{Kind: "Node", Name: args.Node}}, meta.CreateOptions{})
}

// place chooses on a node, where the pods that are bound to it have what is written on them.
func (e *Extender) place(ctx context.Context, pod *core.Pod, name string) (Placement, error) {
	node, err := e.client.CoreV1().Nodes().Get(ctx, name, meta.GetOptions{})
	if err != nil {
		return Placement{}, err
	}
	state, err := NodeOf(node)
	if err != nil {
		return Placement{}, err
	}
	all, err := e.client.CoreV1().Pods("").List(ctx, meta.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		return Placement{}, err
	}
	for i := range all.Items {
		if err := state.Take(&all.Items[i]); err != nil {
			return Placement{}, err
		}
	}
	return state.Place(pod)
}

// Placement is one flat list for a pod: the ids of its containers one after the other, init containers first.
type Placement struct {
	IDs   []int
	Cores bool // some are of cores
}

func (p Placement) annotations(node string, now time.Time) map[string]string {
	texts := make([]string, len(p.IDs))
	for i, id := range p.IDs {
		texts[i] = strconv.Itoa(id)
	}
	all := map[string]string{IDs: strings.Join(texts, ","), AllocTime: strconv.FormatInt(now.UnixNano(), 10), Allocated: "false", Predicate: node}
	if p.Cores {
		all[Type] = string(Cores)
	}
	return all
}

// Parse reads the ids of a pod; nil: none are written on it.
func Parse(pod *core.Pod) ([]int, error) {
	text, written := pod.Annotations[IDs]
	if !written {
		return nil, nil
	}
	var ids []int
	for _, part := range strings.Split(text, ",") {
		id, err := strconv.Atoi(part)
		if err != nil || id < 0 {
			return nil, fmt.Errorf("pod %s/%s: %s is %q", pod.Namespace, pod.Name, IDs, text)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
