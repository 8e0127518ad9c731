#!/usr/bin/env python3
"""Checks one source file.   usage: tidy.py BUILD_DIRECTORY [CLANG_TIDY] FILE

First clang's own warnings, those of locks (-Wthread-safety) among them. Then, with CLANG_TIDY, the checks of .clang-tidy; without,
clang's analyzer, as far as .clang-tidy asks for it. Findings go to stderr, and then the file's name to stdout. A file that the
build does not have has no findings.
"""
import json
import os
import shlex
import subprocess
import sys

CHECKERS = "core,cplusplus,deadcode"  # clang-analyzer-core.*, -cplusplus.* and -deadcode.* of .clang-tidy


def compile_command(build, path):
    """(words without output and -c, working directory), or None."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entry = next((e for e in json.load(file) if os.path.realpath(e["file"]) == path), None)
    if entry is None:
        return None
    words = shlex.split(entry["command"])
    words = words[next(i for i, word in enumerate(words) if "clang++" in word):]  # after the launcher
    output = words.index("-o")
    return [w for w in words[:output] + words[output + 2:] if w != "-c"], entry["directory"]


def main():
    build, *tool, name = sys.argv[1:]
    path = os.path.realpath(name)
    found = compile_command(build, path)
    if found is None:
        return
    words, directory = found
    commands = [[words[0], "-fsyntax-only", *words[1:]]]
    if tool:
        commands.append([*tool, "--quiet", "-p", os.path.realpath(build), path])
    else:
        commands.append([words[0], "--analyze", "--analyzer-output", "text", "-Xclang", "-analyzer-checker=" + CHECKERS,
                         "-Xclang", "-analyzer-werror", *words[1:]])
    failed = False
    for command in commands:
        result = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            failed = True
            print(result.stdout + result.stderr, file=sys.stderr)
    if failed:
        print(name)


if __name__ == "__main__":
    main()
