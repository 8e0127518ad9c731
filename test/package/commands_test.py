#!/usr/bin/env python3
"""Commands of README.md, CONTRIBUTING.md and docs/: they run, and what they name exists.

usage: commands_test.py SOURCE_ROOT PROGRAM...
       commands_test.py --self-test PROGRAM...     checks that a document with wrong commands is found out

- A line of a code block that calls one of our programs is run as it stands on a simulated host, with that host for the
  placeholders and paths of the documents, and ended where it would go on. Without a kubelet or API server it may fail, but not
  for its words.
- In `code` within a sentence, subcommands and options of our programs must be in their help.
- Paths below tools/, test/ and manifests/ exist; a script's options are in its --help; labels, DaemonSets, jobs and
  containers that kubectl commands name are in the manifests, and values that Helm sets in the chart's.
"""
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from programs_test import options_of, subcommands  # noqa: E402

WORDS = {"NODE": "node-1"}
HOST_NAMES = {"DIR", "/dev/shm/node", "/var/lib/neuron-sim"}
ARCHIVE = re.compile(r"\w+\.tar\.gz")
# Subcommand or program: what ends it, if it would go on.
ENDED_BY = {"neuron-top": ["--once"], "load": ["--steps", "1"], "run": ["--once"]}
NEEDS_A_CLUSTER = {"explain", "withdraw"}
NOT_IN_HELP = {"pods"}  # of neuron-agent, for the other programs
WRONG_USAGE = re.compile(r"--help")  # what each program answers to wrong words
PATH = re.compile(r"(?<![\w./:-])(?:tools|test|manifests)/[\w.*/-]*\w")
LONG_OR_SHORT = re.compile(r"--?[a-z][a-z-]*")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def documents(root):
    yield from (name for name in ("README.md", "CONTRIBUTING.md") if os.path.exists(os.path.join(root, name)))
    for directory, _, names in os.walk(os.path.join(root, "docs")):
        yield from (os.path.relpath(os.path.join(directory, n), root) for n in sorted(names) if n.endswith(".md"))


def code_lines(text):
    """(number, line) of the code blocks, without comments; lines that end with a backslash are joined."""
    fenced, joined = False, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            joined += re.sub(r"(^|\s)#\s.*", "", line.strip())
            if joined.endswith("\\"):
                joined = joined[:-1]
                continue
            yield number, joined
            joined = ""


def spans(text):
    """(number, code within a sentence)"""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("    "):
            yield from ((number, code) for code in re.findall(r"`([^`]+)`", line))


def commands(line):
    """The words of each command of a line of shell; what `kubectl exec … --` runs is a command of its own."""
    for part in re.split(r";|\|\|?|&&?|\s--\s", line):
        try:
            words = shlex.split(re.sub(r"\d?>\s*\S+", "", part))
        except ValueError:
            continue
        while words and (words[0] == "sudo" or re.match(r"\w+=", words[0])):
            words.pop(0)
        if words:
            yield words


class Programs:
    def __init__(self, paths):
        self.paths = {os.path.basename(path): os.path.abspath(path) for path in paths}
        self.helps = {}

    def help(self, words):
        """(subcommands that `words` begin with, help of the last)"""
        chain = []
        while True:
            key = (words[0], *chain)
            if key not in self.helps:
                result = subprocess.run([self.paths[words[0]], *chain, "--help"], stdin=subprocess.DEVNULL, capture_output=True,
                                        text=True, timeout=30, check=False)
                self.helps[key] = result.stdout
            rest = words[1 + len(chain):]
            if not rest or rest[0] not in subcommands(self.helps[key]):
                return chain, self.helps[key]
            chain.append(rest[0])


class Scratch:
    """A directory with a simulated host, its capture, and claims.yaml."""

    def __init__(self, programs, directory):
        self.programs, self.directory = programs, directory
        self.host = os.path.join(directory, "host")
        self.archive = os.path.join(directory, "host.tar.gz")
        self.run(["neuron-sim", "node", self.host, "--instance-type", "trn2.48xlarge"])
        self.run(["neuron-gather", "--root", self.host, "-o", self.archive])
        with open(os.path.join(directory, "claims.yaml"), "w", encoding="utf-8") as file:
            file.write("{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, spec: {devices: {}}}")

    def run(self, words):
        return subprocess.run([self.programs.paths[words[0]], *words[1:]], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=50, check=False, cwd=self.directory, env={**os.environ, "NODE_NAME": "node-1"})

    def try_out(self, words):
        """What is wrong with a command of a document, or None."""
        chain, text = self.programs.help(words)
        subject = chain[0] if chain else words[0]
        if words[0] == "neuron-sim" and chain == ["node"]:
            words = [os.path.join(self.directory, "new") if word in HOST_NAMES else word for word in words]
        output = words.index("-o") + 1 if "-o" in words else None
        words = [self.host if word in HOST_NAMES else self.archive if ARCHIVE.fullmatch(word) and i != output else WORDS.get(word, word)
                 for i, word in enumerate(words)]
        if "--root" in options_of(text) and "--root" not in words:
            words += ["--root", self.host]
        if not {"--check-config", *ENDED_BY.get(subject, [])} & set(words):
            words += ENDED_BY.get(subject, [])
        result = self.run(words)
        allowed = {0, 1} if subject == "check" else {0}
        may_fail = subject in NEEDS_A_CLUSTER or "-" in words  # of what is piped into it nothing is there
        if WRONG_USAGE.search(result.stderr) or not may_fail and result.returncode not in allowed:
            return f"exit {result.returncode}, {(result.stderr or result.stdout).strip()!r}"
        return None


