#!/usr/bin/env python3
"""Runs inside the build stage, after build.sh: lays out the root directories of the images and what goes beside them.

Below --output:
  agent/    root of the image: programs and helpers without debug symbols, the shared libraries they need (the closure of
            their NEEDED entries, and the loader), terminal descriptions, the C.UTF-8 locale, licences, and a package list
            that vulnerability scanners read
  sim/      what neuron-sim adds to it
  extras/   NAME.spdx.json per image, and debug/usr/lib/debug/.build-id/XX/REST.debug per program
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bill  # noqa: E402
import debian  # noqa: E402

TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
# What people's terminals call themselves; neuron-top draws with terminfo.
TERMINALS = ["xterm", "xterm-256color", "screen", "screen-256color", "tmux", "tmux-256color", "linux", "vt100", "dumb"]
# Mount points of a container's runtime, and where a process expects to write when somebody mounts something there.
DIRECTORIES = {"dev": 0o755, "etc": 0o755, "proc": 0o555, "run": 0o755, "sys": 0o555, "tmp": 0o1777, "var/lib": 0o755}


def output_of(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


class Elf:
    """What readelf says about one ELF file: needed (sonames), interpreter (path or None), build_id (hex or None)."""

    def __init__(self, path):
        self.needed, self.interpreter, self.build_id = [], None, None
        for line in output_of("readelf", "--wide", "--dynamic", "--program-headers", "--notes", str(path)).splitlines():
            if "(NEEDED)" in line:
                self.needed.append(line.split("[", 1)[1].rstrip("]"))
            elif "Requesting program interpreter:" in line:
                self.interpreter = line.split(": ", 1)[1].strip().rstrip("]")
            elif "Build ID:" in line:
                self.build_id = line.split("Build ID:")[1].strip()


class Stage:
    def __init__(self, build, output):
        self.install = build / "install"
        self.output = output
        self.arch = (build / "arch").read_text().strip()
        self.triplet = TRIPLETS[self.arch]
        self.native = self.arch == output_of("dpkg", "--print-architecture").strip()
        self.binutils = "" if self.native else self.triplet + "-"
        self.packages = debian.Packages(self.arch)
        self.libraries = {}  # soname -> path on this machine, of everything staged so far

    def programs(self):
        """Paths below the install directory, sorted; those of a workstation alone are left out."""
        return sorted(
            str(path.relative_to(self.install))
            for folder in ("usr/bin", "usr/libexec/neuron-node-agent")
            for path in (self.install / folder).iterdir() if not path.name.startswith("kubectl"))

    def assert_version(self, version):
        for program in self.programs():
            path = self.install / program
            if not program.startswith("usr/bin/"):
                continue
            if self.native:
                said = output_of(str(path), "--version").strip()
                if said != f"{path.name} {version}":
                    sys.exit(f"stage.py: {path.name} --version says '{said}', but the image is to be {version}")
            elif version.encode() + b"\0" not in path.read_bytes():
                sys.exit(f"stage.py: {path.name} does not hold the version {version}")

    def place_program(self, root, program):
        """Strips `program` into `root`, its debug symbols into extras/."""
        source, target = self.install / program, root / program
        target.parent.mkdir(parents=True, exist_ok=True)
        build_id = Elf(source).build_id
        if not build_id:
            sys.exit(f"stage.py: {program} has no build id")
        debug = self.output / "extras/debug/usr/lib/debug/.build-id" / build_id[:2] / (build_id[2:] + ".debug")
        debug.parent.mkdir(parents=True, exist_ok=True)
        objcopy = self.binutils + "objcopy"
        output_of(objcopy, "--only-keep-debug", "--compress-debug-sections=zlib", str(source), str(debug))
        debug.chmod(0o644)
        output_of(objcopy, "--strip-all", str(source), str(target))
        target.chmod(0o755)
        return target

    def find_library(self, soname):
        for folder in ("/usr/lib/" + self.triplet, f"/usr/{self.triplet}/lib"):
            path = pathlib.Path(folder, soname)
            if path.exists():
                return path
        sys.exit(f"stage.py: {soname} is in no library directory of {self.triplet}")

    def place_libraries(self, root, elf_files):
        """The closure of what `elf_files` need, without what an earlier root has. Returns the placed paths in `root`."""
        placed, waiting = [], list(elf_files)
        while waiting:
            elf = Elf(waiting.pop())
            if elf.interpreter:
                self.place_loader(root, elf.interpreter)
            for soname in elf.needed:
                if soname in self.libraries:
                    continue
                source = self.find_library(soname)
                self.libraries[soname] = source
                target = root / "usr/lib" / self.triplet / soname
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source.resolve(), target)
                target.chmod(0o755)
                placed.append(target)
                waiting.append(source)
        return placed

    def place_loader(self, root, interpreter):
        """The loader's library comes by its soname like all others; the path that programs name is a link to it."""
        link = root / "usr" / interpreter.lstrip("/")
        if (self.output / "agent/usr" / interpreter.lstrip("/")).is_symlink():
            return
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(f"/usr/lib/{self.triplet}/{link.name}", "/usr/" + str(pathlib.Path(interpreter).parent).lstrip("/")))

    def place_data(self, root):
        for name, mode in DIRECTORIES.items():
            (root / name).mkdir(parents=True)
            (root / name).chmod(mode)
        for name in ("bin", "lib", "lib64"):
            if (root / "usr" / name).is_dir():
                (root / name).symlink_to("usr/" + name)
        files = []
        for name in TERMINALS:
            files.append(pathlib.Path("/lib/terminfo", name[0], name))
        files += sorted(path for path in pathlib.Path("/usr/lib/locale/C.utf8").rglob("*") if path.is_file())
        files += [pathlib.Path("/usr/lib/os-release")]
        for source in files:
            target = root / ("usr/lib" + str(source).split("/lib", 1)[1])
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.resolve(), target)
            target.chmod(0o644)
        (root / "etc/os-release").symlink_to("../usr/lib/os-release")
        return files


