#!/usr/bin/env python3
"""The programs as users meet them: --version, --help within 80 columns, and a man page that knows every flag.

usage: programs_test.py version VERSION PROGRAM...   each PROGRAM --version names VERSION
       programs_test.py help PROGRAM...              help of each program and subcommand fits 80 columns
       programs_test.py man SOURCE_ROOT PROGRAM...   every long option of the help is in tools/man/NAME.?.scd, and no other
"""
import glob
import os
import re
import subprocess
import sys

LONG_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
OPTION_ENTRY = re.compile(r"^ +(?:-\w, ?)?(--[a-z][a-z-]*[a-z])", re.MULTILINE)  # as CLI11 prints them
EXPLAINED_OPTION = re.compile(r"^\*.*?(--[a-z][a-z-]*[a-z])", re.MULTILINE)  # an entry, not another program's in an example
IN_EVERY_PROGRAM = {"--help", "--help-all", "--version"}


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)


def subcommands(help_text):
    """Names in the "Subcommands:" paragraph that CLI11 prints."""
    match = re.search(r"^Subcommands:\n((?:[ \t]+.*\n?|\n)*)", help_text, re.MULTILINE)
    return re.findall(r"^  ([a-z][a-z-]*)", match.group(1), re.MULTILINE) if match else []


def options_of(help_text):
    """Long options that have an entry; others are only mentioned."""
    return set(OPTION_ENTRY.findall(help_text))


def helps(program):
    """(command line, its help) of the program and of each of its subcommands."""
    todo = [[program]]
    while todo:
        command = todo.pop(0)
        result = run(*command, "--help")
        yield command, result
        todo += [command + [name] for name in subcommands(result.stdout)]


def label(command):
    return " ".join([os.path.basename(command[0])] + command[1:])


def check_version(version, programs):
    for program in programs:
        result = run(program, "--version")
        if result.returncode != 0 or not re.search(rf"(^|\s){re.escape(version)}\s*$", result.stdout):
            yield f"{label([program])} --version: exit {result.returncode}, {result.stdout!r}; want {version}"


def check_help(programs):
    for program in programs:
        for command, result in helps(program):
            if result.returncode != 0 or not result.stdout.strip() or result.stderr:
                yield f"{label(command)} --help: exit {result.returncode}, {len(result.stdout)} bytes, {result.stderr!r} on stderr"
            for line in result.stdout.splitlines():
                if len(line) > 80:
                    yield f"{label(command)} --help: {len(line)} columns: {line}"


def check_man(root, programs):
    for program in programs:
        name = os.path.basename(program)
        pages = glob.glob(os.path.join(root, "tools", "man", name + ".[0-9].scd"))
        if len(pages) != 1:
            yield f"{name} has no man page in tools/man"
            continue
        with open(pages[0], encoding="utf-8") as file:
            text = file.read().replace("\\", "")
        in_page, explained = set(LONG_OPTION.findall(text)), set(EXPLAINED_OPTION.findall(text))
        in_help = set()
        for _, result in helps(program):
            in_help |= options_of(result.stdout)
        for option in sorted(in_help - in_page - IN_EVERY_PROGRAM):
            yield f"{os.path.basename(pages[0])} does not mention {option}"
        for option in sorted(explained - in_help - IN_EVERY_PROGRAM):
            yield f"{os.path.basename(pages[0])} explains {option}, which {name} does not have"


def main():
    kind, arguments = sys.argv[1], sys.argv[2:]
    if kind == "version":
        problems = list(check_version(arguments[0], arguments[1:]))
    elif kind == "help":
        problems = list(check_help(arguments))
    else:
        problems = list(check_man(arguments[0], arguments[1:]))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
