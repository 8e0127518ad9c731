#!/usr/bin/env python3
"""The live screen of `kubectl neuron top` in a real terminal, over a dump: the fleet, a node's own screen, and back.

usage: kubectl_neuron_top_test.py BIN_DIR [TEST...]
"""
import json
import os
import subprocess
import sys

import top_case
from top_case import DOWN, ENTER, ESCAPE, run_tests
from virtual_terminal import Program

METRICS = 'neuroncore_utilization_ratio{neuroncore="5"} 0.25\nneuron_agent_usage_age_seconds 1\n'


def node(name):
    hardware = {"aws.amazon.com/neuron": "16"}
    return {"metadata": {"name": name, "labels": {"node.kubernetes.io/instance-type": "trn2.48xlarge"}},
            "status": {"allocatable": hardware, "capacity": hardware, "conditions": [{"type": "Ready", "status": "True"}]}}


def dump_of(case):
    """n1 answered with what neuron-ls says of a simulated machine, n2 did not."""
    host = case.host("trn2.48xlarge")
    case.sim("set", host, "neuron13", "sram_ecc_uncorrected=2")
    directory = os.path.join(case.directory, "dump")
    document = subprocess.run([os.path.join(top_case.BIN, "neuron-ls"), "--root", host, "--health", "--output-format", "json"],
                              check=True, capture_output=True, text=True).stdout
    index = {"format": "kubectl-neuron-dump/1", "read_at": "2026-11-27T00:00:00Z", "namespace": "default", "unknown": [],
             "agents": {"n1": {"pod": "kube-system/a", "file": "agents/0.json", "metrics": METRICS},
                        "n2": {"pod": "kube-system/b", "missing": "it did not answer"}}}
    files = {"dump.json": json.dumps(index), "agents/0.json": document,
             "nodes/0.json": json.dumps({"items": [node("n1"), node("n2")]})}
    for kind in ("pods", "resourceslices", "resourceclaims", "resourceclaimtemplates", "deviceclasses", "events"):
        files[kind + "/0.json"] = '{"items": []}'
    for name, text in files.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return directory


def top(case, rows=30, columns=120):
    command = [os.path.join(top_case.BIN, "kubectl-neuron"), "top", "--from", dump_of(case), "--interval", "1s"]
    program = Program(command, rows, columns)
    case.programs.append(program)
    program.wait_text("kubectl neuron top  2 nodes", "n1", "no report: it did not answer", "1 unhealthy")
    return program


def test_a_node_opens_and_closes(case):
    program = top(case)
    program.press(ENTER)
    program.wait_text("running on n1 (trn2.48xlarge)", "ND13 is unhealthy", "25%")
    program.press("e")
    program.wait_text("EFA Interfaces", "rdmap")
    program.press(ESCAPE)
    program.wait_text("kubectl neuron top  2 nodes", "By node")
    program.press(DOWN + ENTER)
    program.wait_text("running on n2", "it did not answer")
    program.press("q")
    assert program.wait_end() == 0


def test_keys(case):
    program = top(case)
    program.press("2")
    program.wait_text("By namespace", "cannot tell what holds hardware")
    program.press("1ss")
    program.wait_text("By node, sorted by memory")
    program.press("/n2" + ENTER)
    program.wait_text("only n2")
    program.press(ESCAPE)
    program.wait_no_text("only n2")
    program.press("?")
    program.wait_text("any key closes this help")
    program.press("x ")
    program.wait_text("PAUSED")
    program.press("q")
    assert program.wait_end() == 0


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
