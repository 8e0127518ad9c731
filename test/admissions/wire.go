package main

import v1 "k8s.io/api/core/v1"

// One line of JSON each way: the life of a node asks, the kubelet half answers, in any order.

type question struct {
	Number    uint64
	Op        string     // start, pods, admit, options, inactive, status, look
	Start     *beginning `json:",omitempty"` // start
	Pods      []*v1.Pod  `json:",omitempty"` // pods: all that the API server has, once after start
	Pod       *v1.Pod    `json:",omitempty"` // admit
	UID       string     `json:",omitempty"` // options, inactive
	Container string     `json:",omitempty"` // options
}

// beginning is what a kubelet finds when it starts: the runtime's containers, its own node object.
type beginning struct {
	Containers  []knownContainer
	Allocatable map[string]int64 // what was posted last; empty at the very first start
	Policy      string           // of the Topology Manager
	Scope       string
	NumaNodes   []int
	PostMillis  int // between two node statuses
}

type knownContainer struct {
	UID, Container, ID string
	Running            bool
}

type reply struct {
	Number   uint64
	Error    string       `json:",omitempty"`
	Verdicts []verdict    `json:",omitempty"` // pods: one each; admit: one
	Held     []heldIDs    `json:",omitempty"` // admit: of the pod; look: of all pods; options: of the container
	Env      []variable   `json:",omitempty"` // options
	Nodes    []deviceNode `json:",omitempty"` // options

	Healthy map[string][]string `json:",omitempty"` // look: ids that the kubelet would give away, held or not
	Status  []heldIDs           `json:",omitempty"` // look: by container and resource, the ids called unhealthy
	Posted  map[string]int64    `json:",omitempty"` // pods, admit, status, look: allocatable of the last node status
}

type verdict struct {
	UID             string
	Admitted        bool
	Reason, Message string
}

// heldIDs is what the device manager has on record for one container and one resource.
type heldIDs struct {
	UID, Container, Resource string
	IDs                      []string
}

type variable struct{ Name, Value string }

type deviceNode struct{ Host, Container, Permissions string }
