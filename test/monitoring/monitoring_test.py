#!/usr/bin/env python3
"""Alerts by promtool; then every query that we know of, against a real Prometheus that scrapes a busy simulated node.

usage: monitoring_test.py ROOT DIRECTORY TARGET      run.sh says what these are; TARGET may be empty
"""
import glob
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.request

import others
import rules_text
from processes import GaveUp, Processes, wait_until
from prometheus import Prometheus
from simulated_node import NODE_NAME, SimulatedNode
from tally import Tally

SCRAPES = 25  # so that rates over 20 s have something to compare; scrapes come every second

# Queries that are rightly empty on a sound node without node status, on which nothing was refused.
EMPTY_WHEN_SOUND = {"Not healthy", "ECC events", "Firmware's errors", "Errors", "Calls to the API server", "Calls, 99 %"}
SERIES_WHEN_ASKED = {"neuron_agent_api_calls_total", "ALERTS"}


def promtool(*arguments, **how):
    return subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False, **how)


def check_rules(tally, root):
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", os.path.join(root, rules_text.RULES))
    tally.check("promtool check rules", done.returncode == 0, done.stderr + done.stdout)
    for path in sorted(glob.glob(os.path.join(root, "test/monitoring/*.test.yaml"))):
        done = promtool("test", "rules", path)
        tally.check(f"promtool test rules {os.path.basename(path)}", done.returncode == 0, done.stderr + done.stdout)


def fetch(target, ca, accept=""):
    """The text of a scrape."""
    context = ssl.create_default_context(cafile=ca) if ca else None
    request = urllib.request.Request(f"{'https' if ca else 'http'}://{target}/metrics", headers={"Accept": accept} if accept else {})
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:
        return answer.read().decode()


def check_text(tally, target, ca):
    text = fetch(target, ca)
    done = promtool("check", "metrics", input=text)
    # 3: taken, with remarks on names that others have chosen
    tally.check("promtool check metrics", done.returncode in (0, 3), done.stderr)
    names = [{re.match(r"[^{ ]+", line).group() for line in one.splitlines() if line and line[0] != "#"}
             for one in (text, fetch(target, ca, "application/openmetrics-text; version=1.0.0"))]
    tally.check("both text formats have the same names", names[0] == names[1], sorted(names[0] ^ names[1]))


def ask(tally, prometheus, what, query):
    """The answer, None when it is no query."""
    try:
        return prometheus.query(query)
    except ValueError as error:
        tally.check(what, False, f"{query}: {error}")
        return None


def check_others(tally, prometheus):
    for query in others.AWS_DASHBOARD + others.DATADOG:
        check_other(tally, query, ask(tally, prometheus, "AWS, Datadog", query))
    for query in others.CLOUDWATCH:
        answer = ask(tally, prometheus, "CloudWatch", query)
        kept = [one for one in answer or [] if one[0].get("job") == "containerInsightsNeuronMonitorScraper"]
        check_other(tally, query, kept)


def check_other(tally, query, answer):
    if others.is_nothing(query):
        tally.check(f"{query} is said to return nothing", not answer, "it returns something: docs/metrics.md is old")
    else:
        tally.check(query, answer, "returns nothing")


