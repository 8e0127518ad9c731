package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"neuron-agent.test/suite"
)

const (
	kubeletDir    = "/var/lib/kubelet" // hard-coded in the kubelet's device manager
	kubernetesDir = "/etc/kubernetes"
	healthPort    = 10248
)

// kubeletRoot is where the kubelet keeps all but device-plugins.
func (n *Node) kubeletRoot() string { return cmp.Or(n.KubeletRoot, kubeletDir) }

// ofNode returns a path as the test sees it that may be outside the node's disk, for sockets below /run.
func (n *Node) ofNode(path string) string {
	return fmt.Sprintf("/proc/%d/root%s", n.first.Process.Pid, path)
}

// writeNetworkConfig: pods have addresses of their node's range and reach the others through the suite's namespace, unmasked.
func (n *Node) writeNetworkConfig() error {
	text, err := json.Marshal(map[string]any{
		"cniVersion": "1.0.0", "name": "pods",
		"plugins": []any{map[string]any{
			"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false, "hairpinMode": true,
			"ipam": map[string]any{
				"type": "host-local", "ranges": []any{[]any{map[string]any{"subnet": podRange(n.number)}}},
				"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
			},
		}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(n.Disk("/etc/cni/net.d/10-pods.conflist"), text, 0o644)
}

func (n *Node) writeKubeletConfig() error {
	dir, a := n.Disk(kubernetesDir), n.cluster.authority
	user := identity{user: "system:node:" + n.Name, groups: []string{"system:nodes"}}
	server := identity{user: user.user, names: []string{n.Name}, addresses: []string{n.Address()}}
	_, err := a.writeKubeconfig(dir, "kubelet", user)
	err = errors.Join(err, a.issue(dir, "server", server), os.WriteFile(dir+"/ca.crt", a.pem, 0o644),
		os.WriteFile(dir+"/resolv.conf", nil, 0o644))
	if err != nil {
		return err
	}
	every := n.StatusEvery
	if every == 0 {
		every = 2 * time.Second
	}
	config, err := json.Marshal(map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address": "0.0.0.0", "healthzBindAddress": n.Address(), "healthzPort": healthPort, "resolvConf": kubernetesDir + "/resolv.conf",
		"tlsCertFile": kubernetesDir + "/server.crt", "tlsPrivateKeyFile": kubernetesDir + "/server.key",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": kubernetesDir + "/ca.crt"},
		},
		"authorization":             map[string]any{"mode": "Webhook"},
		"containerRuntimeEndpoint":  "unix://" + n.engine().socket(),
		"nodeStatusUpdateFrequency": every.String(),
		"failSwapOn":                false, "failCgroupV1": false,
		"cgroupDriver": "cgroupfs", "cgroupRoot": n.group(), "enforceNodeAllocatable": []string{},
		"localStorageCapacityIsolation": false, "makeIPTablesUtilChains": false,
		"imageGCHighThresholdPercent": 100,
		"evictionHard":                map[string]any{"memory.available": "0%", "nodefs.available": "0%"},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(dir+"/kubelet.json", config, 0o644)
}

// StartKubelet starts the kubelet and waits until it is healthy. It ends by itself, and needs to be started again, if
// containerd does not serve while it starts.
func (n *Node) StartKubelet() error {
	arguments := []string{env.kube(n.Kubernetes, "kubelet"), "--config", kubernetesDir + "/kubelet.json", "--kubeconfig",
		kubernetesDir + "/kubelet.kubeconfig", "--hostname-override", n.Name, "--node-ip", n.Address(), "-v", "2"}
	if n.cluster.Gates != "" {
		arguments = append(arguments, "--feature-gates="+n.cluster.Gates)
	}
	if n.KubeletRoot != "" {
		arguments = append(arguments, "--root-dir", n.KubeletRoot)
	}
	if labels := n.labels(); labels != "" {
		arguments = append(arguments, "--node-labels", labels)
	}
	if n.StartupTaints != "" {
		arguments = append(arguments, "--register-with-taints", n.StartupTaints)
	}
	var err error
	if n.Kubelet, err = n.start("kubelet", nil, arguments...); err != nil {
		return err
	}
	return suite.Wait(Patience, n.Name+": the kubelet is healthy", func() error {
		if err := n.Kubelet.Running(); err != nil {
			return suite.Permanent(err)
		}
		return expectOK(fmt.Sprintf("http://%s:%d/healthz", n.Address(), healthPort))
	})
}

// expectOK asks a health endpoint.
func expectOK(url string) error {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return nil
}
