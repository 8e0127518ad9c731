#include <array>

#include "agent/metrics/metric_table.h"

// What is shown of EFA interfaces. Counters: docs/reference/efa.md#counters.
namespace neuron::metrics {
namespace {

using enum MetricType;

constexpr auto kEfas = std::to_array<Metric>({
    {"efa_info", info, "pci_device, numa_node, driver_version", Held::yes,
     "Facts of an interface; unknown labels are empty", "PCI, `sys/module/efa/version`"},
    {"efa_present", gauge, "", Held::no,
     "1: the interface is on the PCI bus; 0: it vanished; absent while a read of it hangs", "`sys/bus/pci/devices`"},
    {"efa_healthy", gauge, "", Held::yes,
     "1: healthy or degraded; 0: unhealthy, taken out of allocatable; absent while unknown",
     "the verdict of the health policy"},
    {"efa_health_info", info, "state, reason", Held::yes, "The verdict on an interface; reason is empty when healthy",
     "the verdict of the health policy"},
});

// A counter of the port or of the whole interface; the name ends in its file's.
struct Counter {
  std::string_view name;
  std::string_view help;
};

constexpr Metric of_port(Counter one) {
  return {one.name, counter, "", Held::yes, one.help, "`ports/1/hw_counters/`"};
}

constexpr Metric of_interface(Counter one) {
  return {one.name, counter, "", Held::yes, one.help, "`hw_counters/`"};
}

constexpr std::array kEfaCounters = {
    Metric{"node_amazonefa_info", info, "", Held::yes, "An interface with counters", "`sys/class/infiniband/<device>`"},
    of_port({"node_amazonefa_tx_bytes", "Bytes sent"}),
    of_port({"node_amazonefa_tx_pkts", "Packets sent"}),
    of_port({"node_amazonefa_rx_bytes", "Bytes received"}),
    of_port({"node_amazonefa_rx_pkts", "Packets received"}),
    of_port({"node_amazonefa_rx_drops", "Packets dropped on receipt"}),
    of_port({"node_amazonefa_send_bytes", "Bytes of send work requests"}),
    of_port({"node_amazonefa_send_wrs", "Send work requests"}),
    of_port({"node_amazonefa_recv_bytes", "Bytes of receive work requests"}),
    of_port({"node_amazonefa_recv_wrs", "Receive work requests"}),
    of_port({"node_amazonefa_rdma_read_wrs", "RDMA read work requests"}),
    of_port({"node_amazonefa_rdma_read_bytes", "Bytes read by RDMA"}),
    of_port({"node_amazonefa_rdma_read_wr_err", "RDMA read work requests that failed"}),
    of_port({"node_amazonefa_rdma_read_resp_bytes", "Bytes sent in answer to RDMA reads"}),
    of_port({"node_amazonefa_rdma_write_wrs", "RDMA write work requests; EFA driver from 2.5"}),
    of_port({"node_amazonefa_rdma_write_bytes", "Bytes written by RDMA; EFA driver from 2.5"}),
    of_port({"node_amazonefa_rdma_write_wr_err", "RDMA write work requests that failed; EFA driver from 2.5"}),
    of_port({"node_amazonefa_rdma_write_recv_bytes", "Bytes that others wrote by RDMA; EFA driver from 2.5"}),
    of_port({"node_amazonefa_retrans_bytes", "Bytes retransmitted; EFA driver from 2.17, Nitro v4 or later"}),
    of_port({"node_amazonefa_retrans_pkts", "Packets retransmitted; EFA driver from 2.17, Nitro v4 or later"}),
    of_port({"node_amazonefa_retrans_timeout_events",
             "Timeouts that caused retransmission; EFA driver from 2.17, Nitro v4 or later"}),
    of_port({"node_amazonefa_unresponsive_remote_events",
             "Remote ends that stopped answering; EFA driver from 2.17, Nitro v4 or later"}),
    of_port({"node_amazonefa_impaired_remote_conn_events",
             "Connections that became impaired; EFA driver from 2.17, Nitro v4 or later"}),
    of_interface({"node_amazonefa_submitted_cmds", "Commands that the driver submitted to the interface"}),
    of_interface({"node_amazonefa_completed_cmds", "Commands that the interface answered"}),
    of_interface({"node_amazonefa_cmds_err", "Commands that failed"}),
    of_interface({"node_amazonefa_no_completion_cmds", "Commands that were never answered"}),
    of_interface({"node_amazonefa_keep_alive_rcvd", "Keep-alive messages from the interface"}),
    of_interface({"node_amazonefa_alloc_pd_err", "Protection domain allocations that failed"}),
    of_interface({"node_amazonefa_create_qp_err", "Queue pair creations that failed"}),
    of_interface({"node_amazonefa_create_cq_err", "Completion queue creations that failed"}),
    of_interface({"node_amazonefa_reg_mr_err", "Memory region registrations that failed"}),
    of_interface({"node_amazonefa_alloc_mr_err", "Memory region allocations that failed"}),
    of_interface({"node_amazonefa_get_dma_mr_err", "DMA memory region requests that failed"}),
    of_interface({"node_amazonefa_alloc_ucontext_err", "User context allocations that failed"}),
    of_interface({"node_amazonefa_create_ah_err", "Address handle creations that failed"}),
    of_interface({"node_amazonefa_mmap_err", "Mappings that failed"}),
};

}  // namespace

std::span<const Metric> efa_metrics() {
  return kEfas;
}

std::span<const Metric> efa_counter_metrics() {
  return kEfaCounters;
}

}  // namespace neuron::metrics
