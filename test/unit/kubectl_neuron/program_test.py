#!/usr/bin/env python3
"""The program itself, with test/fakes/fake_kubectl.py as kubectl: its lists, what it cannot read, its time and memory.

usage: program_test.py PROGRAM
"""
import json
import os
import select
import subprocess
import tarfile
import time
import unittest
import xml.dom.minidom

from cluster_case import FAKE, PROGRAM, Case, agent, cluster, node, path_of_agent, pod, slice_of


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


if __name__ == "__main__":
    unittest.main()
