#!/usr/bin/env python3
"""krew's manifest says what the archive of kubectl-neuron is.

usage: krew_test.py SOURCE_ROOT BUILD VERSION PROCESSOR CMAKE   makes the archive; exit status 77: no python3-yaml
"""
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile

try:
    import yaml
except ImportError:
    print("python3-yaml is not installed")
    sys.exit(77)

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
NO_SUM = "0" * 64


def read(path):
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


def check_manifest(manifest, version):
    """What krew itself asks of a manifest."""
    spec = manifest["spec"]
    if manifest["apiVersion"] != "krew.googlecontainertools.github.com/v1alpha2" or manifest["kind"] != "Plugin":
        yield f"{manifest['apiVersion']} {manifest['kind']}"
    if manifest["metadata"]["name"] != "neuron":
        yield f"kubectl neuron is not the plugin {manifest['metadata']['name']}"
    if spec["version"] != "v" + version:
        yield f"version {spec['version']}, the project has {version}"
    for field in ("homepage", "shortDescription", "description"):
        if not spec.get(field):
            yield f"no {field}"
    if len(spec["shortDescription"]) > 80 or any(len(line) > 100 for line in spec["description"].splitlines()):
        yield "long lines in the descriptions"


def installed(files, names):
    """What krew copies into the plugin's folder of these files: its patterns are those of a path."""
    for rule in files:
        pattern = re.compile("^" + re.escape(rule["from"]).replace(r"\*", "[^/]*") + "$")
        found = [name for name in names if pattern.match(name)]
        if not found or rule["to"] != ".":
            yield None, f"{rule} is of no file of the archive" if not found else f"{rule} goes elsewhere"
        yield from ((os.path.basename(name), None) for name in found)


def check_platform(platform, archive, version):
    if platform["uri"].rsplit("/", 1)[1] != os.path.basename(archive):
        yield f"uri {platform['uri']}, the archive is {os.path.basename(archive)}"
    with open(archive, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    if platform["sha256"] != digest:
        yield f"sha256 {platform['sha256']}, that of the archive is {digest}"
    with tarfile.open(archive) as unpacked, tempfile.TemporaryDirectory() as place:
        members = {member.name: member for member in unpacked.getmembers() if member.isfile()}
        outcome = list(installed(platform["files"], members))
        yield from (problem for _, problem in outcome if problem)
        names = {name for name, _ in outcome}
        for needed in (platform["bin"], "LICENSE"):
            if needed not in names:
                yield f"{needed} is not among the files that are installed: {names}"
        program = members.get(platform["bin"])
        if not program or not program.mode & 0o111:
            yield f"{platform['bin']} is no program of the archive: {sorted(members)}"
            return
        unpacked.extract(program, place)
        command = [os.path.join(place, program.name), "--version"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        if result.stdout.split() != [platform["bin"], version]:
            yield f"the program says {result.stdout!r} {result.stderr!r}"


def check_several(root, archive, cmake):
    """The manifest of a directory with archives of all its platforms, and of one without any."""
    source = os.path.join(root, "manifests/krew/neuron.yaml")
    with open(archive, "rb") as file:
        content = file.read()
    with tempfile.TemporaryDirectory() as place:
        command = [cmake, "-D", f"DIRECTORY={place}", "-D", f"MANIFEST={source}", "-D", f"OUTPUT={place}/neuron.yaml", "-P",
                   os.path.join(root, "cmake/KrewManifest.cmake")]
        subprocess.run(command, check=True)
        if read(f"{place}/neuron.yaml")["spec"]["platforms"]:
            yield "platforms without an archive are listed"
        expected = read(source)["spec"]["platforms"]
        for number, platform in enumerate(expected):
            data = content + bytes([number])
            platform["sha256"] = hashlib.sha256(data).hexdigest()
            with open(os.path.join(place, os.path.basename(platform["uri"])), "wb") as file:
                file.write(data)
        subprocess.run(command, check=True)
        if read(f"{place}/neuron.yaml")["spec"]["platforms"] != expected or len(expected) != len(ARCHITECTURES):
            yield "the platforms of several archives are not those of the manifest with their sums"


def main():
    root, build, version, processor, cmake = sys.argv[1:6]
    made = subprocess.run([cmake, "--build", build, "--target", "kubectl-neuron-archive"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        print(f"the archive is not made: {made.stdout[-2000:]}{made.stderr[-2000:]}")
        return 1
    source, own = read(os.path.join(root, "manifests/krew/neuron.yaml")), read(os.path.join(build, "neuron.yaml"))
    problems = list(check_manifest(own, version))
    platforms = [one for one in own["spec"]["platforms"]
                 if one["selector"]["matchLabels"] == {"os": "linux", "arch": ARCHITECTURES.get(processor, processor)}]
    if len(platforms) != 1 and processor == "x86_64":
        problems.append(f"{len(platforms)} platforms for {processor}")
    for platform in platforms:
        problems += check_platform(platform, os.path.join(build, f"kubectl-neuron-{version}-linux-{processor}.tar.gz"), version)
    problems += check_several(root, os.path.join(build, f"kubectl-neuron-{version}-linux-{processor}.tar.gz"), cmake)
    for one in source["spec"]["platforms"]:
        if one["sha256"] != NO_SUM:
            problems.append(f"manifests/krew/neuron.yaml has the sum {one['sha256']}: no archive of another build has it")
    for manifest in (source, own):
        for one in manifest["spec"]["platforms"]:
            one["sha256"] = ""
    if not all(one in source["spec"]["platforms"] for one in own["spec"].pop("platforms")):
        problems.append("a platform of the build is not in the tree")
    source["spec"].pop("platforms")
    if source != own:
        problems.append("build and tree differ in more than sums and platforms")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
