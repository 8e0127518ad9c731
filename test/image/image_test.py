#!/usr/bin/env python3
"""Checks the image archives that tools/image.sh wrote.   usage: image_test.py SOURCE_ROOT DIRECTORY   (as root)

DEEP=yes: also that DIRECTORY/second, a second build, is the same, and that the arm64 image works.
"""
import hashlib
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import time

from checks import MEMORY, Elf, Image, Skip, output_of, run_all

top, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
deep = os.environ.get("DEEP") == "yes"
arch = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
version = re.search(r"^project\(.* VERSION ([0-9.]+)", (top / "CMakeLists.txt").read_text(), re.MULTILINE).group(1)
programs = ["neuron-agent", "neuron-gather", "neuron-ls", "neuron-top"]
helpers = ["neuron-topology"]
# Bytes of all files, a little above what was measured: who makes an image larger should know it.
# neuron-agent and neuron-sim ask the API server: 5 MB of each are libcurl and OpenSSL (docs/adr/0009-libcurl.md).
limits = {"neuron-agent": 28_500_000, "neuron-agent-sim": 40_500_000}
alone_limit = 22_500_000


def archive_of(title, which=arch, directory=out):
    return directory / f"{title}-{version}-{which}.tar"


def description(title, which=arch):
    """(manifest, config) of an archive."""
    with tarfile.open(archive_of(title, which)) as tar:
        manifest = json.load(tar.extractfile("manifest.json"))
        assert len(manifest) == 1, manifest
        return manifest[0], json.load(tar.extractfile(manifest[0]["Config"]))


agent = Image(top, archive_of("neuron-agent"))
sim = Image(top, archive_of("neuron-agent-sim"))
images = {"neuron-agent": agent, "neuron-agent-sim": sim}


def names_and_labels():
    for title in images:
        manifest, config = description(title)
        assert manifest["RepoTags"] == [f"localhost/{title}:{version}"], manifest
        assert (config["architecture"], config["os"]) == (arch, "linux"), config
        labels = {key.removeprefix("org.opencontainers.image."): value for key, value in config["config"]["Labels"].items()}
        assert labels["title"] == title and labels["version"] == version and labels["licenses"] == "Apache-2.0", labels
        assert config["created"] == labels["created"], config
        if subprocess.run(["git", "-C", str(top), "rev-parse"], capture_output=True).returncode == 0:
            assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", labels["revision"]), labels
        assert "PATH=/usr/bin" in config["config"]["Env"], config
        assert config["config"]["Cmd"] == ["neuron-agent", "--help"] and not config["config"].get("Entrypoint"), config


def sizes():
    for title, image in images.items():
        size = sum(path.stat().st_size for path in image.files().values())
        print(f"FIGURE {title}: {size / 1e6:.1f} MB unpacked")
        assert size <= limits[title], f"{title} has {size} bytes, more than {limits[title]}"
    size = sum((agent.root / name).stat().st_size for name in closure(agent, ["usr/bin/neuron-agent", "usr/libexec/neuron-node-agent/neuron-topology"]))
    print(f"FIGURE neuron-agent and neuron-topology with their libraries: {size / 1e6:.1f} MB")
    assert size <= alone_limit, f"the agent alone has {size} bytes, more than {alone_limit}"


def closure(image, names):
    """Paths below the root of the ELF files `names` and of every library they need. A library that is missing fails."""
    elf_files = image.elf_files()
    by_soname = {pathlib.Path(name).name: name for name in elf_files if "/lib/" in name or name.startswith("usr/lib/")}
    seen, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        elf = Elf(elf_files[name])
        assert not elf.paths, f"{name} has {elf.paths}"
        if elf.interpreter:
            assert (image.root / os.path.realpath(image.root / elf.interpreter.lstrip("/"))).exists(), elf.interpreter
        for soname in elf.needed:
            assert soname in by_soname, f"{name} needs {soname}, which is not in the image"
            waiting.append(by_soname[soname])
    return seen


def holds_only_what_is_needed():
    for title, image in images.items():
        expected = sorted(programs + (["neuron-sim"] if image is sim else []))
        assert sorted(os.listdir(image.root / "usr/bin")) == expected, os.listdir(image.root / "usr/bin")
        assert sorted(os.listdir(image.root / "usr/libexec/neuron-node-agent")) == helpers
        elf_files = image.elf_files()
        started = [name for name in elf_files if name.startswith(("usr/bin/", "usr/libexec/"))]
        assert closure(image, started) == set(elf_files), f"needed by nobody: {set(elf_files) - closure(image, started)}"
        for name, path in image.files().items():
            mode = path.stat().st_mode
            assert not mode & 0o7022, f"{name} has mode {mode:o}"
            assert bool(mode & 0o111) == (name in elf_files), f"{name} has mode {mode:o}"
            assert path.stat().st_uid == path.stat().st_gid == 0, f"{name} is not root's"
            assert path.open("rb").read(2) != b"#!", f"{name} is a script"
            assert not re.search(r"(^|/)(apt|dpkg|sh|bash|dash|busybox|ld\.so\.cache)$", name), f"{title} has {name}"


