#!/usr/bin/env python3
"""docs/logs.md has the log lines of the code: each row is the beginning of a line that the code logs, at the level that it says, and each
line of level warn or error has exactly one row.

usage: logs_test.py SOURCE_ROOT     one line per problem; exit status 1 when there is one
       logs_test.py --self-test     checks that the rules bite

A line of the code is the first string of a call such as spdlog::warn("driver not started: {}", ...). In a row … stands for {}; a row
without a level is of level warn.
"""
import os
import re
import sys

FOLDERS = ["agent", "plugin", "tools"]
PAGE = "docs/logs.md"
CALL = re.compile(r"\bspdlog::(debug|info|warn|error|critical|log)\(\s*")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"\s*')
ROW = re.compile(r"^- `([^`]+)`(?: \(([a-z, ]+)\))?:", re.MULTILINE)
MUST = {"warn", "error", "critical"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def end_of_argument(text, at):
    """Where the comma is that ends the argument that begins at `at`."""
    depth = 0
    while depth > 0 or text[at] != ",":
        depth += (text[at] in "([{") - (text[at] in ")]}")
        at += 1
    return at


def calls(text):
    """(levels, text with … for each value, line number) of each call; the text is "" where no string begins it."""
    for match in CALL.finditer(text):
        levels, at = {match.group(1)}, match.end()
        if levels == {"log"}:
            end = end_of_argument(text, at)
            levels = set(re.findall(r"level::(\w+)", text[at:end])) - {"level"}
            at = re.compile(r",\s*").match(text, end).end()
        line = ""
        while string := STRING.match(text, at):
            line, at = line + string.group(1), string.end()
        line = re.sub(r"\{[^}]*\}", "…", re.sub(r"\\(.)", r"\1", line))
        yield levels, line, text.count("\n", 0, match.start()) + 1


def sources(root):
    for top in FOLDERS:
        for directory, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith((".cpp", ".h")):
                    yield os.path.relpath(os.path.join(directory, name), root)


def check(page, texts):
    """`texts`: {path: source}. Yields problems."""
    rows = [(event, set((levels or "warn").split(", "))) for event, levels in ROW.findall(page)]
    seen = {event: set() for event, _ in rows}
    for event in sorted({event for event, _ in rows if [one for one, _ in rows].count(event) > 1}):
        yield f"{PAGE} has the row `{event}` twice"
    for path, text in texts.items():
        for levels, line, number in calls(text):
            where = f"{path}:{number}"
            if not line or line == "…":
                yield f"{where} logs a line that begins with no text of its own: name the event"
                continue
            matching = [event for event, _ in rows if line.startswith(event)]
            for event in matching:
                seen[event] |= levels
            if len(matching) > 1 or (not matching and levels & MUST):
                yield f"{where} logs \"{line}\", which has {len(matching)} rows in {PAGE}: {matching}"
    for event, levels in rows:
        if not seen[event]:
            yield f"{PAGE}: no line of the code begins with `{event}`"
        elif seen[event] != levels:
            yield f"{PAGE}: `{event}` is logged as {', '.join(sorted(seen[event]))}, not {', '.join(sorted(levels))}"


def self_test():
    page = "- `disk full path=…`: x\n- `started` (info): x\n"
    good = 'spdlog::warn("disk full path={}: {}", a, b); spdlog::info("started"); spdlog::debug("other {}", a);\n'
    bad = {
        "a line without a row": good + 'spdlog::error("lost {}", a);',
        "a line without a text": good + "spdlog::warn(text);",
        "a line of a value alone": good + 'spdlog::info("{}", text);',
        "a row without a line": good.replace("started", "begun"),
        "a row of another level": good.replace("spdlog::info", "spdlog::warn"),
        "a level by a condition": good + 'spdlog::log(f(a, b) ? spdlog::level::warn : spdlog::level::info, "lost");',
    }
    problems = [f"self-test: {name} was not seen" for name, text in bad.items() if not list(check(page, {"a.cpp": text}))]
    problems += [f"self-test: found {problem}" for problem in check(page, {"a.cpp": good})]
    if not list(check(page + "- `disk full`: x\n", {"a.cpp": good})):
        problems.append("self-test: a line with two rows was not seen")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    root = sys.argv[1]
    page = read(os.path.join(root, PAGE))
    texts = {path: read(os.path.join(root, path)) for path in sources(root)}
    problems = list(check(page, texts))
    count = sum(1 for text in texts.values() for _ in calls(text))
    for problem in problems:
        print(problem)
    print(f"{count} log lines, {len(ROW.findall(page))} rows, {len(problems)} problems")
    return 1 if problems or count < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
