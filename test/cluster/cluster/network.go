package cluster

import (
	"fmt"
	"net"
	"os"
	"strings"

	"neuron-agent.test/suite"
)

// Addresses. All of them exist only in the suite's network namespaces.
const (
	bridge       = "nodes"
	gateway      = "10.99.0.1"    // of the nodes; the API server is advertised here
	serviceRange = "10.96.0.0/16" // only its first address is ever served
	apiService   = "10.96.0.1"    // kubernetes.default
)

func nodeAddress(number int) string { return fmt.Sprintf("10.99.0.%d", 10+number) }
func nodePort(number int) string    { return fmt.Sprintf("node%d", number) } // on the bridge
func podRange(number int) string    { return fmt.Sprintf("10.244.%d.0/24", number) }

// suiteNetwork gives the suite's namespace what routers and kube-proxy are elsewhere. The API server listens on the service
// address itself, so that pods reach kubernetes.default without kube-proxy.
func suiteNetwork() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return err
	}
	return ip("link set lo up",
		"link add "+bridge+" type bridge",
		"addr add "+gateway+"/24 dev "+bridge,
		"link set "+bridge+" up",
		"addr add "+apiService+"/32 dev lo",
		"route add default dev "+bridge) // the API server refuses to start without one
}

// connectNode lays a wire between the bridge and the network namespace of a node's first process.
func connectNode(number, pid int) error {
	port, address := nodePort(number), nodeAddress(number)
	if err := ip(
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", port, pid),
		fmt.Sprintf("link set %s master %s up", port, bridge)); err != nil {
		return err
	}
	for _, arguments := range []string{
		"link set lo up", "addr add " + address + "/24 dev eth0", "link set eth0 up", "route add default via " + gateway} {
		inside := append([]string{"--target", fmt.Sprint(pid), "--net", "ip"}, strings.Fields(arguments)...)
		if _, err := suite.Run("nsenter", inside...); err != nil {
			return err
		}
	}
	return ip(fmt.Sprintf("route replace %s via %s", podRange(number), address))
}

// disconnectNode removes the wire; the other end vanishes with it. The kernel removes it too, a while after the node's
// network namespace has lost its last process.
func disconnectNode(number int) error {
	err := ip("link del " + nodePort(number))
	if _, missing := net.InterfaceByName(nodePort(number)); missing != nil {
		return nil
	}
	return err
}

func ip(commands ...string) error {
	for _, arguments := range commands {
		if _, err := suite.Run("ip", strings.Fields(arguments)...); err != nil {
			return err
		}
	}
	return nil
}
