"""What other people's dashboards and collectors ask for, in words of our own: metric names and labels are theirs
(docs/reference/official-tools.md#prometheus-metrics, docs/reference/kubernetes-stack.md#metrics-and-pods)."""

# AWS's Grafana dashboard for neuron-monitor: one query at least for each metric that it shows.
AWS_DASHBOARD = [
    "instance_info",
    "count(instance_info)",
    "sum(system_vcpu_count)",
    "avg(sum by (instance_id) (system_vcpu_usage_ratio))",
    "avg by (usage_type) (system_vcpu_usage_ratio)",
    "avg(system_memory_used_bytes / system_memory_total_bytes)",
    "avg(system_memory_used_bytes)",
    "count(neuroncore_utilization_ratio > 0)",
    "avg(neuroncore_utilization_ratio)",
    "avg by (neuroncore) (neuroncore_utilization_ratio)",
    'sum(rate(execution_status_total{status_type="completed"}[1m]))',
    'sum(rate(execution_status_total{status_type!="completed"}[1m]))',
    "avg by (percentile) (execution_latency_seconds)",
    "avg by (usage_type) (neuron_runtime_vcpu_usage_ratio)",
    "avg by (memory_location) (sum by (instance_id, memory_location) (neuron_runtime_memory_used_bytes))",
]

# CloudWatch's processor: what it renames, sums up and attributes.
CORE_MEMORY = ["neuroncore_memory_usage_" + kind
               for kind in ("constants", "model_code", "model_shared_scratchpad", "runtime_memory", "tensors")]
CLOUDWATCH = [
    "neuron_hardware_info",
    "neuroncore_utilization_ratio",
    *CORE_MEMORY,
    'neuron_runtime_memory_used_bytes{memory_location="host"}',
    'neuron_runtime_memory_used_bytes{memory_location="neuron_device"}',
    *[f'execution_status_total{{status_type="{status}"}}'
      for status in ("completed", "completed_with_err", "completed_with_num_err", "timed_out", "incorrect_input", "failed_to_queue")],
    *[f'execution_errors_total{{error_type="{error}"}}' for error in ("generic", "numerical", "transient", "model", "runtime", "hardware")],
    *[f'hardware_ecc_events_total{{event_type="{event}"}}'
      for event in ("mem_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_corrected", "sram_ecc_uncorrected")],
    'execution_latency_seconds{percentile="p99"}',
]

# Datadog's check aws_neuron, beyond the above; of counters it takes the name without _total.
DATADOG = [
    "execution_errors_total", "execution_status_total", "hardware_ecc_events_total", "execution_latency_seconds",
    "instance_info", "neuron_hardware_info", "neuron_runtime_memory_used_bytes", "neuron_runtime_vcpu_usage_ratio",
    "neuroncore_utilization_ratio", *CORE_MEMORY,
    "system_memory_total_bytes", "system_memory_used_bytes", "system_swap_total_bytes", "system_swap_used_bytes",
    "system_vcpu_count", "system_vcpu_usage_ratio",
    "execution_errors_created", "execution_status_created", "hardware_ecc_events_created",
    "process_cpu_seconds_total", "process_open_fds", "process_max_fds", "process_resident_memory_bytes",
    "process_start_time_seconds", "process_virtual_memory_bytes",
    "python_gc_collections_total", "python_gc_objects_collected_total", "python_gc_objects_uncollectable_total", "python_info",
]

# What returns nothing: a part of the query, and how docs/metrics.md names it where it says why.
NOTHING = {
    "execution_latency_seconds": "`execution_latency_seconds`",
    'error_type="transient"': "`transient`",
    'error_type="model"': "`model`",
    'error_type="runtime"': "`runtime`",
    "_created": "`*_created`",
    "process_": "`process_*`",
    "python_": "`python_*`",
}


def is_nothing(query):
    return any(part in query for part in NOTHING)
