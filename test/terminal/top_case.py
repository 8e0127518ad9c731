"""What the tests of neuron-top in a terminal share: a simulated machine per test, the program, and running the tests."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

from virtual_terminal import Program

BIN = ""
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
UP, DOWN, ENTER, ESCAPE, CTRL_C, CTRL_S, CTRL_Z = "\x1bOA", "\x1bOB", "\r", "\x1b", "\x03", "\x13", "\x1a"
PLAIN_DOWN = "\x1b[B"  # of a terminal that does not know the keypad mode


class Case:
    """One test's machine and programs, gone at its end."""

    def __init__(self):
        memory = "/dev/shm"
        self.directory = tempfile.mkdtemp(prefix="neuron-top-", dir=memory if os.access(memory, os.W_OK) else None)
        self.programs = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.programs:
            program.close()
        shutil.rmtree(self.directory)

    def sim(self, *arguments):
        subprocess.run([os.path.join(BIN, "neuron-sim"), *arguments], check=True, stdout=subprocess.DEVNULL)

    def host(self, instance_type="trn1.32xlarge", *options):
        root = os.path.join(self.directory, "host")
        self.sim("node", root, "--instance-type", instance_type, *options)
        return root

    def top(self, root, *options, rows=24, columns=80, **environment):
        command = [os.path.join(BIN, "neuron-top"), "--root", root, *options]
        program = Program(command, rows, columns, **environment)
        self.programs.append(program)
        return program


def run(*arguments, **environment):
    variables = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", **environment}
    return subprocess.run([os.path.join(BIN, "neuron-top"), *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          env=variables, timeout=60, check=False)


def golden_form(text):
    text = re.sub(r"i-[0-9a-f]{17}", "i-0123456789abcdef0", text)
    return re.sub(r"neuron-top \d+\.\d+\.\d+", "neuron-top X.Y.Z", text)


def expect_golden(name, program):
    """The screen becomes that text: a picture may arrive in pieces."""
    path = os.path.join(GOLDEN, name)
    if os.environ.get("UPDATE_GOLDEN"):
        program.wait_quiet()
        os.makedirs(GOLDEN, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(golden_form(program.screen.text()))
        return
    with open(path, encoding="utf-8") as file:
        expected = file.read()
    program.wait_for(f"what is in {path}", lambda screen: golden_form(screen) == expected)


def started(case, *options, **arguments):
    program = case.top(case.host(), *options, **arguments)
    program.wait_text("NeuronCore v2 Utilization (n/a: captured machine, values are constant)")
    return program


def run_tests(tests_of):
    """Those of a module's globals that are tests, or those of them that the command line names."""
    global BIN
    BIN = sys.argv[1]
    os.environ.pop("NEURON_TOP_ROOT", None)
    tests = [(name, test) for name, test in tests_of.items() if name.startswith("test_")]
    wanted = sys.argv[2:]
    failed = 0
    for name, test in tests:
        if wanted and name not in wanted:
            continue
        try:
            with Case() as case:
                test(case)
            print(f"ok      {name}", flush=True)
        except Exception:  # one failure does not hide the others
            failed += 1
            print(f"FAILED  {name}\n{traceback.format_exc()}", flush=True)
    return 1 if failed else 0

