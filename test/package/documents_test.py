#!/usr/bin/env python3
"""The documents: README within 100 lines, links that lead somewhere, every folder explained, flags told alike everywhere.

usage: documents_test.py SOURCE_ROOT
"""
import os
import re
import sys

REQUIRED = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE",
            "docs/configuration.md", "docs/fixtures.md", "docs/install.md", "docs/performance.md"]
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
LONG_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
VARIABLE = re.compile(r"\bNEURON_AGENT_[A-Z_]+[A-Z]\b")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def documents(root):
    yield from (name for name in sorted(os.listdir(root)) if name.endswith(".md"))
    for directory, _, names in os.walk(os.path.join(root, "docs")):
        yield from (os.path.relpath(os.path.join(directory, n), root) for n in sorted(names) if n.endswith(".md"))


def check_links(root):
    for path in documents(root):
        for target, _ in LINK.findall(read(root, path)):
            if not re.match(r"[a-z]+:", target) and not os.path.exists(os.path.join(root, os.path.dirname(path), target)):
                yield f"{path} links to {target}, which is not there"


def check_folders(root):
    architecture = read(root, "ARCHITECTURE.md")
    for top in ["agent", "tools"]:
        for folder in sorted(os.listdir(os.path.join(root, top))):
            if os.path.isdir(os.path.join(root, top, folder)) and f"{folder}/" not in architecture:
                yield f"ARCHITECTURE.md does not mention {top}/{folder}/"


def check_flags(root):
    """docs/configuration.md and the man page name the same flags and variables. On the page a variable is the option in capitals."""
    page = read(root, "tools/man/neuron-agent.8.scd").replace("\\", "")
    rows = [" ".join(row.split()) for row in re.findall(r"^- `--.*(?:\n  .*)*", read(root, "docs/configuration.md"), re.M)]
    variables = set()
    for row in rows:
        options = row.split(": ")[0]
        if "(no variable)" not in row and "(variable " not in options:
            variables |= {"NEURON_AGENT_" + option[2:].upper().replace("-", "_") for option in LONG_OPTION.findall(options)}
    for pattern, documented in ((LONG_OPTION, set(LONG_OPTION.findall("\n".join(rows)))), (VARIABLE, variables)):
        for name in sorted(documented ^ (set(pattern.findall(page)) - {"--help", "--version"})):
            yield f"{name} is in only one of docs/configuration.md and tools/man/neuron-agent.8.scd"


def cases(root):
    """Names of tests: Suite.Case of C++, TestName of Go; and every text in quotes in the Go scenarios, for names of subtests."""
    names, quoted = set(), set()
    for directory, _, files in os.walk(os.path.join(root, "test")):
        for name in files:
            text = read(root, os.path.join(directory, name)) if name.endswith((".cpp", "_test.go")) else ""
            if name.endswith(".cpp"):
                names |= {f"{suite}.{case}" for suite, case in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", text, re.M)}
            else:
                names |= set(re.findall(r"^func (Test\w+)\(t ", text, re.M))
                quoted |= set(re.findall(r'"(\w+)"', text))
    return names, quoted


def check_rows(root):
    """Each row of docs/reliability.md on claims names tests, and there are such tests."""
    names, quoted = cases(root)
    section = read(root, "docs/reliability.md").split("\n## Claims\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^- \*\*(.*?)\*\*: (.*(?:\n  .*)*)", section, re.M)
    if len(rows) < 40:
        yield f"docs/reliability.md has {len(rows)} faults of claims: this test checks nothing"
    for fault, text in rows:
        shown = re.findall(r"`([^`]+)`", text[text.rfind("("):])
        if not shown:
            yield f"docs/reliability.md: no test shows '{fault}'"
        for test in shown:
            name, _, sub = test.partition("/")
            if name not in names or sub and sub not in quoted:
                yield f"docs/reliability.md: there is no test {test}"


def main():
    root = sys.argv[1]
    problems = [f"{path} is missing" for path in REQUIRED if not os.path.exists(os.path.join(root, path))]
    if not problems:
        lines = len(read(root, "README.md").splitlines())
        if lines > 100:
            problems.append(f"README.md has {lines} lines; 100 are allowed")
        problems += [*check_links(root), *check_folders(root), *check_flags(root), *check_rows(root)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
