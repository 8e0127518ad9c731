"""What the checks of this folder share: running them with counts, root directories of images, programs inside them."""
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback


MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # for simulated hosts, which are thousands of small files


class Skip(Exception):
    """A check that cannot be made here; the text says what is missing."""


def run_all(checks):
    """Runs the functions, prints a line each and the counts, and returns the exit status."""
    passed, failed, skipped = 0, 0, 0
    for check in checks:
        try:
            check()
            passed += 1
            print("PASSED", check.__name__, flush=True)
        except Skip as reason:
            skipped += 1
            print("SKIPPED", check.__name__, reason, flush=True)
        except Exception as error:  # whatever went wrong fails this check and no other
            failed += 1
            print("FAILED", check.__name__, flush=True)
            traceback.print_exception(error, file=sys.stdout)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def output_of(words, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


class Image:
    """The files of one archive, unpacked for as long as this lives."""

    def __init__(self, top, archive):
        self.directory = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.directory.name, "root")
        output_of([sys.executable, str(top / "manifests/image/archive.py"), "unpack", str(archive), str(self.root)])

    def command(self, *words, work=None, emulator=()):
        """The words that run a program with this root, read-only, with proc and a dev as runtimes make it, and `work` (a directory) at /tmp."""
        script = """
            set -e
            root=$1 work=$2
            shift 2
            mount --bind "$root" "$root"
            mount -t proc proc "$root/proc"
            mount -t tmpfs tmpfs "$root/dev"
            mknod -m 666 "$root/dev/null" c 1 3
            mkdir "$root/dev/shm"
            [ -z "$work" ] || mount --bind "$work" "$root/tmp"
            mount -o remount,bind,ro "$root"
            exec env -i PATH=/usr/bin LANG=C.UTF-8 TERM=xterm "$(command -v chroot)" "$root" "$@"
        """
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", str(self.root), str(work or ""),
                *emulator, *words]

    def run(self, *words, work=None, timeout=60, emulator=()):
        return output_of(self.command(*words, work=work, emulator=emulator), timeout=timeout, stdin=subprocess.DEVNULL)

    def files(self):
        """Path below the root -> path, of all regular files."""
        found = {}
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = pathlib.Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    found[str(path.relative_to(self.root))] = path
        return found

    def elf_files(self):
        return {name: path for name, path in self.files().items() if path.open("rb").read(4) == b"\x7fELF"}


class Elf:
    def __init__(self, path):
        text = output_of(["readelf", "--wide", "--dynamic", "--program-headers", "--notes", "--sections", "--file-header", str(path)])
        lines = text.splitlines()
        self.needed = [line.split("[", 1)[1].rstrip("]") for line in lines if "(NEEDED)" in line]
        self.paths = [line for line in lines if "(RPATH)" in line or "(RUNPATH)" in line]
        self.interpreter = next((line.split(": ", 1)[1].strip().rstrip("]") for line in lines if "program interpreter:" in line), None)
        self.build_id = next((line.split("Build ID:")[1].strip() for line in lines if "Build ID:" in line), None)
        self.machine = next(line.split(":", 1)[1].strip() for line in lines if line.strip().startswith("Machine:"))
        self.has_symbols = " .symtab " in text
        self.has_debug = " .debug_info " in text