def holds_nothing_of_the_builder():
    """No path of the machine or of the build, no setting of its package manager."""
    for image in images.values():
        for name, path in image.files().items():
            if name.startswith("usr/share/doc/"):
                continue  # Debian's own words
            content = path.read_bytes()
            for secret in [str(top).encode(), b"/source/", b"/ccache"]:
                assert secret not in content, f"{name} holds {secret.decode()}"
        assert not (image.root / "etc/apt").exists() and not (image.root / "root").exists()
        assert sorted(os.listdir(image.root / "etc")) == ["os-release"], os.listdir(image.root / "etc")


def stripped():
    for name, path in sim.elf_files().items():
        elf = Elf(path)
        assert not elf.has_symbols and not elf.has_debug, f"{name} is not stripped"


def debug_symbols():
    with tarfile.open(out / f"neuron-agent-{version}-{arch}-debug.tar") as tar:
        names = {member.name for member in tar if member.isfile()}
        expected = {}
        for name, path in sim.elf_files().items():
            if name.startswith(("usr/bin/", "usr/libexec/")):
                build_id = Elf(path).build_id
                expected[f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"] = build_id
        assert names == set(expected), names ^ set(expected)
        for name, build_id in expected.items():
            with tempfile.NamedTemporaryFile() as file:
                file.write(tar.extractfile(name).read())
                file.flush()
                elf = Elf(file.name)
                assert elf.build_id == build_id and elf.has_debug and elf.has_symbols, f"{name}: {elf.build_id}"


def bill_of_materials():
    for title, image in images.items():
        document = json.loads((out / f"{title}-{version}-{arch}.spdx.json").read_text())
        assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
        assert document["SPDXID"] == "SPDXRef-DOCUMENT" and document["documentNamespace"].startswith("https://")
        packages = {package["SPDXID"]: package for package in document["packages"]}
        files = {file["SPDXID"]: file for file in document["files"]}
        assert len(packages) == len(document["packages"]) and len(files) == len(document["files"]), "an identifier twice"
        assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", one) for one in [*packages, *files])
        licences = {entry["licenseId"] for entry in document["hasExtractedLicensingInfos"] if len(entry["extractedText"]) > 100}
        for package in packages.values():
            assert package["versionInfo"] and package["downloadLocation"], package
            declared = package["licenseDeclared"]
            assert declared == "Apache-2.0" or declared in licences, f"{package['name']} has no licence"
        listed = {file["fileName"].removeprefix("./"): file for file in files.values()}
        assert set(listed) == set(image.files()), set(listed) ^ set(image.files())
        for name, path in image.files().items():
            sums = {one["algorithm"]: one["checksumValue"] for one in listed[name]["checksums"]}
            assert sums["SHA256"] == hashlib.sha256(path.read_bytes()).hexdigest(), name
        owner = {one["relatedSpdxElement"]: packages[one["spdxElementId"]] for one in document["relationships"]
                 if one["relationshipType"] == "CONTAINS"}
        for name in image.elf_files():
            package = owner[listed[name]["SPDXID"]]
            if name.startswith("usr/lib/"):
                assert package["externalRefs"][0]["referenceLocator"].startswith("pkg:deb/debian/"), package
                assert (image.root / "usr/share/doc" / package["name"] / "copyright").exists(), package["name"]
            else:
                assert package["name"] == title and package["versionInfo"] == version, name
        linked = {packages[one["relatedSpdxElement"]]["name"] for one in document["relationships"] if one["relationshipType"] == "STATIC_LINK"}
        assert {"libgrpc-dev", "libgrpc++-dev", "libprotobuf-dev", "nlohmann-json3-dev", "libarchive-dev"} <= linked, linked


def every_program_runs():
    for program in programs + ["neuron-sim"]:
        assert sim.run(program, "--version").strip() == f"{program} {version}", program
    assert "Usage: neuron-agent" in agent.run("neuron-agent", "--help")
    for helper in helpers:
        command = sim.command(f"/usr/libexec/neuron-node-agent/{helper}", "--help")
        said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        assert said.returncode == 1 and said.stderr and "loading" not in said.stderr, said  # neither has options


def simulated_host():
    """What people do in a pod: the tools on a host, and the agent serving a kubelet, with the root read-only."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as work:
        sim.run("neuron-sim", "node", "/tmp/host", "--instance-type", "trn1.32xlarge", work=work)
        assert "| 15     | 2" in agent.run("neuron-ls", "--root", "/tmp/host", work=work)
        assert "trn1.32xlarge" in agent.run("neuron-top", "--root", "/tmp/host", "--once", work=work)
        found = agent.run("neuron-agent", "check", "--root", "/tmp/host", work=work)
        assert "hwloc" not in found, f"the helper does not work in the image:\n{found}"
        agent.run("neuron-gather", "--root", "/tmp/host", "--output", "/tmp/host.tar.gz", work=work)
        serve(work)


def serve(work):
    os.mkdir(os.path.join(work, "kubelet"))
    with open(os.path.join(work, "agent.log"), "w") as log:
        command = agent.command("neuron-agent", "run", "--root", "/tmp/host", "--kubelet-dir", "/tmp/kubelet", work=work)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for = ["--wait-for", "neuron=16", "--wait-for", "neuroncore=32", "--wait-for", "efa=8", "--timeout", "30s"]
        pathlib.Path(work, "script").write_text("pod train neuron=4 efa=2\n")
        answer = sim.run("neuron-sim", "kubelet", "--kubelet-dir", "/tmp/kubelet", *wait_for, "/tmp/script", work=work)
        assert "NEURON_RT_VISIBLE_CORES=0-7" in answer, answer
        log = pathlib.Path(work, "agent.log").read_text()
        assert "helper" not in log and "hwloc" not in log and not re.search(r"^\S+ error ", log, re.MULTILINE), log
    finally:
        process.kill()
        process.wait()


def terminals():
    """neuron-top draws on the terminals that kubectl exec and ssh announce."""
    for terminal in ["xterm", "xterm-256color", "screen", "tmux-256color", "linux", "vt100"]:
        assert (agent.root / "usr/lib/terminfo" / terminal[0] / terminal).is_file(), terminal


def asks_no_registry():
    """Without a base image nothing is pulled: the error says what to do. Also the other errors people can make."""
    def said(*words, **environment):
        command = [str(top / "tools/image.sh"), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
        assert done.returncode != 0, done
        return done.stderr
    with tempfile.TemporaryDirectory() as empty:
        settings = pathlib.Path(empty, "storage.conf")
        settings.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{empty}/storage"\nrunroot = "{empty}/run"\n')
        assert "base.sh" in said("--engine", "buildah", CONTAINERS_STORAGE_CONF=str(settings))
        started = time.monotonic()
        assert "not here" in said("--engine", "buildah", "--base", "localhost/no-such", CONTAINERS_STORAGE_CONF=str(settings))
        assert time.monotonic() - started < 20
    assert "--help" in said("--frobnicate")
    assert "s390x" in said("--arch", "s390x")
    assert "unknown engine" in said("--engine", "rkt")
    assert "--output" in said("--arch", "arm64" if arch == "amd64" else "amd64")
    text = (top / "manifests/image/Containerfile").read_text()
    assert not re.search(r"[a-z0-9-]+\.[a-z]{2,}/", text), "the Containerfile names a registry"


def second_build_is_the_same():
    for name in sorted(path.name for path in (out / "second").iterdir()):
        first, second = ((directory / name).read_bytes() for directory in (out, out / "second"))
        assert hashlib.sha256(first).digest() == hashlib.sha256(second).digest(), f"{name} differs"


def other_architecture():
    if arch != "amd64":
        raise Skip("only on amd64")
    manifest, config = description("neuron-agent-sim", "arm64")
    assert config["architecture"] == "arm64" and manifest["RepoTags"] == [f"localhost/neuron-agent-sim:{version}"]
    image = Image(top, archive_of("neuron-agent-sim", "arm64"))
    started = [name for name in image.elf_files() if name.startswith(("usr/bin/", "usr/libexec/"))]
    assert closure(image, started) == set(image.elf_files())
    assert all(Elf(path).machine == "AArch64" for path in image.elf_files().values())
    emulator = pathlib.Path("/usr/bin/qemu-aarch64-static")
    (image.root / "qemu").write_bytes(emulator.read_bytes())
    (image.root / "qemu").chmod(0o755)
    for program in programs + ["neuron-sim"]:
        said = image.run(f"/usr/bin/{program}", "--version", emulator=["/qemu"])
        assert said.strip() == f"{program} {version}", said
    # Not neuron-ls on that host: qemu 7.2 has no openat2, without which nothing is read below another root than /.
    with tempfile.TemporaryDirectory() as work:
        image.run("/usr/bin/neuron-sim", "node", "/tmp/host", "--instance-type", "trn1.32xlarge", work=work, emulator=["/qemu"], timeout=300)
        assert (pathlib.Path(work) / "host/sys/devices/virtual/neuron_device/neuron15").is_dir()


sys.exit(run_all([
    names_and_labels, sizes, holds_only_what_is_needed, holds_nothing_of_the_builder, stripped, debug_symbols, bill_of_materials,
    every_program_runs, simulated_host, terminals, asks_no_registry,
] + ([second_build_is_the_same, other_architecture] if deep else [])))