def alone(stage):
    """Bytes of the agent's process and its helper with the libraries that these two need."""
    root = stage.output / "agent"
    paths = [root / "usr/bin/neuron-agent", root / "usr/libexec/neuron-node-agent/neuron-topology"]
    seen = set()
    while paths:
        path = paths.pop()
        if path not in seen:
            seen.add(path)
            paths += [root / "usr/lib" / stage.triplet / soname for soname in Elf(path).needed]
    return sum(path.stat().st_size for path in seen)


def sizes(stage):
    """Sentences for people: what the bytes of the images are."""
    lines = [f"neuron-agent and neuron-topology with their libraries: {alone(stage) / 1e6:.1f} MB"]
    for image, title in (("agent", "neuron-agent"), ("sim", "neuron-agent-sim, beyond that")):
        parts = {"programs": 0, "libraries": 0, "licences": 0, "other": 0}
        for path in (stage.output / image).rglob("*"):
            if path.is_file() and not path.is_symlink():
                name = str(path.relative_to(stage.output / image))
                part = ("programs" if name.startswith(("usr/bin/", "usr/libexec/")) else "libraries" if ".so" in name
                        else "licences" if name.startswith("usr/share/") else "other")
                parts[part] += path.stat().st_size
        lines.append(f"{title}: " + ", ".join(f"{part} {size / 1e6:.1f} MB" for part, size in parts.items()))
    return "\n".join(lines) + "\n"


def settle(root, epoch):
    """The same owner, times and modes whoever built it."""
    for path in [root, *root.rglob("*")]:
        os.chown(path, 0, 0, follow_symlinks=False)
        if path.is_dir() and not path.is_symlink() and path.stat().st_mode & 0o7777 not in DIRECTORIES.values():
            path.chmod(0o755)
    for path in sorted([root, *root.rglob("*")], reverse=True):
        os.utime(path, (epoch, epoch), follow_symlinks=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="directory that build.sh filled")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True, help="what the programs must say they are")
    parser.add_argument("--epoch", type=int, default=0, help="time of all files, in seconds since 1970")
    arguments = parser.parse_args()

    os.umask(0o022)
    stage = Stage(arguments.build, arguments.output)
    stage.assert_version(arguments.version)
    static = stage.packages.of_paths((arguments.build / "inputs.txt").read_text().split())
    (arguments.output / "extras").mkdir(parents=True)

    shipped = set()
    bills = bill.Maker(stage.packages, arguments.version, stage.arch, arguments.epoch)
    sources = []
    for image, title, names in (("agent", "neuron-agent", lambda program: not program.endswith("/neuron-sim")),
                                ("sim", "neuron-agent-sim", lambda program: program.endswith("/neuron-sim"))):
        root = arguments.output / image
        programs = [stage.place_program(root, program) for program in stage.programs() if names(program)]
        stage.place_libraries(root, [stage.install / path.relative_to(root) for path in programs])
        if image == "agent":
            sources += stage.place_data(root)
        packages = stage.packages.of_paths([str(path) for path in [*sources, *stage.libraries.values()]])
        debian.place_licences(root, (packages | static) - shipped)
        debian.place_list(root, packages - shipped)
        shipped |= packages | static
        if image == "agent":
            licence = root / "usr/share/doc/neuron-agent/copyright"
            licence.parent.mkdir()
            shutil.copyfile("LICENSE", licence)
            licence.chmod(0o644)
        bills.add(root)
        bills.write(arguments.output / "extras" / (title + ".spdx.json"), title, packages, static)
        settle(root, arguments.epoch)
    (arguments.output / "extras/sizes.txt").write_text(sizes(stage))
    settle(arguments.output / "extras", arguments.epoch)


if __name__ == "__main__":
    main()
