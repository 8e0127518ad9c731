#!/usr/bin/env python3
"""Every #include of the tree against the picture of folders in ARCHITECTURE.md, and a few rules of layout.

usage: include_rule_test.py SOURCE_ROOT     one line per violation; exit status 1 when there is one
       include_rule_test.py --self-test     checks that each rule reports a violation

The picture is read: it is the only table of permissions. "A ← B": B may include A and all that A may include; "A ⇠ B": B
may include A, nothing else, and passes it to no other folder. Arrows chain, commas list folders, two blanks separate chains.
"""
import os
import re
import sys
import tempfile

PICTURE_ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
GROUPS = ["agent", "plugin", "plugin/dra", "tools", ""]  # parents of the folders in the picture, which names them without


def picture_folder(name):
    paths = (os.path.join(group, name) for group in GROUPS)
    return next((path for path in paths if os.path.isdir(os.path.join(PICTURE_ROOT, path))), None)


def read_picture(text):
    """Folder -> the folders that it may include from. ValueError for a name that is no folder."""
    lines = [line for line in text.splitlines() if re.match(r"    .*[←⇠]", line)]
    whole, alone = {}, {}
    for chain in (chain for line in lines for chain in re.split(r"  +", re.sub(r"^ +(\w+:)?", "", line)) if chain):
        parts = re.split(r" ([←⇠]) ", chain.strip())
        folders = [{name: picture_folder(name) for name in part.split(", ")} for part in parts[::2]]
        for name in (name for names in folders for name, folder in names.items() if folder is None):
            raise ValueError(f"ARCHITECTURE.md: the picture of who may include whom names {name}, which is no folder")
        for arrow, lower, upper in zip(parts[1::2], folders, folders[1:]):
            for folder in upper.values():
                (whole if arrow == "←" else alone).setdefault(folder, set()).update(lower.values())

    def closure(folder):
        return {folder}.union(*(closure(lower) for lower in whole.get(folder, ())))  # a cycle: RecursionError

    known = {*whole, *alone}.union(*whole.values(), *alone.values())
    return {folder: closure(folder) - {folder} | alone.get(folder, set()) for folder in known}


def read_document():
    with open(os.path.join(PICTURE_ROOT, "ARCHITECTURE.md"), encoding="utf-8") as file:
        return file.read()


# Folder -> folders it may include from. A folder may always include from itself. The longest matching folder counts.
MAY_INCLUDE = read_picture(read_document())
ANYTHING_GOES = ["test"]  # tests may look at everything

# One door per foreign library: pattern of the header's name -> folders that may include it.
DOORS = {
    r"(grpc|grpcpp|grpc\+\+|google/protobuf)/": ["agent/rpc", "plugin", "tools/neuron-agent", "tools/neuron-sim/kubelet"],
    r"hwloc": ["agent/host"],
    r"rdma/": ["agent/host"],
    r"archive(_entry)?\.h": ["agent/host"],
    r"zlib\.h": ["tools/neuron-gather"],
    r"curl/": ["agent/kube"],
    r"yaml-cpp/": ["agent/kube"],
    r"prometheus/": ["agent/metrics"],
    r"event2/": ["agent/metrics"],
    r"openssl/": ["agent/metrics"],
    r"n?curses": ["tools/screen"],
    r"tl/": ["agent/base"],
    r"CLI/": ["tools/neuron-agent", "tools/neuron-ls", "tools/neuron-top", "tools/neuron-gather", "tools/neuron-sim", "tools/kubectl-neuron"],
    r"nlohmann/": ["agent/grant", "agent/host", "agent/kube", "agent/report", "agent/status", "plugin", "tools/neuron-agent", "tools/render", "tools/neuron-gather", "tools/screen",
                  "tools/neuron-sim", "tools/kubectl-neuron"],
    r"(spdlog|fmt)/": ["agent/monitor", "agent/metrics", "agent/status", "plugin", "tools"],
}

# What is pure does no I/O and knows no threads and no clocks.
PURE = ["agent/model", "agent/core", "agent/allocator", "agent/grant", "agent/health", "agent/holdings", "agent/preflight",
        "agent/report", "tools/render"]
IMPURE_HEADERS = re.compile(r"fstream|iostream|filesystem|thread|mutex|condition_variable|unistd\.h|fcntl\.h|dirent\.h|sys/.*")
IMPURE_CALLS = re.compile(r"_clock::now\s*\(|\bgetenv\s*\(")

GENERATED = re.compile(r"neuron_version\.h|.*\.pb\.h")
MAX_LINES = 400
SOURCE_FOLDERS = ["agent", "plugin", "tools", "test"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path, folders):
    """The longest of `folders` that holds `path`, or None."""
    holding = [f for f in folders if path == f or path.startswith(f + "/")]
    return max(holding, key=len, default=None)


def target_folder(name):
    if re.match(r"(deviceplugin|podresources|pluginregistration|dra|dra_health)/", name):
        return "proto"
    return folder_of(name, MAY_INCLUDE)


def check_include(root, path, quote, name):
    folder = folder_of(path, MAY_INCLUDE)
    if folder is None:
        return f"{path} is in no folder of the picture"
    for pattern, doors in DOORS.items():
        if re.match(pattern, name) and folder_of(path, doors) is None:
            return f"{path} includes <{name}>: only {', '.join(doors)} may"
    if folder in PURE and quote == "<" and IMPURE_HEADERS.fullmatch(name):
        return f"{path} includes <{name}>: {folder} does no I/O and knows no threads"
    if quote == "<":
        return None
    if not GENERATED.fullmatch(name) and not os.path.exists(os.path.join(root, name)):
        return f'{path} includes "{name}": not a path from the repository root'
    target = target_folder(name)
    if target is not None and target != folder and target not in MAY_INCLUDE[folder]:
        return f'{path} includes "{name}": {folder} may not include from {target}'
    return None


