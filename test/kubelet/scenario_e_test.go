package kubelettest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"neuron-agent.test/suite"
)

// upTo returns the ids "0" to "n-1".
func upTo(n int) []string {
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprint(i))
	}
	return ids
}

// Scenario e: Allocate over the plugin's own socket with ids that must be refused; afterwards the node is
// as it was.
func testRefusals(t *testing.T, n *node) {
	cores, devices := plugin(t, upTo(32)), plugin(t, upTo(16))
	holder := onePod("holder", ask{neuron: "1"})
	n.expectRunning(t, holder)
	n.expectAllocatable(t, withinASecond, counts{30, 16, 8})
	taken := number(t, holdings(t, holder.name)["main"][neuron][0])
	failing := (taken + 5) % 16
	free := fmt.Sprint(2 * ((taken + 1) % 16)) // a core that nobody holds
	n.inject(t, fmt.Sprintf("neuron%d", failing), "sram_ecc_uncorrected=1")
	n.expectAllocatable(t, withinASecond, counts{28, 15, 8})

	for _, c := range []struct {
		name   string
		client deviceplugin.DevicePluginClient
		ids    []string
		code   codes.Code
		words  []string
	}{
		{"unknown", cores, []string{free, "999"}, codes.InvalidArgument, []string{"999"}},
		{"not a number", cores, []string{"../../etc"}, codes.InvalidArgument, nil},
		{"duplicate", cores, []string{free, free}, codes.InvalidArgument, []string{free}},
		{"none", cores, nil, codes.InvalidArgument, nil},
		{"unhealthy device", devices, []string{fmt.Sprint(failing)},
			codes.FailedPrecondition, []string{fmt.Sprint(failing)}},
		{"unhealthy core", cores, []string{fmt.Sprint(2 * failing)},
			codes.FailedPrecondition, []string{fmt.Sprint(2 * failing)}},
	} {
		t.Run(c.name, func(t *testing.T) { t.Log(expectAllocateFails(t, c.client, c.ids, c.code, c.words)) })
	}

	t.Run("held by a pod", func(t *testing.T) {
		var message string
		// The name comes from PodResources, which the agent asks sparingly and not close to an Allocate.
		err := suite.WaitEvery(2*time.Second, 3*withinASecond, "the refusal names the holder", func() error {
			message = expectAllocateFails(t, cores, []string{fmt.Sprint(2*taken + 1)}, codes.FailedPrecondition, nil)
			if !strings.Contains(message, staticName(holder.name)) {
				return errors.New(message)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(message)
	})

	n.inject(t, fmt.Sprintf("neuron%d", failing), "heal")
	n.expectAllocatable(t, withinASecond, counts{30, 16, 8})
	rest := onePod("the-rest", ask{neuronCore: "30"}) // all of it: nothing leaked
	found, h := n.expectRunning(t, rest)["main"], holdings(t, rest.name)["main"]
	n.expectGiven(t, found, h, trn1CoresPerDevice)
	expectDisjoint(t, holdings(t, holder.name)["main"], h)
}

// expectAllocateFails returns the message of the refusal.
func expectAllocateFails(t *testing.T, client deviceplugin.DevicePluginClient, ids []string, want codes.Code,
	words []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := client.Allocate(ctx, &deviceplugin.AllocateRequest{
		ContainerRequests: []*deviceplugin.ContainerAllocateRequest{{DevicesIds: ids}}})
	if err == nil {
		t.Fatalf("Allocate(%v) answered %v", ids, answer)
	}
	if status.Code(err) != want {
		t.Errorf("Allocate(%v): %v, want %v", ids, status.Code(err), want)
	}
	for _, word := range words {
		if !strings.Contains(status.Convert(err).Message(), word) {
			t.Errorf("the message does not say %q: %v", word, err)
		}
	}
	return status.Convert(err).Message()
}
