#!/usr/bin/env python3
"""The design documents name what the code has: every class, function and file in backticks in ARCHITECTURE.md and docs/adr.

usage: names_test.py SOURCE_ROOT     one line per name that is not in the sources; exit status 1 when there is one
       names_test.py --self-test     checks that the rules bite

Checked are CamelCase and snake_case words, Owner::name (namespace or class, then a name of the same file), paths
below the folders of the sources, without an ending too (`agent/health/signals`), and names of files (`families_*.cpp`). Comments of the
sources do not count.
"""
import glob
import os
import re
import sys
import tempfile

FOLDERS = ["agent", "plugin", "proto", "tools"]
PATHS = ("agent/", "cmake/", "docs/", "manifests/", "plugin/", "proto/", "test/", "tools/")
SOURCES = (".cpp", ".h", ".proto")
QUOTED = re.compile(r"`([^`]+)`")
CAMEL = re.compile(r"[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+")
SNAKE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
SCOPED = re.compile(r"(\w+)::(\w+)")
PATH = re.compile(r"[\w.{},*/-]+")
FILE = re.compile(r"[\w*]+\.(?:cpp|h|proto)")
COMMENT = re.compile(r"(?<!:)//.*")  # an address in a string stays


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def documents(root):
    found = [os.path.join(root, "ARCHITECTURE.md"), *sorted(glob.glob(os.path.join(root, "docs", "adr", "*.md")))]
    return {os.path.relpath(path, root): read(path) for path in found}


def sources(root):
    """The source files without their comments."""
    for top in FOLDERS:
        for directory, _, names in os.walk(os.path.join(root, top)):
            yield from (COMMENT.sub("", read(os.path.join(directory, name))) for name in names if name.endswith(SOURCES))


class Names:
    def __init__(self, texts):
        self.words = set()
        self.owned = {}  # namespace or class: words of the files that declare it
        for text in texts:
            words = set(re.findall(r"\w+", text))
            self.words |= words
            owners = re.findall(r"\b(?:namespace|class|struct|enum)\s+((?:\w+::)*\w+)(?!\s*;)", text)
            for owner in {part for name in owners for part in name.split("::")}:
                self.owned.setdefault(owner, set()).update(words)

    def has(self, name):
        if match := SCOPED.fullmatch(name):
            return match.group(2) in self.owned.get(match.group(1), set())
        return not (CAMEL.fullmatch(name) or SNAKE.fullmatch(name)) or name in self.words


def path_exists(root, path):
    """Of `agent/health/signals`, `agent/core/catalogue_{inf,trn}.cpp`, `agent/metrics/families_*.cpp`: every one."""
    if match := re.search(r"\{([^}]*)\}", path):
        return all(path_exists(root, path.replace(match.group(0), one, 1)) for one in match.group(1).split(","))
    return bool(glob.glob(os.path.join(root, path)) or glob.glob(os.path.join(root, path) + ".*"))


def check(root, texts):
    names = Names(sources(root))
    for document, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            for quoted in QUOTED.findall(line):
                if PATH.fullmatch(quoted) and quoted.startswith(PATHS):
                    known = path_exists(root, quoted)
                elif FILE.fullmatch(quoted):
                    known = any(glob.glob(os.path.join(root, top, "**", quoted), recursive=True) for top in FOLDERS)
                else:
                    known = names.has(quoted)
                if not known:
                    yield f"{document}:{number} names {quoted}, which is not in the sources"


def self_test():
    bad = ["`GoneClass`", "`gone_function`", "`core::Gone`", "`gone::Scanner`", "`Scanner::gone`", "`OnlyInAComment`", "`core::place_text`",
           "`agent/host/gone.h`", "`agent/host/scan_{a,c}.cpp`", "`agent/gone/`", "`only_declared::Scanner`", "`gone.cpp`"]
    good = ["`Scanner`", "`core::Scanner`", "`Scanner::read_all`", "`place_text`", "`agent/host/scan_a`", "`agent/host/scan_{a,b}.cpp`",
            "`agent/host/scan_*.cpp`", "`agent/host/`", "`/dev/neuron<N>`", "`--mode dra`", "`neuron`", "Plain", "`proto/<package>/`",
            "`GetList`", "`http_path`", "`scan_a.cpp`", "`scan_*.cpp`"]
    files = {
        "agent/host/scan_a.cpp": "namespace neuron::core {\nclass Scanner {\n  void read_all();\n};\n}  // OnlyInAComment\n",
        "agent/host/scan_b.cpp": 'namespace neuron::host {\nclass Other;\nauto place_text() { return "http://http_path"; }\n}\n',
        "agent/other.h": "// namespace only_declared { class Scanner; }\n",
        "proto/a/api.proto": "rpc GetList(A) returns (B) {}\n",
    }
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        missed = [text for text in bad if not list(check(root, {"ARCHITECTURE.md": text}))]
        wrong = [text for text in good if list(check(root, {"ARCHITECTURE.md": text}))]
    for text in missed:
        print(f"self-test: {text} was not seen")
    for text in wrong:
        print(f"self-test: {text} was flagged though it is fine")
    return 1 if missed or wrong else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    texts = documents(sys.argv[1])
    problems = list(check(sys.argv[1], texts))
    for problem in problems:
        print(problem)
    count = sum(len(QUOTED.findall(text)) for text in texts.values())
    print(f"{len(texts)} documents, {count} names in backticks, {len(problems)} that are not in the sources")
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
