#!/usr/bin/env python3
"""Shell completions offer exactly the long options that the programs have.

usage: completions_test.py SOURCE_ROOT PROGRAM...
bash: tools/completions/NAME.bash is sourced and asked; zsh: tools/completions/_NAME, where there is one, has to name each option.
Names that others chose run nothing, and are offered in a form that runs nothing.
"""
import os
import re
import subprocess
import sys
import tempfile

from programs_test import LONG_OPTION, helps, label, options_of

ASK = """
source "$1" || exit 1
shift
COMP_WORDS=("$@" --)
COMP_CWORD=$#
COMP_LINE="${COMP_WORDS[*]}" COMP_POINT=${#COMP_LINE}
spec=$(complete -p "$1") || exit 1
[[ $spec =~ -F[[:space:]]+([^[:space:]]+) ]] || exit 1
"${BASH_REMATCH[1]}" "$1" -- "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(file, command):
    words = [os.path.basename(command[0])] + command[1:]
    result = subprocess.run(["bash", "--norc", "-c", ASK, "bash", file] + words, stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, timeout=30, check=False)
    if result.returncode != 0 or result.stderr:
        return None, result.stderr
    return {word.strip().rstrip("=") for word in result.stdout.split("\n") if word.strip()}, ""


def check(root, program):
    name = os.path.basename(program)
    bash = os.path.join(root, "tools", "completions", name + ".bash")
    zsh = os.path.join(root, "tools", "completions", "_" + name)
    if not os.path.exists(bash):
        yield f"{name} has no bash completion"
        return
    every = set()
    for command, result in helps(program):
        options = options_of(result.stdout)
        every |= options
        words, error = offered(bash, command)
        if words is None:
            yield f"{bash} fails on '{label(command)} --': {error}"
            continue
        for option in sorted(options - words):
            yield f"{label(command)}: bash completion does not offer {option}"
        for option in sorted({w for w in words if w.startswith("--")} - options):
            yield f"{label(command)}: bash completion offers {option}, which does not exist"
    if os.path.exists(zsh):
        with open(zsh, encoding="utf-8") as file:
            text = set(LONG_OPTION.findall(file.read()))
        for option in sorted(every - text):
            yield f"{zsh} does not name {option}"


KUBECTL = r"""#!/bin/bash
[[ $* != *get-clusters* && $* != *get-users* ]] || echo NAME
for name in '$(touch${IFS}'"$PWNED"')' '`touch${IFS}'"$PWNED"'`' 'a b' $'a\tb' 'a;b' arn:aws:eks:r:1:cluster/prod me@x plain; do
  [[ $* != *" get "* && $1 != get ]] || printf thing/
  printf '%s\n' "$name"
done
"""
ASK_NAMES = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
spec=$(complete -p "$1")
[[ $spec =~ -F[[:space:]]+([^[:space:]]+) ]]
"${BASH_REMATCH[1]}"
((${#COMPREPLY[@]} == 0)) || printf '%s\\n' "${COMPREPLY[@]}"
"""


def check_names(root, folder):
    """With a kubectl that prints evil names, and with a simulated node that has them."""
    place = os.path.abspath(os.path.join(root, "tools", "completions"))
    pwned = os.path.join(folder, "pwned")
    with open(os.path.join(folder, "kubectl"), "w", encoding="utf-8") as file:
        file.write(KUBECTL)
    os.chmod(os.path.join(folder, "kubectl"), 0o755)
    quoted = ["\\$\\(touch\\$\\{IFS\\}" + pwned + "\\)", "\\`touch\\$\\{IFS\\}" + pwned + "\\`", "a\\;b"]
    plain = ["arn:aws:eks:r:1:cluster/prod", "me@x", "plain"]
    node = os.path.join(folder, "node")
    for name in ("neuron0", "neuron0$(touch${IFS}pwned)"):
        os.makedirs(os.path.join(node, "sys", "class", "neuron_device", name))

    def ask(command, wanted):
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False, cwd=folder,
                                env={**os.environ, "PATH": folder + ":" + os.environ["PATH"], "PWNED": pwned})
        if os.path.exists(pwned):
            os.remove(pwned)
            yield f"{command[4:] or command} runs what a name says"
        if result.stdout.split("\n")[:-1] != wanted or result.stderr:
            yield f"{command[4:] or command} prints {result.stdout!r} {result.stderr!r}, not {wanted}"

    def bash(file, *words):
        return ["bash", "--norc", "-c", ASK_NAMES, "bash", os.path.join(place, file), *words]

    for words in (["nodes", "--context"], ["nodes", "--cluster"], ["nodes", "--user"], ["nodes", "-n"], ["nodes"], ["why"], ["map", "x"]):
        yield from ask(bash("kubectl-neuron.bash", "kubectl-neuron", *words, ""), quoted + plain)
        yield from ask([os.path.join(place, "kubectl_complete-neuron"), *words, ""], plain + [":0"])
    yield from ask(bash("kubectl-neuron.bash", "kubectl-neuron", "nodes", "--context", "\\$\\(t"), quoted[:1])
    yield from ask(bash("kubectl-neuron.bash", "kubectl-neuron", "nodes", "--context", "m"), ["me@x"])
    yield from ask(bash("neuron-sim.bash", "neuron-sim", "set", node, "n"),
                   ["neuron0", "neuron0\\$\\(touch\\$\\{IFS\\}pwned\\)"])
    # zsh need not be here: compadd quotes what it inserts, _describe divides names at colons, and an action without a
    # blank before it gets other arguments first.
    with open(os.path.join(place, "_kubectl-neuron"), encoding="utf-8") as file:
        text = file.read()
    if "compadd -a found" not in text or "_describe $1" in text or re.search(r"eval|compadd.*-Q|\(e\)|:_kubectl_neuron_words", text):
        yield "_kubectl-neuron does not offer names with compadd -a alone"


def main():
    problems = [p for program in sys.argv[2:] for p in check(sys.argv[1], program)]
    with tempfile.TemporaryDirectory() as folder:
        problems += check_names(sys.argv[1], folder)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
