#!/usr/bin/env python3
"""Shell completions offer exactly the long options that the programs have.

usage: completions_test.py SOURCE_ROOT PROGRAM...
bash: tools/completions/NAME.bash is sourced and asked; zsh: tools/completions/_NAME, where there is one, has to name each option.
"""
import os
import subprocess
import sys

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


def main():
    problems = [p for program in sys.argv[2:] for p in check(sys.argv[1], program)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
