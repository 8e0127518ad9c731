"""A small cluster behind test/fakes/fake_kubectl.py, and a test case that runs the program against it.

The program is the first argument of the script that imports this.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fakes", "fake_kubectl.py")
NEURON = "aws.amazon.com/neuron"


def node(name):
    amounts = {NEURON: "16", "cpu": "96"}
    return {"metadata": {"name": name, "creationTimestamp": "2026-11-20T00:00:00Z",
                         "labels": {"node.kubernetes.io/instance-type": "trn1.32xlarge"}},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}}


def pod(namespace, name, where, amount):
    return {"metadata": {"namespace": namespace, "name": name, "creationTimestamp": "2026-11-26T00:00:00Z"},
            "spec": {"nodeName": where, "containers": [{"name": "main", "resources": {"limits": {NEURON: str(amount)}}}]},
            "status": {"phase": "Running" if where else "Pending"}}


def agent(where):
    container = {"name": "neuron-agent", "image": "localhost/neuron-agent:0.1.0", "ports": [{"name": "metrics", "containerPort": 8000}]}
    return {"metadata": {"namespace": "kube-system", "name": "agent-" + where, "labels": {"app.kubernetes.io/name": "neuron-agent"}},
            "spec": {"nodeName": where, "containers": [container]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}


def path_of_agent(where):
    return f"/api/v1/namespaces/kube-system/pods/http:agent-{where}:8000/proxy/node"


def cluster(nodes=3):
    names = [f"n{i}" for i in range(nodes)]
    pods = [pod("team", "train", "n0", 4), pod("team", "waiting", "", 16), pod("other", "far", "n1", 8)] + [agent(n) for n in names]
    answers = {"/api/v1/nodes": {"body": {"items": [node(n) for n in names]}}, "/api/v1/pods": {"body": {"items": pods}},
               "/api/v1/events": {"body": {"items": []}}, "": {"namespace": "team"}}
    for kind in ("resourceslices", "resourceclaims", "resourceclaimtemplates", "deviceclasses"):
        answers["/apis/resource.k8s.io/v1/" + kind] = {"body": {"items": []}}
    return answers


def slice_of(where):
    """With attributes as the driver of a trn2.48xlarge publishes them, about as many."""
    devices = []
    for i in range(16):
        values = {"resourceType": "neuron_device", "serial": f"{where}-{i:08}", "family": "Trainium2", "instanceType": "trn2.48xlarge",
                  "arch": "NDv3", "health": "healthy", "neuronDriverVersion": "2.30.2", "pciAddress": f"0000:{i:02x}:00.0",
                  "resource.kubernetes.io/pciBusID": f"0000:{i:02x}:00.0", "resource.kubernetes.io/pcieRoot": f"pci0000:{i:02x}",
                  "topology4_id": f"group-{i // 4}", "topology8_id": f"group-{i // 8}", "networkNodeLayer1": "nn-0123456789abcdef0",
                  "networkNodeLayer2": "nn-1123456789abcdef0", "networkNodeLayer3": "nn-2123456789abcdef0", "capacityBlockId": "",
                  **{f"resource.aws.com/devicegroup{size}_id": f"{i // size:016x}" for size in (1, 4, 8, 16)}}
        numbers = {"deviceId": i, "numaNode": i // 8, "topology_x": i % 4, "topology_y": i // 4, "lnc": 2, "size": 1}
        attributes = {name: {"string": value} for name, value in values.items()} | {name: {"int": value} for name, value in numbers.items()}
        devices.append({"name": f"neuron-device-{i}", "attributes": attributes,
                        "capacity": {"cores": {"value": "4"}, "memory": {"value": "96Gi"}}})
        near = {name: value for name, value in attributes.items() if "pci" in name or "group" in name or name in ("numaNode", "health")}
        devices.append({"name": f"efa-rdmap{i}s0", "attributes": {**near, "resourceType": {"string": "efa"}}})
    return {"metadata": {"name": "slice-" + where},
            "spec": {"driver": "neuron.aws.com", "nodeName": where, "devices": devices,
                     "pool": {"name": where, "generation": 1, "resourceSliceCount": 1}}}


class Case(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.bin = os.path.join(self.place.name, "bin")
        os.mkdir(self.bin)
        with open(os.path.join(self.bin, "kubectl"), "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
        os.chmod(file.name, 0o755)
        self.log = os.path.join(self.place.name, "log")

    def run_it(self, answers, *words, path=None, output=subprocess.PIPE):
        answers[""] = {**answers.get("", {}), "log": self.log}
        file = os.path.join(self.place.name, "answers.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(answers, out)
        environment = {"PATH": self.bin + ":/usr/bin:/bin" if path is None else path, "FAKE_KUBECTL": file, "HOME": self.place.name,
                       "TMPDIR": self.place.name}
        return subprocess.run([PROGRAM, *words], env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, text=True,
                              timeout=60, check=False)

    def file(self, text):
        path = os.path.join(self.place.name, "manifest")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def calls(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read().splitlines()

    def fails(self, result, *texts):
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr.startswith("kubectl-neuron: "), result.stderr)
        for text in texts:
            self.assertIn(text, result.stderr)
