"""Debian's Prometheus on a directory of its own, and the questions a test has for it."""
import json
import os
import urllib.error
import urllib.parse
import urllib.request

from processes import free_port, wait_until

# As the PodMonitor has it (manifests/monitoring/pod-monitor.yaml): `instance` and `node` are the node's name, and no label of the
# agent's own pod is in the way of the labels that say who holds what. The second job is CloudWatch's, with the names that it keeps
# (docs/reference/kubernetes-stack.md#metrics-and-pods).
CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: neuron-agent
    scheme: {scheme}
    tls_config: {{ca_file: {ca}}}
    static_configs: [{{targets: ["{target}"], labels: {{instance: {node}, node: {node}}}}}]
  - job_name: containerInsightsNeuronMonitorScraper
    scheme: {scheme}
    tls_config: {{ca_file: {ca}}}
    static_configs: [{{targets: ["{target}"]}}]
    metric_relabel_configs: [{{source_labels: [__name__], regex: "(neuron|execution_|hardware_ecc_).*", action: keep}}]
"""


class Prometheus:
    """Started by the constructor."""

    def __init__(self, processes, directory, rules, target, node, ca=""):
        data, config = os.path.join(directory, "prometheus"), os.path.join(directory, "prometheus.yml")
        scheme = "https" if ca else "http"
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(rules=rules, target=target, node=node, ca=ca or '""', scheme=scheme))
        self._address = f"127.0.0.1:{free_port()}"
        processes.start("prometheus", ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={data}",
                                       f"--web.listen-address={self._address}", "--log.level=warn"])
        wait_until("Prometheus is ready", self._is_ready)

    def _is_ready(self):
        try:
            with urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def get(self, path, **parameters):
        """`data` of an answer of the API. Raises ValueError with its error."""
        address = f"http://{self._address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(address, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error).get("error", str(error))) from error

    def query(self, expression):
        """[(labels, value)], empty where nothing matches. Raises ValueError when it is no query."""
        data = self.get("query", query=expression)
        if data["resultType"] == "scalar":
            return [({}, float(data["result"][1]))]
        return [(one["metric"], float(one["value"][1])) for one in data["result"]]

    def firing(self):
        """{(name, device index or interface): alert} of those that fire."""
        alerts = self.get("alerts")["alerts"]
        return {(one["labels"]["alertname"], one["labels"].get("neuron_device_index", one["labels"].get("device", ""))): one
                for one in alerts if one["state"] == "firing"}
