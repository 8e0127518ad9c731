#!/usr/bin/env python3
"""Checks one source file.   usage: tidy.py BUILD_DIRECTORY [CLANG_TIDY] FILE

With CLANG_TIDY: the checks of .clang-tidy. Without: clang's analyzer, as far as .clang-tidy asks for it. Findings on stderr; the
file's name on stdout when there are any, and for a file that does not compile. A file that the build does not have is none.
"""
import json
import os
import shlex
import subprocess
import sys

CHECKERS = "core,cplusplus,deadcode"  # clang-analyzer-core.*, -cplusplus.* and -deadcode.* of .clang-tidy


def main():
    build, *tool, name = sys.argv[1:]
    path = os.path.realpath(name)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entry = next((e for e in json.load(file) if os.path.realpath(e["file"]) == path), None)
    if entry is None:
        return
    if tool:
        command = [*tool, "--quiet", "-p", build, path]
        directory = None
    else:
        words = shlex.split(entry["command"])
        words = words[next(i for i, word in enumerate(words) if "clang++" in word):]
        output = words.index("-o")
        command = [w for w in words[:output] + words[output + 2:] if w != "-c"]
        command[1:1] = ["--analyze", "--analyzer-output", "text", "-Xclang", "-analyzer-checker=" + CHECKERS,
                        "-Xclang", "-analyzer-werror"]
        directory = entry["directory"]
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        print(name)
        print(result.stdout + result.stderr, file=sys.stderr)


if __name__ == "__main__":
    main()