def check_source(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        lines = file.read().splitlines()
    found = []
    if len(lines) > MAX_LINES:
        found.append(f"{path} has {len(lines)} lines: more than {MAX_LINES} need splitting")
    if path.endswith(".h") and "#pragma once" not in lines:
        found.append(f"{path} lacks #pragma once")
    if folder_of(path, ANYTHING_GOES):
        return found
    for line in lines:
        include = INCLUDE.match(line)
        if include:
            problem = check_include(root, path, *include.groups())
            if problem:
                found.append(problem)
        elif folder_of(path, PURE) and IMPURE_CALLS.search(line.split("//")[0]):
            found.append(f"{path}: reads a clock or the environment: {line.strip()}")
        if path.endswith(".h") and re.match(r"\s*using namespace\b", line):
            found.append(f"{path}: using namespace in a header")
    return found


def check_cmake(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = re.sub(r"#.*", "", file.read())
    found = []
    if re.search(r"\bfile\s*\(\s*GLOB", text, re.IGNORECASE):
        found.append(f"{path}: file(GLOB) hides a forgotten file; list the files")
    if re.search(r"(?<!target_)\b(include_directories|link_libraries)\s*\(", text):
        found.append(f"{path}: settings belong to targets, not to directories")
    return found


def files_below(root):
    for top in SOURCE_FOLDERS + ["cmake", "proto"]:
        for directory, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                yield os.path.relpath(os.path.join(directory, name), root)
    yield "CMakeLists.txt"


def check_tree(root):
    found, sources = [], 0
    for path in files_below(root):
        if path.endswith((".h", ".cpp")):
            sources += 1
            found += check_source(root, path)
        elif os.path.basename(path) == "CMakeLists.txt" or path.endswith(".cmake"):
            found += check_cmake(root, path)
    return found, sources


def picture_self_test():
    base, model, kube = "agent/base", "agent/model", "agent/kube"
    drawn = read_picture("    agent:   base ← model, kube ← status     kube ⇠ metrics ← plugin/daemon\n`base ← rpc`\n")
    meant = {base: set(), model: {base}, kube: {base}, "agent/status": {base, model, kube}, "agent/metrics": {kube},
             "plugin/daemon": {"agent/metrics"}}
    if drawn != meant:
        print(f"self-test: the picture was read as {drawn}")
    try:
        read_picture("    base ← nowhere\n")
    except ValueError:
        return drawn != meant
    print("self-test: a folder of the picture that does not exist was not reported")
    return True


def self_test():
    bad = {
        "agent/base/a.h": '#pragma once\n#include "agent/model/a.h"\n',
        "agent/model/a.h": '#pragma once\n#include <fstream>\n',
        "agent/model/b.h": "int b;\n",
        "agent/core/a.cpp": "auto t = std::chrono::steady_clock::now();\n",
        "agent/core/b.cpp": '#include "b.h"\n',
        "agent/monitor/a.cpp": '#include "agent/host/a.h"\n',
        "agent/host/a.h": "#pragma once\nusing namespace std;\n",
        "agent/host/b.cpp": "#include <grpcpp/grpcpp.h>\n",
        "agent/misc/a.cpp": "#include <vector>\n",
        "plugin/device/a.cpp": '#include "agent/host/a.h"\n',
        "plugin/kubelet/a.cpp": '#include "plugin/device/a.h"\n',
        "agent/rpc/b.cpp": '#include "plugin/device/a.h"\n',
        "plugin/device/b.cpp": "#include <hwloc.h>\n",
        "plugin/device/d.cpp": "#include <curl/curl.h>\n",
        "tools/neuron-agent/a.cpp": "#include <event2/http.h>\n",
        "tools/render/a.cpp": '#include "deviceplugin/v1beta1/api.grpc.pb.h"\n',
        "tools/neuron-ls/a.cpp": "\n" * (MAX_LINES + 1),
        "agent/CMakeLists.txt": "file(GLOB x *.cpp)\n",
        "cmake/x.cmake": "include_directories(.)\n",
    }
    good = {
        "agent/core/c.cpp": '#include "agent/model/a.h"\n#include <vector>\n',
        "plugin/device/c.cpp": '#include "agent/rpc/a.h"\n#include "deviceplugin/v1beta1/api.grpc.pb.h"\n#include <grpcpp/grpcpp.h>\n',
        "agent/rpc/a.h": '#pragma once\n#include "agent/model/c.h"\n',
        "agent/model/c.h": "#pragma once\n",
        "tools/CMakeLists.txt": "target_include_directories(x PRIVATE .) # no file(GLOB)\n",
        "CMakeLists.txt": "\n",
    }
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**bad, **good}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        found, _ = check_tree(root)
    flagged = {re.split(r"[ :]", problem)[0] for problem in found}
    missed, wrong = sorted(set(bad) - flagged), sorted(flagged & set(good))
    for path in missed:
        print(f"self-test: the violation in {path} was not seen")
    for path in wrong:
        print(f"self-test: {path} was flagged though it is fine: {[f for f in found if f.startswith(path)]}")
    return 1 if picture_self_test() or missed or wrong else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    found, sources = check_tree(sys.argv[1])
    for problem in found:
        print(problem)
    if sources == 0:
        print(f"no sources below {sys.argv[1]}")
        return 1
    print(f"{sources} source files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
