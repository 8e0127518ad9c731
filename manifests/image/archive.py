#!/usr/bin/env python3
"""Image archives, as `docker save`, `podman save` and `buildah push docker-archive:` write them.

  archive.py canonical IN OUT --name NAME --arch ARCH --epoch SECONDS
      writes the image of IN so that the same files and settings give the same bytes, whichever program built it and when:
      entries sorted, owner and times fixed, no history. Prints the image's ID and the size of its files in bytes.
  archive.py unpack IN DIRECTORY
      writes the files of the image below DIRECTORY (as root: with their owners).
  archive.py pack DIRECTORY OUT --epoch SECONDS
      writes a plain tar of DIRECTORY in the same manner.
"""
import argparse
import datetime
import hashlib
import io
import json
import pathlib
import sys
import tarfile


class Archive:
    """One image: .config (dict), .layers (readable tars, in order)."""

    def __init__(self, path):
        self.tar = tarfile.open(path)
        manifest = json.load(self.tar.extractfile("manifest.json"))
        if len(manifest) != 1:
            sys.exit(f"archive.py: {path} holds {len(manifest)} images, not one")
        self.config = json.load(self.tar.extractfile(manifest[0]["Config"]))
        self.layer_names = manifest[0]["Layers"]

    def layers(self):
        for name in self.layer_names:
            with tarfile.open(fileobj=self.tar.extractfile(name), mode="r:*") as layer:
                yield layer


def plain(name, kind, epoch):
    entry = tarfile.TarInfo(name)
    entry.type, entry.mtime, entry.uid, entry.gid = kind, epoch, 0, 0
    return entry


def canonical_layer(layer, epoch):
    """The layer's bytes, or None when it holds no files."""
    members = {}
    for member in layer.getmembers():
        name = member.name.removeprefix("./").strip("/")
        if name in ("", "."):
            continue
        if pathlib.PurePosixPath(name).name.startswith(".wh.") or not (member.isfile() or member.isdir() or member.issym()):
            sys.exit(f"archive.py: {name} is neither file, directory nor symbolic link")
        members[name] = member
    if not members:
        return None
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as out:
        for name in sorted(members):
            member = members[name]
            entry = plain(name, member.type, epoch)
            entry.mode, entry.linkname = member.mode & 0o7777, member.linkname
            entry.size = member.size if member.isfile() else 0
            out.addfile(entry, layer.extractfile(member) if member.isfile() else None)
    return buffer.getvalue()


def add_bytes(out, name, content, epoch):
    entry = plain(name, tarfile.REGTYPE, epoch)
    entry.mode, entry.size = 0o644, len(content)
    out.addfile(entry, io.BytesIO(content))


def canonical(arguments):
    archive = Archive(arguments.input)
    layers = [content for content in (canonical_layer(layer, arguments.epoch) for layer in archive.layers()) if content]
    digests = [hashlib.sha256(content).hexdigest() for content in layers]
    settings = {key: value for key, value in archive.config["config"].items()
                if key in ("Env", "Cmd", "Entrypoint", "Labels", "WorkingDir", "User", "ExposedPorts", "Volumes", "StopSignal") and value}
    settings["Labels"] = {key: value for key, value in settings.get("Labels", {}).items() if value and key.startswith("org.opencontainers.")}
    created = datetime.datetime.fromtimestamp(arguments.epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = json.dumps({
        "architecture": arguments.arch, "os": "linux", "created": created, "config": settings,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest for digest in digests]},
        "history": [{"created": created, "created_by": "manifests/image/Containerfile"} for _ in digests],
    }, sort_keys=True).encode()
    image_id = hashlib.sha256(config).hexdigest()
    manifest = json.dumps([{"Config": image_id + ".json", "RepoTags": [arguments.name],
                            "Layers": [digest + ".tar" for digest in digests]}], sort_keys=True).encode()
    with tarfile.open(arguments.output, "w", format=tarfile.USTAR_FORMAT) as out:
        for digest, content in zip(digests, layers):
            add_bytes(out, digest + ".tar", content, arguments.epoch)
        add_bytes(out, image_id + ".json", config, arguments.epoch)
        add_bytes(out, "manifest.json", manifest, arguments.epoch)
    files = [member.size for layer in Archive(arguments.output).layers() for member in layer.getmembers() if member.isfile()]
    print(image_id, sum(files))


def unpack(arguments):
    pathlib.Path(arguments.output).mkdir(parents=True, exist_ok=True)
    for layer in Archive(arguments.input).layers():
        layer.extractall(arguments.output)


def pack(arguments):
    root = pathlib.Path(arguments.input)
    with tarfile.open(arguments.output, "w", format=tarfile.USTAR_FORMAT) as out:
        for path in sorted(root.rglob("*")):
            entry = plain(str(path.relative_to(root)), tarfile.DIRTYPE if path.is_dir() else tarfile.REGTYPE, arguments.epoch)
            entry.mode = 0o755 if path.is_dir() else 0o644
            if path.is_dir():
                out.addfile(entry)
                continue
            entry.size = path.stat().st_size
            with path.open("rb") as content:
                out.addfile(entry, content)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["canonical", "unpack", "pack"])
    parser.add_argument("input")
    parser.add_argument("output")
    parser.add_argument("--name")
    parser.add_argument("--arch")
    parser.add_argument("--epoch", type=int, default=0)
    arguments = parser.parse_args()
    {"canonical": canonical, "unpack": unpack, "pack": pack}[arguments.command](arguments)


if __name__ == "__main__":
    main()
