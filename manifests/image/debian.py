"""What Debian's package database says about files, and what an image has to bring along of it."""
import pathlib
import re
import shutil
import subprocess

INFO = pathlib.Path("/var/lib/dpkg/info")
COMMON_LICENCES = pathlib.Path("/usr/share/common-licenses")


def without_usr(path):
    """/lib is a link to /usr/lib, and packages list their files under either."""
    return path[4:] if path.startswith("/usr/") else path


class Packages:
    """`arch`: of the libraries that are asked for; where a package is there for two, this one is meant."""

    def __init__(self, arch):
        self.arch = arch
        self.owner = {}
        for file in sorted(INFO.glob("*.list")):
            name, _, own = file.stem.partition(":")
            if own and own != arch and (INFO / f"{name}:{arch}.list").exists():
                continue
            for path in file.read_text(errors="replace").splitlines():
                self.owner.setdefault(without_usr(path), file.stem)
        self.facts = {}

    def of_paths(self, paths):
        """Names of the packages that the files belong to, as dpkg writes them (libc6:amd64, ncurses-base). A link counts
        for its own package and for that of its target. A file of no package ends the build: nothing unnamed is shipped."""
        found = set()
        for path in paths:
            path = str(pathlib.Path(path).parent.resolve() / pathlib.Path(path).name)
            for one in {path, str(pathlib.Path(path).resolve())}:
                owner = self.owner.get(without_usr(one))
                if owner:
                    found.add(owner)
                elif one == path:
                    raise SystemExit(f"stage.py: {path} belongs to no Debian package")
        return found

    def owner_of(self, path):
        return self.owner[without_usr(str(pathlib.Path(path).resolve()))]

    def fact(self, package):
        """dict: name, version, arch, source, source_version, homepage."""
        if package not in self.facts:
            keys = ["name", "version", "arch", "source", "source_version", "homepage"]
            text = subprocess.run(
                ["dpkg-query", "-W", "-f", "${Package}\n${Version}\n${Architecture}\n${source:Package}\n${source:Version}\n${Homepage}", package],
                check=True, stdout=subprocess.PIPE, text=True).stdout
            self.facts[package] = dict(zip(keys, text.split("\n")))
        return self.facts[package]


def copyright_file(package):
    return pathlib.Path("/usr/share/doc", package.partition(":")[0], "copyright")


def place_licences(root, packages):
    """The copyright file of every package whose code is shipped, and the common licences that these refer to. Packages of
    one source share theirs: the second is a link to the first."""
    named, first = set(), {}
    for package in sorted(packages):
        source = copyright_file(package)
        if not source.exists():
            raise SystemExit(f"stage.py: {package} has no copyright file: {source}")
        target = root / source.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        content = source.read_bytes()
        if content in first:
            target.symlink_to(f"../{first[content]}/copyright")
            continue
        first[content] = target.parent.name
        target.write_bytes(content)
        target.chmod(0o644)
        named |= set(re.findall(r"/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])", target.read_text(errors="replace")))
    for name in sorted(named):
        source, target = COMMON_LICENCES / name, root / "usr/share/common-licenses" / name
        if not source.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.resolve(), target)
        target.chmod(0o644)


def place_list(root, packages):
    """var/lib/dpkg/status.d/NAME, which vulnerability scanners read where there is no package manager."""
    for package in sorted(packages):
        text = subprocess.run(["dpkg-query", "--status", package], check=True, stdout=subprocess.PIPE, text=True).stdout
        kept = [line for line in text.splitlines()
                if re.match(r"(Package|Status|Priority|Section|Maintainer|Architecture|Multi-Arch|Source|Version|Homepage):", line)]
        target = root / "var/lib/dpkg/status.d" / package.partition(":")[0]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(kept) + "\n")
