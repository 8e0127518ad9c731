#!/usr/bin/env python3
"""`neuron-agent catalogue`: its YAML is the JSON for another reader, and its slices are those that `run --once` prints on a simulated node.

usage: catalogue_test.py AGENT SIMULATOR     exit status 77 without python3-yaml
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError:
    print("python3-yaml is not installed")
    sys.exit(77)

OF_ONE_MACHINE = {"serial", "ultraserverId", "ultraserverServerId2", "ultraserverServerId4"}


def run(*words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50, check=True).stdout


def check_yaml(agent):
    for words in ([], ["trn2.48xlarge", "p5.48xlarge", "--core-devices", "0-3"]):
        document = json.loads(run(agent, "catalogue", "-o", "json", *words))
        if not document["types"]:
            yield f"catalogue {words} has no types"
        if yaml.safe_load(run(agent, "catalogue", *words, "--output", "yaml")) != document:
            yield f"catalogue {words}: YAML and JSON differ"


def slices(text):
    """The list, without the facts of one machine."""
    document = json.loads(text)
    for item in document["items"]:
        for device in item["spec"].get("devices", []):
            for name in OF_ONE_MACHINE & set(device["attributes"]):
                device["attributes"][name] = {"string": ""}
    return document


def check_slices(agent, simulator, directory):
    for name in ("inf2.48xlarge", "trn1.32xlarge", "trn2u.48xlarge", "p5.48xlarge"):
        host = os.path.join(directory, name)
        run(simulator, "node", host, "--instance-type", name)
        version = os.path.join(host, "sys/module/neuron/version")
        driver = ["--driver-version", open(version, encoding="utf-8").read().strip()] if os.path.exists(version) else []
        for options in ([], ["--dra-partitions", "all", "--dra-server", "1.34.2,DRAPartitionableDevices=true"], ["--dra-shares", "off"]):
            published = run(agent, "run", "--mode", "dra", "--once", "--root", host, "--node-name", name, *options)
            if slices(published) != slices(run(agent, "catalogue", name, "-o", "slices", *driver, *options)):
                yield f"{name} {options}: the slices differ"


def main():
    agent, simulator = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as directory:
        problems = [*check_yaml(agent), *check_slices(agent, simulator, directory)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
