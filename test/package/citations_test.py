#!/usr/bin/env python3
"""Citations lead somewhere: every FILE.md named in the tree is in the tree, and every FILE.md#section is a heading of it.

usage: citations_test.py SOURCE_ROOT     one line per citation that leads nowhere; exit status 1 when there is one
       citations_test.py --self-test     checks that the rules bite

A file is looked for from the folder of the file that cites it and from the root. What follows a colon or a scheme
("owner/repo:README.md", "https://...") is somebody else's.
"""
import os
import re
import sys
import tempfile

FOLDERS = ["agent", "cmake", "docs", "manifests", "plugin", "proto", "test", "tools"]
TEXTS = (".cpp", ".h", ".go", ".py", ".sh", ".md", ".txt", ".cmake", ".in", ".scd", ".yaml", ".tpl", ".json", ".proto", "Containerfile")
CITATION = re.compile(r"(?<![\w./:#-])((?:\.\.?/)*\w[\w./-]*\.md)\b(#[\w-]+)?")
BARE_SECTION = re.compile(r"§ ?\d")
OWN_SECTION = re.compile(r"\]\((#[\w-]+)\)")
NO_CITATION = re.compile(r"\w+://\S+|%[a-z]|\\n|\[[^\]]*\](?=\()")  # an address, a place in a format, the text of a link
THIS = os.path.basename(__file__)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def texts(root):
    yield from (name for name in sorted(os.listdir(root)) if name.endswith(".md") or name == "CMakeLists.txt")
    for top in FOLDERS:
        for directory, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith(TEXTS) and name != THIS:
                    yield os.path.relpath(os.path.join(directory, name), root)


def anchors(path):
    """The sections of a document, named as a browser of the repository names them."""
    found, fenced = {}, False
    for line in read(path).splitlines():
        fenced ^= line.startswith("```")
        if re.match(r"#+ ", line) and not fenced:
            title = re.sub(r"\]\([^)]*\)", "]", line.lstrip("#").strip().lower())
            name = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
            found[name] = found.get(name, -1) + 1
    return {"#" + name for name in found} | {f"#{name}-{i}" for name, last in found.items() for i in range(1, last + 1)}


def targets_of(root, path, name):
    """Where `path` may mean by `name`. A program's own working folder is not known: ../ counts from the root, too."""
    from_root = name if path.endswith(".md") else re.sub(r"^(\.\./)+", "", name)
    places = [os.path.join(root, os.path.dirname(path), name), os.path.join(root, from_root)]
    return [place for place in places if os.path.exists(place)]


def check_line(root, path, line):
    cited = CITATION.findall(NO_CITATION.sub(" ", line))
    if path.endswith(".md"):
        cited += [(os.path.basename(path), section) for section in OWN_SECTION.findall(line)]
    for name, section in cited:
        targets = targets_of(root, path, name)
        if not targets:
            yield f"cites {name}, which is not in the tree"
        elif section and not any(section in anchors(target) for target in targets):
            yield f"cites {name}{section}: there is no such section"
    if BARE_SECTION.search(line):
        yield "cites a section by number: cite docs/FILE.md#section"


def check_file(root, path):
    for number, line in enumerate(read(os.path.join(root, path)).splitlines(), 1):
        for problem in check_line(root, path, line):
            yield f"{path}:{number} {problem}"


def self_test():
    bad = {
        "agent/a.h": "// Numbers (driver.md, docs/none.md).\n",
        "agent/b.cpp": "// see docs/there.md#no-such-section\n",
        "agent/c.cpp": "// by the table (§7.2)\n",
        "docs/d.md": "[x](#nothing)\n",
        "docs/e.md": "[x](there.md#fenced)\n",
        "tools/f.sh": "# ../shared/there.md\n",
        "cmake/g.cmake": "# reference/there.md\n",
    }
    good = {
        "agent/good.h": "// docs/there.md#two-words-1-and-2, docs/there.md#again-1, docs/there.md.\n",
        "docs/there.md": "# There\n## Two words: 1 and `2`\n## Again\n## Again\n```\n# Fenced\n```\n[x](#again) [y](good.md)\n",
        "test/run/good.go": "open(`../docs/there.md`) // %sdocs/there.md\n",
        "docs/good.md": "[there.md](../docs/there.md#there) owner/repo:docs/foreign.md https://example.org/foreign.md\n",
    }
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**bad, **good}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        found = [problem for path in texts(root) for problem in check_file(root, path)]
    flagged = {problem.split(":")[0] for problem in found}
    for path in sorted(set(bad) - flagged):
        print(f"self-test: the citation in {path} was not seen")
    for path in sorted(flagged & set(good)):
        print(f"self-test: {path} was flagged though it is fine: {[f for f in found if f.startswith(path)]}")
    return 0 if flagged == set(bad) else 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    root = sys.argv[1]
    paths = list(texts(root))
    problems = [problem for path in paths for problem in check_file(root, path)]
    for problem in problems:
        print(problem)
    print(f"{len(paths)} files, {len(problems)} citations that lead nowhere")
    return 1 if problems or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