def check_programs(root, path, programs, scratch):
    text = read(root, path)
    for number, line in code_lines(text):
        for words in commands(line):
            if words[0] in programs.paths:
                problem = scratch.try_out(words)
                if problem:
                    yield f"{path}:{number}: {shlex.join(words)}: {problem}"
    for number, code in spans(text):
        words = code.split()
        if len(words) > 1 and words[0] in programs.paths:
            chain, explained = programs.help(words)
            known = options_of(explained) | set(re.findall(r"^ +(-\w),", explained, re.M)) | NOT_IN_HELP
            rest = words[1 + len(chain):]
            for i, word in enumerate(rest):
                wanted = LONG_OR_SHORT.fullmatch(word) or i == 0 and subcommands(explained)
                if wanted and word not in known:
                    yield f"{path}:{number}: `{code}`: {word} is not in the help of {' '.join([words[0]] + chain)}"


def check_scripts(root, words):
    script, options = os.path.join(root, words[0]), [word for word in words[1:] if LONG_OR_SHORT.fullmatch(word)]
    if not options or not script.endswith(".sh") or not os.access(script, os.X_OK) or "--help" not in read(script):
        return
    text = subprocess.run([script, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False).stdout
    for option in options:
        if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text):
            yield f"{option} is not in the help of {words[0]}"


def chart_has(values, name):
    """Whether values.yaml has the value `a.b.c`."""
    at = 0
    for depth, key in enumerate(name.split(".")):
        found = re.compile(rf"^{'  ' * depth}{re.escape(key)}:", re.M).search(values, at)
        if not found:
            return False
        at = found.end()
    return True


def check_cluster(root, words):
    manifests = "".join(read(path) for path in glob.glob(os.path.join(root, "manifests", "*", "*.yaml")))
    line = " ".join(words)
    if words[0] == "kubectl":
        for key, value in re.findall(r"-l ([\w./-]+)=([\w-]+)", line):
            if not re.search(rf"{re.escape(key)}: \"?{re.escape(value)}\"?\s", manifests):
                yield f"no manifest has the label {key}={value}"
        for name in re.findall(r"(?:ds/|daemonset[/ ]|job/)(neuron-(?:agent|sample|claim)[\w-]*)|-c (\S+)", line):
            if not re.search(rf"name: {re.escape(max(name))}[\s,}}]", manifests):
                yield f"no manifest has {max(name)}"
    if words[0] == "helm":
        values = read(root, "manifests/helm/neuron-agent/values.yaml")
        for name in re.findall(r"--set ([\w.]+)=", line):
            if not chart_has(values, name):
                yield f"values.yaml has no {name}"


def check_paths(root, path):
    text = read(root, path)
    for number, code in [*code_lines(text), *spans(text)]:
        for words in commands(code):
            yield from (f"{path}:{number}: {problem}" for problem in [*check_scripts(root, words), *check_cluster(root, words)])
        for name in PATH.findall(code):
            if not re.search(r"[A-Z]{3}", name) and not glob.glob(os.path.join(root, name)):
                yield f"{path}:{number}: there is no {name}"


def check(root, programs):
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as directory:
        scratch = Scratch(programs, directory)
        for path in documents(root):
            yield from check_programs(root, path, programs, scratch)
            yield from check_paths(root, path)


WRONG = """
`neuron-ls --nowhere`, `neuron-agent nowhere` and `test/nowhere.sh`

    neuron-sim set DIR neuron3 no_such_counter=1
    sudo neuron-agent check --nowhere; neuron-agent check
    kubectl exec POD -- neuron-ls --no-such
    tools/image.sh --nowhere && kubectl apply -f manifests/static/nowhere.yaml
    kubectl logs -l app.kubernetes.io/name=nowhere
    helm install neuron-agent --set image.nowhere=1
"""
FOUND = ["--nowhere is not in the help of neuron-ls", "nowhere is not in the help of neuron-agent", "no_such_counter", "neuron-agent check --nowhere", "--no-such", "no test/nowhere.sh",
         "--nowhere is not in the help of tools/image.sh", "nowhere.yaml", "name=nowhere", "no image.nowhere"]


def self_test(programs):
    tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with tempfile.TemporaryDirectory() as root:
        for name in ("tools", "manifests"):
            os.symlink(os.path.join(tree, name), os.path.join(root, name))
        with open(os.path.join(root, "README.md"), "w", encoding="utf-8") as file:
            file.write(WRONG)
        problems = list(check(root, programs))
    yield from (f"not found: {text}" for text in FOUND if not any(text in problem for problem in problems))
    if len(problems) != len(FOUND):
        yield f"{len(problems)} problems instead of {len(FOUND)}: {problems}"


def main():
    programs = Programs(sys.argv[2:])
    problems = list(self_test(programs) if sys.argv[1] == "--self-test" else check(sys.argv[1], programs))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
