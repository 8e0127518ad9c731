#!/usr/bin/env python3
"""Checks the packages that CPack makes of build/release.   usage: cpack_test.py SOURCE_ROOT DIRECTORY   (as root)

The Debian package is installed with its dependencies into the base image of the suite, used, and removed.
UPDATE_GOLDEN=1 rewrites package_files.txt, the list of its files.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from checks import MEMORY, Skip, output_of, run_all

top, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
build = top / "build/release"
golden = top / "test/image/package_files.txt"
programs = ["kubectl-neuron", "neuron-agent", "neuron-gather", "neuron-ls", "neuron-sim", "neuron-top"]
work = tempfile.TemporaryDirectory()
packages = pathlib.Path(work.name)


def package(pattern):
    found = sorted(packages.glob(pattern))
    if not found:
        raise Skip(f"no package {pattern}: an earlier step says why")
    assert len(found) == 1, found
    return found[0]


def version():
    return output_of([str(build / "bin/neuron-agent"), "--version"]).split()[1]


def packages_are_made():
    if not (build / "CPackConfig.cmake").exists() or not (build / "bin/neuron-agent").exists():
        raise Skip("build/release is not built")
    if not shutil.which("dpkg-shlibdeps"):
        raise Skip("dpkg-dev is not installed")
    output_of(["cpack", "--config", str(build / "CPackConfig.cmake"), "-B", str(packages)], cwd=build)
    assert package("*.deb").name == f"neuron-agent_{version()}_{output_of(['dpkg', '--print-architecture']).strip()}.deb"


def files_are_the_golden_list():
    deb = package("*.deb")
    lines = [line.split() for line in output_of(["dpkg-deb", "--contents", str(deb)]).splitlines()]
    listing = "".join(f"{line[0]} {line[1]} {line[5].removeprefix('.')}\n" for line in lines if line[5] != "./")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(listing)
    assert listing == golden.read_text(), f"the package holds\n{listing}\nUPDATE_GOLDEN=1 accepts it"
    archive = output_of(["tar", "--list", "--file", str(package("*.tar.gz"))]).splitlines()
    files = {"/usr/" + name.split("/", 1)[1] for name in archive if not name.endswith("/")}
    assert files == {line[5].removeprefix(".") for line in lines if not line[0].startswith("d")}, files


def control_is_complete():
    deb = package("*.deb")
    fields = dict(line.split(": ", 1) for line in output_of(["dpkg-deb", "--field", str(deb)]).splitlines() if ": " in line)
    assert fields["Package"] == "neuron-agent" and fields["Version"] == version(), fields
    for library in ["libc6", "libstdc++6", "libhwloc15", "libspdlog", "libncursesw6", "zlib1g"]:
        assert library in fields["Depends"], fields["Depends"]


def archive_runs_from_any_prefix():
    package("*.tar.gz")
    with tempfile.TemporaryDirectory(dir=MEMORY) as prefix:
        output_of(["tar", "--extract", "--strip-components=1", "--directory", prefix, "--file", str(package("*.tar.gz"))])
        for program in programs:
            assert output_of([f"{prefix}/bin/{program}", "--version"]).strip() == f"{program} {version()}"
        look_at_a_host(lambda *words: output_of([f"{prefix}/bin/{words[0]}", *words[1:]]), prefix + "/host")


def look_at_a_host(run, host):
    run("neuron-sim", "node", host, "--instance-type", "trn2.48xlarge")
    assert "| 15     | 4" in run("neuron-ls", "--root", host)
    found = run("neuron-agent", "check", "--root", host)
    assert "hwloc" not in found, f"the helper does not work:\n{found}"


class Container:
    """A container of the base image, for as long as the with statement lasts."""

    def __enter__(self):
        self.name = output_of(["buildah", "from", "--pull-never", "debian:12-slim"]).strip()
        return self

    def __exit__(self, *_):
        subprocess.run(["buildah", "rm", self.name], capture_output=True)

    def run(self, *words):
        return output_of(["buildah", "run", self.name, "--", *words], stdin=subprocess.DEVNULL)

    def files(self):
        """All files but those that apt and dpkg rewrite with every package, and the caches of libraries."""
        found = self.run("find", "/", "-xdev", "-path", "/proc", "-prune", "-o", "-path", "/sys", "-prune", "-o", "-path", "/var", "-prune", "-o", "-print")
        return set(found.split("\n"))


def installs_runs_and_leaves_nothing():
    deb = package("*.deb")
    with Container() as container:
        output_of(["buildah", "copy", container.name, str(deb), "/root/neuron-agent.deb"])
        container.run("apt-get", "update", "-qq")
        libraries = [one.split()[0] for one in output_of(["dpkg-deb", "--field", str(deb), "Depends"]).strip().split(", ")]
        container.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *libraries)
        before = container.files()
        container.run("dpkg", "--install", "/root/neuron-agent.deb")  # with what it depends on, and nothing else, it installs
        for program in programs:
            assert container.run(program, "--version").strip() == f"{program} {version()}"
        look_at_a_host(container.run, "/tmp/host")
        container.run("rm", "-r", "/tmp/host")
        container.run("dpkg", "--purge", "neuron-agent")
        assert container.files() == before, container.files() ^ before
        assert "neuron-agent" not in container.run("dpkg-query", "-W", "-f", "${Package}\n")


sys.exit(run_all([packages_are_made, files_are_the_golden_list, control_is_complete, archive_runs_from_any_prefix,
                  installs_runs_and_leaves_nothing]))
