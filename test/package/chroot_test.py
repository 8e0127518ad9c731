#!/usr/bin/env python3
"""kubectl-neuron where there is no library: in a directory with itself, an empty /tmp and an empty file for /dev/null.

usage: chroot_test.py PROGRAM DUMP   of three nodes; exit status 77: neither root nor a user namespace, or no static busybox
"""
import csv
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

PROGRAM, DUMP = sys.argv[1:3]
SKIPPED = 77
BUSYBOX = "/bin/busybox"
# Answers from the dump's pages; what it cannot do it says as kubectl does. It has no proxy.
KUBECTL = """#!/bin/busybox sh
case "$1 $2" in
  "get --raw")
    page=/answers/$(echo "$3" | /bin/busybox sed 's/?.*//; s/[/:]/_/g')
    [ ! -e "$page" ] || exec /bin/busybox cat "$page"
    echo "Error from server (NotFound): $3" >&2 ;;
  "config view") echo default; exit ;;
  *) echo "error: unknown command $1" >&2 ;;
esac
exit 1
"""


def enter(place):
    return ["chroot", place] if os.geteuid() == 0 else ["unshare", "--map-root-user", "chroot", place]


def run(place, *words):
    command = [*enter(place), "/kubectl-neuron", *words]
    result = subprocess.run(command, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    return result.returncode, result.stdout, result.stderr


def place_answers(place):
    """The dump's lists and the agents' answers, under names made of their paths."""
    def put(path, text):
        with open(os.path.join(place, "answers", path.replace("/", "_").replace(":", "_")), "wb") as file:
            file.write(text)

    with tarfile.open(DUMP) as archive:
        pages = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
    for kind in ("nodes", "pods", "events"):
        put("/api/v1/" + kind, pages[f"kubectl-neuron/{kind}/0.json"])
    for kind in ("resourceslices", "resourceclaims", "resourceclaimtemplates", "deviceclasses"):
        put("/apis/resource.k8s.io/v1/" + kind, pages[f"kubectl-neuron/{kind}/0.json"])
    for agent in json.loads(pages["kubectl-neuron/dump.json"])["agents"].values():
        namespace, pod = agent["pod"].split("/")
        put(f"/api/v1/namespaces/{namespace}/pods/http:{pod}:8000/proxy/node", pages["kubectl-neuron/" + agent["file"]])


def nodes_of(result):
    """Of `nodes -o csv`: the rows without ages."""
    return [{name: cell for name, cell in row.items() if name != "AGE"} for row in csv.DictReader(result[1].splitlines())]


def check(place):
    shutil.copy(PROGRAM, os.path.join(place, "kubectl-neuron"))
    shutil.copy(DUMP, os.path.join(place, "fleet.tar.gz"))
    bare = run(place, "nodes", "--from", "/fleet.tar.gz")
    if bare[0] != 2 or "no temporary directory; set TMPDIR" not in bare[2]:
        yield f"nodes --from FILE without /tmp: {bare}"
    for name in ("tmp", "dev", "bin", "answers"):
        os.mkdir(os.path.join(place, name))
    with open(os.path.join(place, "dev/null"), "wb"):
        pass
    summary = run(place, "nodes", "--from", "/fleet.tar.gz")
    dumped = run(place, "nodes", "-o", "csv", "--from", "/fleet.tar.gz")
    if summary[0] != 0 or summary[2] or "\n3 nodes; 44 devices" not in summary[1] or len(nodes_of(dumped)) != 3:
        yield f"nodes --from FILE, alone: {summary}"
    for words in (["why", "waiting"], ["pods", "-A"], ["top", "--once"], ["map", "-"], ["--version"]):
        status, output, errors = run(place, *words, *([] if words == ["--version"] else ["--from", "/fleet.tar.gz"]))
        if status != (1 if words[0] == "why" else 0) or not output or errors:
            yield f"{words}: status {status}, {len(output)} bytes, {errors}"
    absent = run(place, "nodes")
    if absent[0] != 2 or "kubectl is not on PATH" not in absent[2]:
        yield f"nodes without kubectl: {absent}"

    shutil.copy(BUSYBOX, os.path.join(place, "bin/busybox"))
    kubectl = os.path.join(place, "bin/kubectl")
    with open(kubectl, "w", encoding="utf-8") as file:
        file.write(KUBECTL)
    os.chmod(kubectl, 0o755)
    place_answers(place)
    live = run(place, "nodes", "-o", "csv")
    if live[0] != 0 or nodes_of(live) != nodes_of(dumped):
        yield f"nodes through kubectl: {live}, and of the dump {dumped}"


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        probe = subprocess.run([*enter("/"), "/bin/true"], capture_output=True, check=False)
        static = os.access(BUSYBOX, os.X_OK) and subprocess.run(["ldd", BUSYBOX], capture_output=True, check=False).returncode != 0
        if probe.returncode != 0 or not static:
            print(f"needs chroot and a static {BUSYBOX}")
            return SKIPPED
        problems = list(check(place))
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
