#!/usr/bin/env python3
"""why, plan and the completions of the program itself, with test/fakes/fake_kubectl.py as kubectl.

usage: questions_test.py PROGRAM
"""
import json
import os
import subprocess
import unittest

from cluster_case import FAKE, NEURON, PROGRAM, Case, cluster, node, pod


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

    def test_names_of_a_dump(self):
        dump = os.path.join(self.place.name, "my dump")
        self.assertEqual(self.run_it(cluster(), "dump", dump).returncode, 0)
        os.symlink(PROGRAM, os.path.join(self.bin, "kubectl-neuron"))
        script = os.path.join(os.path.dirname(FAKE), "..", "..", "tools", "completions", "kubectl_complete-neuron")
        environment = {**os.environ, "PATH": self.bin + ":" + os.environ["PATH"], "FAKE_KUBECTL": "/nowhere"}
        for words, wanted in ((["nodes", ""], ["n0", "n1", "n2"]), (["why", "w"], ["waiting"]), (["why", "-n", "other", ""], ["far"]),
                              (["pods", "-n", ""], ["other", "team"])):
            words = [words[0], "--from", dump, *words[1:]]
            result = subprocess.run([script, *words], capture_output=True, text=True, timeout=30, check=False, env=environment)
            self.assertEqual(result.stdout.split(), [*wanted, ":0"], result.stderr)

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
