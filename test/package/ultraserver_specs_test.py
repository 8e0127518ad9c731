#!/usr/bin/env python3
"""The shell in the specs of jobs over UltraServers tells the runtime its place on simulated nodes of Trainium2 and Trainium3.

usage: ultraserver_specs_test.py SOURCE_ROOT SIMULATOR     exit status 77 without python3-yaml
"""
import os
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError:
    print("python3-yaml is not installed")
    sys.exit(77)

SPECS = ["lws/ultraserver.yaml", "jobset/ultraserver.yaml", "kueue/job-ultraserver.yaml"]
FILES = "/sys/class/neuron_device"

# Type, --ultraserver, nodes of the job; the mode, the files of server and node; None: refused.
CASES = [
    ("trn2u.48xlarge", "4:1", 4, ("1", "server_id_4", "node_id_4")),
    ("trn2u.48xlarge", "4:3", 2, ("3", "server_id_2", "node_id_2")),
    ("trn2u.48xlarge", "2:1", 4, None),
    ("trn2u.48xlarge", "alone", 4, None),
    ("trn3.48xlarge", "4:1", 4, ("1", "reservation_id", "node_id")),
    ("trn3.48xlarge", "4:1", 2, None),
    ("trn3.48xlarge", "2:0", 2, ("3", "reservation_id", "node_id")),
    ("trn3.48xlarge", "2:0", 4, None),
]


def containers(value):
    """Of every pod template in an object."""
    if isinstance(value, dict):
        yield from value.get("containers", [])
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from containers(one)


def command_of(root, spec):
    with open(os.path.join(root, "test/cluster/queueing", spec), encoding="utf-8") as file:
        found = [one["command"] for one in containers(yaml.safe_load(file)) if "command" in one]
    assert len(found) == 1 and FILES in found[0][2] and found[0][-1] == "torchrun", f"{spec}: {found}"
    return found[0]


def place(command, directory, nodes):
    """The variables of the runtime, or None."""
    script = command[2].replace(FILES, directory)
    env = {"PATH": os.environ["PATH"], "NEURON_ULTRASERVER_NODE_CONFIG": str(nodes)}
    ran = subprocess.run([*command[:2], script, command[3], "env"], env=env, capture_output=True, text=True, timeout=20, check=False)
    if ran.returncode != 0:
        return None
    variables = dict(line.split("=", 1) for line in ran.stdout.splitlines())
    return tuple(variables["NEURON_RT_ULTRASERVER_" + name] for name in ("MODE", "SERVER_ID", "NODE_ID"))


def check(root, simulator, scratch):
    commands = {spec: command_of(root, spec) for spec in SPECS}
    for number, (kind, linked, nodes, expected) in enumerate(CASES):
        host = os.path.join(scratch, str(number))
        subprocess.run([simulator, "node", host, "--instance-type", kind, "--ultraserver", linked], check=True, capture_output=True, timeout=50)
        directory = host + FILES

        def read(name):
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                return file.read().strip()

        want = expected and (expected[0], read(expected[1]), read(expected[2]))
        for spec, command in commands.items():
            got = place(command, directory, nodes)
            if got != want:
                yield f"{spec} for {nodes} on {kind} {linked}: {got}, want {want}"


def main():
    root, simulator = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as scratch:
        problems = list(check(root, simulator, scratch))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
