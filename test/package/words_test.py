#!/usr/bin/env python3
"""Plain words in what users and developers read: no word or opening of the dialect that STYLE forbids.

usage: words_test.py SOURCE_ROOT     one line per fault; exit status 1 when there is one
       words_test.py --self-test     checks that the rules bite

Read are comments and strings of .cpp and .h, comments of .yaml, .tpl and .sh and what scripts print, and documents and
manual pages as a whole, except for code blocks. A test's own words are not read.
"""
import os
import re
import sys
import tempfile

FOLDERS = ["agent", "docs", "manifests", "plugin", "tools"]
# The history of decisions keeps its words.
LEFT_OUT = ("docs/adr/",)
WORDS = re.compile(r"\b(nobody|somebody|told|tells|anew|silicon|of ours|ill|is over(?=[.,;:]|$)|for good|looked at|a look|a word of)\b", re.I)
CHIPS = re.compile(r"\b(?<![\w-])chips?\b(?![\w-])", re.I)
# "chip" in names of requests of claims ("chips/first", chips@neuron-device-3), of codes and of other projects.
NAMES = re.compile(r"""["'`][^"'`\s]*chips?[^"'`\s]*["'`]|\bchips?[@/]|name: chips|\w*(?:chip_|_chip|-chips)\w*|claim chips""")
OPENINGS = re.compile(r"^(What|Who|Whose|That which|Which|Of|The same(?=$|[.,;]| (?:a|as|at|by|for|from|in|of|on|that|the|when|where|with|without)\b))(?!\w)")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
SHELL_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\'([^\'\n]*)\'')


def comment_of(line, mark):
    """The text of a line that is a comment and nothing else; None for another."""
    match = re.match(rf"\s*{mark}\s?(.*)", line)
    return match.group(1) if match else None


def texts_of(path, text):
    """(line number, text, whether a comment begins there) of each text to be read."""
    if path.endswith((".md", ".scd")):
        fenced = False
        for number, line in enumerate(text.splitlines(), 1):
            fenced ^= line.startswith("```")
            if not fenced and not line.startswith(("    ", "\t\t", "```")):
                yield number, line, False
        return
    mark = "//" if path.endswith((".cpp", ".h")) else r"(?:#|\{\{-?\s*/\*)"
    was_comment = False
    for number, line in enumerate(text.splitlines(), 1):
        comment = comment_of(line, mark)
        if comment is not None:
            yield number, comment, not was_comment and path.endswith((".h", ".yaml", ".tpl"))
        elif path.endswith((".cpp", ".h")):
            yield from ((number, string, False) for string in STRING.findall(line.split(" // ")[0]))
            if " // " in line:
                yield number, line.split(" // ", 1)[1], False
        elif path.endswith(".sh"):
            yield from ((number, " ".join(parts), False) for parts in SHELL_STRING.findall(line))
        was_comment = comment is not None


def check(path, text):
    for number, words, begins in texts_of(path, text):
        found = [match.group(0) for match in WORDS.finditer(words)]
        found += [match.group(0) for match in CHIPS.finditer(NAMES.sub(" ", words))]
        if begins and (match := OPENINGS.match(words)):
            found.append(f"{match.group(0)} …")
        for one in found:
            yield f"{path}:{number} says \"{one}\": name the thing, with a subject and a verb: {words.strip()[:90]}"


def paths(root):
    yield from (name for name in sorted(os.listdir(root)) if name.endswith(".md"))
    for top in FOLDERS:
        for directory, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                path = os.path.relpath(os.path.join(directory, name), root)
                if name.endswith((".cpp", ".h", ".yaml", ".tpl", ".sh", ".md", ".scd")) and not path.startswith(LEFT_OUT):
                    yield path


def problems_of(root):
    for path in paths(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            yield from check(path, file.read())


def self_test():
    bad = {
        "agent/a.h": "// Of a file, its size.\nint a;\n",
        "agent/b.h": "// Reads the file, as the\n// caller was told.\n",
        "agent/c.cpp": 'fail("nobody holds it");\n',
        "agent/d.cpp": 'fail("the chips differ");\n',
        "plugin/e.cpp": "int x;  // of ours\n",
        "manifests/f.yaml": "# What the agent asks for.\na: b\n",
        "manifests/g.tpl": "{{/* The same as a pattern. */}}\n",
        "tools/h.sh": 'say "the same silicon"\n',
        "docs/health.md": "Pods start anew.\n",
        "tools/man/j.scd": "The chip is told.\n",
    }
    good = {
        "agent/good.h": '// Names of requests: "chips" of "chips/first".\n// Of two lines the second may open so.\nint a = f("told_you");\n',
        "agent/good.cpp": "// Of a comment in a source file only words count.\nint nobody_home;\n",
        "manifests/good.yaml": "# Permissions of the agent.\nname: chips\n",
        "tools/good.sh": "echo 'chips@neuron-device-3'  # fine\n",
        "docs/faults.md": "`chip_unexpected`: an instance of operator-for-ai-chips-on-aws.\n\n    nobody\n```\ntold\n```\n",
        "docs/adr/0003-root-is-a-value.md": "Nobody was told.\n",
    }
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**bad, **good}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        found = list(problems_of(root))
    flagged = {problem.split(":")[0] for problem in found}
    for path in sorted(set(bad) - flagged):
        print(f"self-test: the words of {path} were not seen")
    for problem in found:
        if problem.split(":")[0] in good:
            print(f"self-test: flagged though it is fine: {problem}")
    return 0 if flagged == set(bad) else 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    problems = list(problems_of(sys.argv[1]))
    for problem in problems:
        print(problem)
    count = sum(1 for _ in paths(sys.argv[1]))
    print(f"{count} files, {len(problems)} faults")
    return 1 if problems or count < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