def check_numbering(tally, prometheus):
    """CloudWatch takes core / cores per device for the device, and joins pods by the kubelet's ids."""
    (hardware, _), *more = prometheus.query('neuron_hardware_info{job="neuron-agent"}')
    per_device, devices = int(hardware["neuroncore_per_device_count"]), int(hardware["neuron_device_count"])
    cores = {(int(one["neuroncore"]), int(one["neuron_device_index"])) for one, _ in prometheus.query("neuron_core_info")}
    used = {int(one["neuroncore"]) for one, _ in prometheus.query("neuroncore_utilization_ratio")}
    tally.check("neuron_hardware_info is there once", not more, more)
    tally.check("cores and cores per device are one numbering", all(core // per_device == device for core, device in cores), sorted(cores))
    tally.check("every core has its utilization", used == set(range(per_device * devices)) == {core for core, _ in cores}, sorted(used))


def check_dashboard(tally, root, prometheus):
    for title, query in rules_text.panels(root):
        answer = ask(tally, prometheus, f"dashboard, {title}", query)
        if answer is not None:
            tally.check(f"dashboard, {title}: {query}", answer or title in EMPTY_WHEN_SOUND or SERIES_WHEN_ASKED & rules_text.metrics_of(query),
                        "returns nothing")


def check_alerts(tally, root, prometheus):
    rules = {rule["name"]: rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]}
    for name, alert in rules_text.alerts(root).items():
        rule = rules.get(name, {})
        tally.check(f"alert {name} evaluates", rule.get("health") == "ok", rule.get("lastError", "not loaded"))
        for metric in sorted(rules_text.metrics_of(alert["expr"]) - SERIES_WHEN_ASKED):
            tally.check(f"alert {name}: {metric} has series", prometheus.query(metric), "none")
    tally.check("no alert on a sound node", not prometheus.firing(), sorted(prometheus.firing()))


def check_holders(tally, prometheus):
    """The series say which container holds what the kubelet gave it."""
    for query, count in (('neuron_device_info{job="neuron-agent", namespace="default", pod="train", container="main"}', 4),
                         ('neuroncore_utilization_ratio{job="neuron-agent", pod="train"}', 16),
                         ('node_amazonefa_tx_bytes{job="neuron-agent", pod="train", container="main"}', 4),
                         ('neuron_device_info{job="neuron-agent", pod="serve"}', 1),
                         ('neuron_device_info{job="neuron-agent", pod=""}', 11)):
        answer = prometheus.query(query)
        tally.check(f"{query}: {count} series", len(answer) == count, f"{len(answer)}: {answer[:2]}")


def check_fault(tally, node, prometheus, broken, alert):
    """A fault makes its alert fire, with the sentence of the verdict as its advice; healed, it ends."""
    target, index, action = broken
    node.set(target, action)
    try:
        fired = wait_until(f"{alert} fires", lambda: prometheus.firing().get((alert, index)))
        labels = fired["labels"]
        said = fired["annotations"]
        tally.check(f"{alert} fires", True)
        told = node.run("neuron-ls", "--root", node.root, "--health") if node.has("neuron-ls") else ""
        actions = re.findall(r"^ +unhealthy, \w+: (.+)$", told, re.M)
        tally.check(f"{alert}: its runbook says what neuron-ls says", not told or any(one in said["runbook"] for one in actions),
                    f"{said['runbook']!r}, neuron-ls: {actions}")
        tally.check(f"{alert}: texts are filled in", all("<" not in text and "{{" not in text for text in said.values()), said)
        tally.check(f"{alert}: says which node", labels.get("instance") in said["summary"], said["summary"])
    finally:
        node.set("host", "heal")
    wait_until(f"{alert} ends", lambda: (alert, index) not in prometheus.firing())
    tally.check(f"{alert} ends", True)


def check_with(tally, root, prometheus, node):
    tally.check("every scrape succeeds", prometheus.query("min_over_time(up[5m]) == 1"), prometheus.get("targets"))
    check_others(tally, prometheus)
    check_numbering(tally, prometheus)
    check_dashboard(tally, root, prometheus)
    check_alerts(tally, root, prometheus)
    if node is None:
        tally.skip("holders and faults", "another agent's target")
        return
    check_holders(tally, prometheus)
    check_fault(tally, node, prometheus, ("neuron3", "3", "mem_ecc_repairable_uncorrected=1"), "NeuronRepairableHbmError")
    check_fault(tally, node, prometheus, ("neuron5", "5", "sram_ecc_uncorrected=2"), "NeuronUncorrectableError")
    check_fault(tally, node, prometheus, ("host", "", "kernel_log=NEURON_HW_ERR=DMA_ERROR"), "NeuronNodeHardwareError")


def run(tally, root, programs, target, directory):
    with Processes(directory) as processes:
        try:
            node = None if target else SimulatedNode(processes, programs, directory)
            ca = node.ca if node else ""
            target = target or node.target
            prometheus = Prometheus(processes, directory, os.path.join(root, rules_text.RULES), target, NODE_NAME, ca)
            wait_until("scrapes", lambda: prometheus.query(f"min(count_over_time(up[5m])) >= {SCRAPES}"))
            check_text(tally, target, ca)
            check_with(tally, root, prometheus, node)
        except (GaveUp, OSError, ValueError) as error:
            tally.check("the run", False, error)
            for name in ("agent", "kubelet", "load", "prometheus"):
                print("\n".join([f"-- {name}"] + processes.log(name).splitlines()[-20:]) if os.path.exists(f"{directory}/{name}.log") else "")


def main():
    root, programs, target = sys.argv[1:]
    tally = Tally()
    check_rules(tally, root)
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a simulated host is thousands of small files
    directory = tempfile.mkdtemp(prefix="neuron-monitoring.", dir=memory)
    try:
        run(tally, root, programs, target, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
