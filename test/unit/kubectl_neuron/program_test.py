#!/usr/bin/env python3
"""The program itself, with test/fakes/fake_kubectl.py as kubectl.

usage: program_test.py PROGRAM
"""
import json
import os
import select
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import xml.dom.minidom

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


class Program(Case):
    def test_nodes_and_pods_through_the_proxy(self):
        result = self.run_it(cluster(), "nodes", "--context", "blue", "-n", "team")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("3 nodes; 48 devices: 36 free, 12 held, 0 unhealthy", result.stdout)
        self.assertTrue(any(call.startswith("kubectl proxy --unix-socket=") and "--context=blue" in call for call in self.calls()))
        result = self.run_it(cluster(), "pods")
        self.assertIn("waiting", result.stdout)
        self.assertNotIn("far", result.stdout)  # of another namespace than the context's
        self.assertIn("far", self.run_it(cluster(), "pods", "-A").stdout)

    def test_nodes_by_name(self):
        answers = cluster()
        answers["/api/v1/nodes"]["body"]["items"].append({"metadata": {"name": "web"}})
        result = self.run_it(answers, "nodes", "n1", "node/n0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("2 nodes; 32 devices: 20 free, 12 held, 0 unhealthy", result.stdout)
        self.assertNotIn("n2", result.stdout)
        only = json.loads(self.run_it(answers, "nodes", "-o", "json", "n2").stdout)
        self.assertEqual(([one["name"] for one in only["nodes"]], only["sum"]["devices"]["total"]), (["n2"], 16))
        drawn = self.run_it(answers, "map", "-", "n1")
        self.assertEqual((drawn.returncode, "kubectl neuron map: 1 node" in drawn.stdout), (0, True), drawn.stderr)
        for command in (["nodes"], ["map", "-"]):
            self.fails(self.run_it(answers, *command, "n1", "m1"), "no node m1 could be read; similar: n1, n0 and n2")
            self.fails(self.run_it(answers, *command, "web"), "node web has no Neuron devices and no EFA interfaces")
        self.assertIn("[NODE...]", " ".join(self.run_it({}, "nodes", "--help").stdout.split()))

    def test_no_proxy_of_this_run_is_left(self):
        self.run_it(cluster(), "nodes")
        sockets = [call.split("=", 1)[1] for call in self.calls() if "--unix-socket=" in call]
        self.assertEqual(len(sockets), 1)
        self.assertFalse(os.path.exists(os.path.dirname(sockets[0])))
        running = subprocess.run(["pgrep", "-f", sockets[0]], capture_output=True, text=True, check=False)
        self.assertEqual(running.stdout, "")

    def test_without_a_proxy_each_call_is_a_process(self):
        answers = cluster()
        answers[""]["proxy"] = "refuse"
        result = self.run_it(answers, "nodes")
        self.assertIn("3 nodes; 48 devices", result.stdout, result.stderr)
        self.assertTrue(any(call.startswith("kubectl get --raw /api/v1/nodes") for call in self.calls()))
        answers["/api/v1/nodes"] = {"status": 403, "body": {"message": "nodes is forbidden"}}
        self.assertIn("nodes are not known", self.run_it(answers, "pods").stderr)

    def test_no_kubectl(self):
        self.fails(self.run_it(cluster(), "nodes", path=self.place.name), "kubectl is not on PATH", "--from")

    def test_no_cluster(self):
        broken = {"status": 502, "text": "dial tcp 127.0.0.1:6443: connect: connection refused"}
        self.fails(self.run_it({"/api/v1/nodes": broken, "/api/v1/pods": broken}, "nodes"), "connection refused")

    def test_no_rights_at_all(self):
        refused = {"status": 403, "body": {"message": 'User "eve" cannot list resource'}}
        self.fails(self.run_it({"/api/v1/nodes": refused, "/api/v1/pods": refused}, "nodes"), 'User "eve" cannot list')

    def test_one_node_that_hangs_takes_two_seconds(self):
        answers = cluster(30)
        for i in range(30):
            answers[path_of_agent(f"n{i}")] = {"status": 503, "body": {"message": "no"}}
        answers[path_of_agent("n7")] = {"hang": True}
        begin = time.monotonic()
        result = self.run_it(answers, "nodes", "-o", "json")
        self.assertLess(time.monotonic() - begin, 10)
        nodes = {one["name"]: one for one in json.loads(result.stdout)["nodes"]}
        self.assertIn("did not answer within 2000 ms", nodes["n7"]["unknown"])

    def first_words(self, answers, *words):
        """The first line on standard error of a run that would go on."""
        file = os.path.join(self.place.name, "answers.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(answers, out)
        environment = {"PATH": self.bin + ":/usr/bin:/bin", "FAKE_KUBECTL": file, "HOME": self.place.name, "TMPDIR": self.place.name}
        with subprocess.Popen([PROGRAM, *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as run:
            try:
                return run.stderr.readline()
            finally:
                run.terminate()

    def test_what_hangs_is_named_after_a_few_seconds(self):
        answers = cluster()
        answers["/api/v1/nodes"] = {"hang": True}
        begin = time.monotonic()
        self.assertEqual(self.first_words(answers, "nodes"), "kubectl-neuron: waiting for kubectl get --raw /api/v1/nodes, at most 60 s\n")
        self.assertLess(time.monotonic() - begin, 30)

    def test_a_kubectl_that_hangs_is_named(self):
        with open(os.path.join(self.bin, "kubectl"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexec sleep 600\n")
        self.assertEqual(self.first_words({}, "nodes"), "kubectl-neuron: waiting for kubectl proxy, at most 15 s\n")

    def test_what_may_not_be_read_is_not_said_to_be_none(self):
        refused = {"status": 403, "body": {"message": 'User "eve" cannot list resource "nodes"'}}
        answers = cluster()
        answers["/api/v1/nodes"] = refused
        for words in (["nodes"], ["top", "--once"], ["map", "-"], ["why", "waiting"]):
            result = self.run_it(answers, *words)
            self.assertEqual(result.returncode, 2, words)
            self.assertIn("cannot list", result.stdout + result.stderr)
            self.assertNotIn("no node has", result.stdout)
            self.assertNotIn("no node lists", result.stdout)
        self.assertEqual(self.run_it(answers, "nodes", "-o", "json").returncode, 2)
        answers = cluster()
        answers["/api/v1/pods"] = refused
        result = self.run_it(answers, "pods", "-A")
        self.assertEqual((result.returncode, "no pod" in result.stdout), (2, False))
        answers["/api/v1/namespaces/team/pods"] = {"body": {"items": []}}
        result = self.run_it(answers, "pods")
        self.assertEqual((result.returncode, result.stdout), (0, "no pod of namespace team asks for Neuron devices or EFA interfaces\n"))

    def test_half_an_answer(self):
        answers = cluster()
        answers["/api/v1/pods"] = {"cut": True, **answers["/api/v1/pods"]}
        result = self.run_it(answers, "nodes")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("pods are not known", result.stderr)
        self.assertIn("3 nodes", result.stdout)

    def test_an_old_agent(self):
        answers = cluster()
        answers[path_of_agent("n0")] = {"text": '{"format":"neuron-ls/9"}'}
        self.assertIn("neuron-ls/9", self.run_it(answers, "nodes", "-o", "wide").stdout)
        self.assertIn("older version", self.run_it(answers, "nodes", "-o", "wide").stdout)

    def test_a_dump_is_the_cluster(self):
        file = os.path.join(self.place.name, "fleet.tar.gz")
        self.assertEqual(self.run_it(cluster(), "dump", file).returncode, 0)
        live = self.run_it(cluster(), "pods", "-A", "-o", "csv").stdout
        again = self.run_it({}, "pods", "-A", "-o", "csv", "--from", file, path="/nowhere").stdout
        cut = [[line.split(",")[:4] + line.split(",")[5:-3] for line in text.splitlines()] for text in (live, again)]  # without ages
        self.assertEqual(*cut)
        self.assertGreater(len(cut[0]), 3)
        hidden = os.path.join(self.place.name, "hidden.tar.gz")
        self.assertEqual(self.run_it({}, "dump", "--anonymise", "--from", file, hidden).returncode, 0)
        text = self.run_it({}, "pods", "-A", "--from", hidden).stdout
        self.assertIn("pod-4", text)
        self.assertNotIn("train", text)

    def test_wrong_usage(self):
        for words in (["nodes", "-o", "xml"], ["nonsense"], [], ["nodes", "--frm", "x"]):
            self.assertEqual(self.run_it({}, *words).returncode, 2)
        self.fails(self.run_it({}, "nodes", "--from", "/nowhere/at.all"), "/nowhere/at.all")
        self.fails(self.run_it({}, "node"), "no command node")
        self.fails(self.run_it({}, "map", "fleet.png"), "fleet.png", "-o")
        self.fails(self.run_it(cluster(), "dump", "/nowhere/fleet.tar.gz"), "choose another place\n")

    def test_names_of_files_and_nodes(self):
        for words in (["map", ""], ["dump", ""]):
            result = self.run_it(cluster(), *words)
            self.assertEqual((result.returncode, "needs a file's name" in result.stderr), (2, True), result.stderr)
        self.fails(self.run_it(cluster(), "nodes", ""), "the name of a node is empty")
        for name in ("d.zip", "d.tar", "d.json"):
            self.fails(self.run_it(cluster(), "dump", os.path.join(self.place.name, name)), name, ".tar.gz")

    def test_every_command_has_its_version_and_takes_the_last_output(self):
        for command in ("nodes", "pods", "why", "plan", "top", "map", "dump"):
            result = self.run_it({}, command, "--version")
            self.assertEqual((result.returncode, result.stdout), (0, self.run_it({}, "--version").stdout), result.stderr)
        for command in (["nodes"], ["why", "team/waiting"], ["plan", "-f", self.file('{"kind": "Service"}')]):
            result = self.run_it(cluster(), *command, "-o", "json", "-o", "json")
            self.assertNotIn("output", result.stderr)

    def test_map_says_what_could_not_be_read(self):
        answers = cluster()
        answers["/api/v1/nodes"] = {"status": 403, "body": {"message": "nodes is forbidden"}}
        result = self.run_it(answers, "map", "-")
        self.assertEqual((result.returncode, "nodes are not known" in result.stderr), (2, True), result.stderr)

    def test_from_needs_a_name(self):
        for words in (["--from", ""], ["--from="]):
            result = self.run_it(cluster(), "nodes", *words)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn("--from", result.stderr)

    def test_a_kubectl_that_says_nothing(self):
        answers = cluster()
        answers[""]["silent"] = True
        self.fails(self.run_it(answers, "nodes"), "kubectl: it ended with status 1 and said nothing")
        manifest = os.path.join(self.place.name, "manifest")
        with open(manifest, "w", encoding="utf-8") as file:
            file.write("kind: Pod\n")
        self.fails(self.run_it(answers, "plan", "-f", manifest), "cannot convert", "it ended with status 1 and said nothing")

    def test_json_is_ascii(self):
        hostile = "we\u202eird"
        answers = cluster()
        answers["/api/v1/nodes"]["body"]["items"].append(node(hostile))
        answers["/api/v1/pods"]["body"]["items"].append(pod("team", hostile, "n0", 1))
        for words in (["nodes", "-o", "json"], ["pods", "-o", "json"]):
            text = self.run_it(answers, *words).stdout
            self.assertTrue(text.isascii(), words)
            self.assertIn("\\u202e", text)
            self.assertIn(hostile, json.dumps(json.loads(text), ensure_ascii=False))
        self.assertTrue(self.run_it(answers, "top", "--json").stdout.isascii())

    def test_an_empty_cluster(self):
        answers = cluster(0)
        answers["/api/v1/pods"]["body"]["items"] = []
        for words in (["nodes"], ["top", "--once"], ["pods"]):
            result = self.run_it(answers, *words)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("Neuron devices or EFA interfaces", result.stdout)

    def test_a_reader_that_leaves_is_no_error(self):
        reading, writing = os.pipe()
        os.close(reading)
        result = self.run_it(cluster(), "nodes", output=writing)
        os.close(writing)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assertEqual(self.run_it(cluster(), "nodes", output=full).returncode, 2)

    def test_it_needs_no_shared_library(self):
        headers = subprocess.run(["readelf", "-ld", PROGRAM], capture_output=True, text=True, check=True).stdout
        if os.environ.get("NEURON_STATIC") == "1":
            self.assertNotIn("(NEEDED)", headers)
            self.assertNotIn("INTERP", headers)
        needed = subprocess.run(["objdump", "-p", PROGRAM], capture_output=True, text=True, check=True).stdout
        names = {line.split()[1].split(".")[0] for line in needed.splitlines() if line.split()[:1] == ["NEEDED"]}
        self.assertLessEqual(names, {"libc", "libm", "libz", "ld-linux-x86-64", "ld-linux-aarch64"})

    def test_map_and_top_read_the_same(self):
        answers = cluster()
        for words in (["top", "--once"], ["top", "--json"], ["map", "-"], ["map", "-o", "html", "-"]):
            result = self.run_it(answers, *words)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("n2", result.stdout)
        picture = os.path.join(self.place.name, "fleet.svg")
        self.assertEqual(self.run_it(answers, "map", picture).returncode, 0)
        self.assertEqual(len(xml.dom.minidom.parse(picture).getElementsByTagName("svg")), 1)
        self.fails(self.run_it(answers, "map", picture), "--force")
        self.assertEqual(self.run_it(answers, "map", "--force", picture).returncode, 0)
        self.fails(self.run_it(answers, "map", "/nowhere/fleet.svg"), "/nowhere/fleet.svg")
        self.fails(self.run_it(answers, "top", "--interval", "soon"), "soon")


class Memory(Case):
    """Of 1,000 nodes of 16 devices, within the goal of docs/performance.md."""
    NODES, MOST_MIB = 1000, 150

    def peak(self, answers, *words):
        file = os.path.join(self.place.name, "answers.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(answers, out)
        environment = {"PATH": self.bin + ":/usr/bin:/bin", "FAKE_KUBECTL": file, "HOME": self.place.name, "TMPDIR": self.place.name}
        with subprocess.Popen([PROGRAM, *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as started:
            select.select([started.stdout], [], [])  # it is about to write more than a pipe holds: not gone yet
            with open(f"/proc/{started.pid}/status", encoding="utf-8") as status:  # rusage would have kubectl's too
                peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
            self.assertIn(f"{self.NODES} nodes; {16 * self.NODES} devices", started.stdout.read())
        self.assertEqual(started.returncode, 0)
        return peak / 1024

    def test_of_a_large_fleet(self):
        if os.environ.get("NEURON_STATIC") != "1":
            self.skipTest("the memory of a sanitizer is not the program's")
        with tarfile.open(os.path.join(os.path.dirname(FAKE), "..", "fixtures", "kubectl-neuron", "three-kinds.tar.gz")) as dump:
            document = dump.extractfile("kubectl-neuron/agents/2.json").read()
        with open(os.path.join(self.place.name, "agent.json"), "wb") as file:
            file.write(document)
        answers = cluster(self.NODES)
        for i in range(self.NODES):
            answers[path_of_agent(f"n{i}")] = {"file": "agent.json"}
        answers["/apis/resource.k8s.io/v1/resourceslices"]["body"]["items"] = [slice_of(f"n{i}") for i in range(self.NODES)]
        dump = os.path.join(self.place.name, "fleet.tar.gz")
        figures = {"claims": self.peak(answers, "nodes")}
        self.run_it(answers, "dump", dump)
        figures["--from"] = self.peak({}, "nodes", "--from", dump)
        answers["/apis/resource.k8s.io/v1/resourceslices"]["body"]["items"] = []
        figures["plugin"] = self.peak(answers, "nodes")
        print("peak in MiB:", {name: round(mib) for name, mib in figures.items()})
        self.assertLessEqual(max(figures.values()), self.MOST_MIB, figures)


class Questions(Case):
    def manifest(self, replicas, amount=8):
        container = {"name": "main", "resources": {"limits": {NEURON: str(amount)}}}
        return json.dumps({"kind": "Deployment", "metadata": {"name": "serve"},
                           "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}}})

    def test_why(self):
        result = self.run_it(cluster(), "why", "waiting")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("it fits now on n2", result.stdout)
        full = cluster()
        full["/api/v1/pods"]["body"]["items"].append(pod("other", "full", "n2", 1))
        result = self.run_it(full, "why", "team/waiting")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("other/full moves from n2 to n0: it then fits on n2", result.stdout)
        answer = json.loads(self.run_it(full, "why", "waiting", "-o", "json").stdout)
        self.assertEqual((answer["format"], answer["answer"]), ("kubectl-neuron-why/1", "does_not_fit"))
        self.fails(self.run_it(full, "why", "waitin"), "no pod team/waitin", "similar: team/waiting")

    def test_plan(self):
        path = self.file(self.manifest(4))
        result = self.run_it(cluster(), "plan", "-f", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("fits: 4 of 4 pods", result.stdout)
        self.assertEqual(self.run_it(cluster(), "plan", "-f", path, "--replicas", "5").returncode, 1)
        answer = json.loads(self.run_it(cluster(), "plan", "-f", path, "-o", "json").stdout)
        self.assertEqual((answer["placed"], answer["groups"][0]["pod"]), (4, "team/serve"))

    def test_plan_without_nodes_cannot_tell(self):
        answers = cluster()
        answers["/api/v1/nodes"] = {"status": 403, "body": {"message": 'User "eve" cannot list resource "nodes"'}}
        path = self.file(self.manifest(4))
        result = self.run_it(answers, "plan", "-f", path)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertTrue(result.stdout.startswith("cannot tell: no node could be read\n"), result.stdout)
        self.assertIn("it is not known how many of 4 pods fit now; on the same nodes without other pods not known\n", result.stdout)
        self.assertIn('cannot list resource "nodes"', result.stdout)
        answer = json.loads(self.run_it(answers, "plan", "-f", path, "-o", "json").stdout)
        group = answer["groups"][0]
        self.assertEqual((answer["placed"], answer["more"], answer["stranded"], group["placed"], group["empty_fleet"]), (None,) * 5)

    def test_plan_of_pods_without_devices(self):
        plain = {"kind": "Deployment", "metadata": {"name": "web"},
                 "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "nginx", "image": "nginx"}]}}}}
        result = self.run_it(cluster(), "plan", "-f", self.file(json.dumps(plain)), "-o", "json")
        answer = json.loads(result.stdout)
        group = answer["groups"][0]
        self.assertEqual((result.returncode, answer["answer"], answer["placed"], group["asked"], group["placed"], group["asks_for_hardware"]),
                         (2, "unknown", None, 2, None, False))
        self.assertEqual(answer["notes"], ["team/web asks for no Neuron device and no interface"])
        result = self.run_it(cluster(), "plan", "-f", self.file(json.dumps(plain) + self.manifest(4)), "-o", "json")
        groups = json.loads(result.stdout)["groups"]
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([(one["asks_for_hardware"], one["placed"]) for one in groups], [(False, 2), (True, 4)])
        self.assertEqual((groups[0]["nodes"], groups[0]["empty_fleet"]), (None, None))

    def test_answers_about_an_anonymised_dump(self):
        answers = cluster()
        answers["/api/v1/nodes"]["body"]["items"][0]["status"]["allocatable"]["nvidia.com/gpu"] = "1"
        answers["/api/v1/pods"]["body"]["items"][1]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1"
        plain, hidden = (os.path.join(self.place.name, name) for name in ("plain.tar.gz", "hidden.tar.gz"))
        self.run_it(answers, "dump", plain)
        self.run_it({}, "dump", "--anonymise", "--from", plain, hidden)
        result = self.run_it({}, "why", "team/waiting", "--from", plain)
        self.assertEqual((result.returncode, "the node does not list nvidia.com/gpu" in result.stdout), (1, True), result.stdout)
        pods = json.loads(self.run_it({}, "pods", "-A", "-o", "json", "--from", hidden).stdout)["pods"]
        name = next(one["namespace"] + "/" + one["pod"] for one in pods if one["waiting_since"])
        result = self.run_it({}, "why", name, "--from", hidden)
        self.assertEqual((result.returncode, "the node does not list example.com/resource-1" in result.stdout), (1, True), result.stdout)

    def test_plan_names_what_no_node_has_and_what_it_does_not_count(self):
        manifest = json.loads(self.manifest(1))
        spec = manifest["spec"]["template"]["spec"]
        spec["priorityClassName"] = "high"
        result = self.run_it(cluster(), "plan", "-f", self.file(json.dumps(manifest)))
        self.assertEqual((result.returncode, "not counted: priority" in result.stdout), (0, True), result.stderr)
        spec["containers"][0]["resources"]["limits"]["cpu"] = "97"
        result = self.run_it(cluster(), "plan", "-f", self.file(json.dumps(manifest)))
        self.assertEqual((result.returncode, "asks for 97 cpu, 96 of 96 are free" in result.stdout), (1, True), result.stderr)
        spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1"
        result = self.run_it(cluster(), "plan", "-f", self.file(json.dumps(manifest)))
        self.assertEqual((result.returncode, "no node has nvidia.com/gpu" in result.stdout), (2, True), result.stderr)

    def test_plan_of_yaml_is_converted_by_kubectl(self):
        path = self.file("kind: Deployment\n")
        answers = cluster()
        answers[""]["created"] = self.manifest(1)
        result = self.run_it(answers, "plan", "-f", path, "--context", "blue")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(any("--dry-run=client" in call and "--context=blue" in call for call in self.calls()))
        self.fails(self.run_it(cluster(), "plan", "-f", path), "kubectl cannot convert", "unknown command")
        dump = os.path.join(self.place.name, "fleet.tar.gz")
        self.run_it(cluster(), "dump", dump)
        self.fails(self.run_it({}, "plan", "-f", path, "--from", dump), "JSON")

    def test_wrong_usage(self):
        for words in (["why"], ["plan"], ["plan", "-f", "x", "--replicas", "0"], ["why", "a", "-o", "csv"]):
            self.assertEqual(self.run_it({}, *words).returncode, 2)
        self.fails(self.run_it(cluster(), "plan", "-f", "/nowhere/at.all"), "/nowhere/at.all")
        service = self.file('{"kind": "Service"}')
        self.fails(self.run_it(cluster(), "plan", "-f", service), "kubectl-neuron: " + service + ": ", "no pod")


class Completion(Case):
    def test_kubectl_gets_candidates_and_a_directive(self):
        script = os.path.join(os.path.dirname(FAKE), "..", "..", "tools", "completions", "kubectl_complete-neuron")
        for words, wanted in ((["po"], "pods"), (["pods", "--all"], "--all-namespaces"), (["nodes", "-o", "w"], "wide")):
            result = subprocess.run([script, *words], capture_output=True, text=True, timeout=30, check=False)
            self.assertEqual(result.stdout.split(), [wanted, ":0"], result.stderr)

    def asked(self, *words):
        script = os.path.join(os.path.dirname(FAKE), "..", "..", "tools", "completions", "kubectl-neuron.bash")
        ask = """kubectl() { printf '%s\\n' "$*" >>"$OUT"; }
            source "$1"; shift; COMP_WORDS=(kubectl-neuron "$@") COMP_CWORD=$#; _kubectl_neuron; cat "$OUT" """
        out = os.path.join(self.place.name, "calls")
        with open(out, "w", encoding="utf-8"):
            pass
        result = subprocess.run(["bash", "-c", ask, "bash", script, *words], capture_output=True, text=True, timeout=30, check=False,
                                env={**os.environ, "OUT": out})
        self.assertEqual(result.stderr, "")
        return result.stdout.strip()

    def test_pods_and_nodes_come_from_the_cluster_of_the_flags(self):
        flags = ["-n", "red", "--context", "=", "c2", "--kubeconfig", "/k"]
        given = "-n red --context c2 --kubeconfig /k get "
        self.assertEqual(self.asked("why", *flags, ""), given + "pods -o name")
        self.assertEqual(self.asked("nodes", *flags, ""), given + "nodes -o name")
        self.assertEqual(self.asked("nodes", "n1", "-o", "wide", "n"), "get nodes -o name")
        self.assertEqual(self.asked("map", *flags, "fleet.svg", ""), given + "nodes -o name")
        for words in (["map", *flags, ""], ["map", "-o", "svg", ""], ["map", "--from", "dump", "-o", "=", "svg", "fl"], ["nodes", "-"]):
            self.assertEqual(self.asked(*words), "", words)


if __name__ == "__main__":
    unittest.main()
