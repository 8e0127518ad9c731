#!/usr/bin/env python3
"""The real neuron-top in a real terminal: screens, keys, resizing, and that the terminal is always given back.

usage: neuron_top_test.py BIN_DIR [TEST...]     UPDATE_GOLDEN=1 rewrites golden/
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

from virtual_terminal import Program

BIN = ""
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
UP, DOWN, ENTER, ESCAPE, CTRL_C, CTRL_Z = "\x1bOA", "\x1bOB", "\r", "\x1b", "\x03", "\x1a"
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
                          env=variables, timeout=30, check=False)


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
    program.wait_text("NeuronCore v2 Utilization (Avg: 0.00%)")
    return program


# --- tests: each gets a Case


def test_screen_trn1(case):
    program = case.top(case.host("trn1.32xlarge"), rows=40, columns=120)
    program.wait_text("(Avg: 0.00%)", "ND15", "q quit")
    expect_golden("trn1.32xlarge.txt", program)


def test_screen_trn2(case):
    program = case.top(case.host("trn2.48xlarge"))
    program.wait_text("(Avg: 0.00%)", "ND15", "q quit")
    expect_golden("trn2.48xlarge.80x24.txt", program)


def test_screen_broken(case):
    root = case.host("trn2.48xlarge")
    case.sim("set", root, "neuron3", "sram_ecc_uncorrected=2")
    program = case.top(root, rows=40, columns=120)
    program.wait_text("(Avg: 0.00%)", "ND3!")
    program.press("c")
    program.wait_for("the panel with values", lambda screen: "Health, ECC" in screen and "0.0%" in screen)
    expect_golden("broken.txt", program)


def test_screen_old_driver(case):
    program = case.top(case.host("trn1.32xlarge", "--driver", "2.27.4.0"), rows=30, columns=120)
    program.wait_text("n/a: driver 2.27.4.0 counts busy time only when a process ends")
    assert "0.00%" not in program.screen.text().replace("[ 0.00%, 0.00%]", "")


def test_keys(case):
    program = started(case)
    program.press("e")
    program.wait_text("EFA Interfaces", "rdmap16s25")
    program.press("c")
    program.wait_text("Device Health, ECC and Power")
    program.press("p")
    program.wait_text("Processes and Pods", "not asked for (--pods)")
    program.press("g")
    program.wait_text("History", "oldest to newest")
    program.press("m")
    program.wait_text("Memory Usage Details")
    program.press(DOWN + DOWN + UP + ENTER)
    program.wait_text("[-] ND 1", "[+] NC 0")
    program.press(PLAIN_DOWN + ENTER)
    program.wait_text("[-] NC 0", "Model Code")
    program.press("x")
    program.wait_text("[-] ND 0", "[-] NC 0", "Model Code")
    program.press("xf")
    program.wait_text("Teraflops (Sum: 0.00TF)")
    program.press("f/nd7")
    program.wait_text("Filter: nd7_")
    program.press(ENTER)
    program.wait_text("filter nd7", "Memory Usage Summary (1 of 16 devices)")
    program.press(ESCAPE)
    program.wait_no_text("filter nd7")
    program.press("ss")
    program.wait_text("by memory")
    program.press("?")
    program.wait_text("this help; any key closes it")
    program.press(UP)
    program.wait_no_text("this help; any key closes it")
    program.press("q")
    assert program.wait_end() == 0
    program.assert_restored()


def test_values_move_and_pause_holds_them(case):
    program = started(case, "--interval", "200ms")
    root = os.path.join(case.directory, "host")
    program.press(" ")
    program.wait_text("PAUSED")
    memory = os.path.join(root, "sys/class/neuron_device/neuron0/neuron_core0/stats/memory_usage/device_mem/total")
    with open(memory, "w", encoding="ascii") as file:
        file.write("5368709120\n")
    program.press("cm")  # pictures drawn after the change
    program.wait_text("Memory Usage Details")
    assert "5.0GB" not in program.screen.text()
    program.press(" ")
    program.wait_text("[+] ND 0          5.0GB")


def test_health_appears_by_itself(case):
    program = started(case, "--interval", "200ms")
    case.sim("set", os.path.join(case.directory, "host"), "neuron5", "sram_ecc_uncorrected=1")
    program.wait_text("ND5 is unhealthy", "ND5!")


def test_a_device_that_goes_stays_listed(case):
    program = started(case, "--interval", "200ms")
    case.sim("set", os.path.join(case.directory, "host"), "neuron4", "vanish")
    program.wait_text("ND4 is unhealthy", "ND4!")


def test_archive(case):
    root = case.host("inf2.xlarge")
    archive = os.path.join(case.directory, "host.tar.gz")
    subprocess.run(["tar", "-czf", archive, "-C", root, "."], check=True)
    result = run("--root", archive, "--no-wait")
    assert result.returncode == 0 and b"(inf2.xlarge)" in result.stdout, result


def test_resize(case):
    program = started(case)
    program.resize(45, 140)
    program.wait_for("bars", lambda screen: "[ 0.00%]" in screen and screen.count("\n") == 45)
    program.resize(20, 70)
    program.wait_text("neuron-top needs 80 x 24", "this is 70 x 20")
    program.resize(24, 80)
    program.wait_text("ND15", "q quit")
    program.press("q")
    assert program.wait_end() == 0
    program.assert_restored()


def ends_by(case, number):
    program = started(case)
    assert program.screen.alternate and program.screen.cursor_hidden
    program.kill(number)
    status = program.wait_end()
    program.assert_restored()
    return status


def test_sigterm(case):
    assert ends_by(case, signal.SIGTERM) == 0


def test_sighup(case):
    assert ends_by(case, signal.SIGHUP) == 0


def test_control_c(case):
    program = started(case)
    program.press(CTRL_C)
    assert program.wait_end() == 0
    program.assert_restored()


def test_crash(case):
    for number in (signal.SIGSEGV, signal.SIGABRT):
        with Case() as own:
            status = ends_by(own, number)
            assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == number, status


def test_stop_and_continue(case):
    program = started(case)
    program.press(CTRL_Z)
    program.wait_stopped()
    program.assert_restored()
    program.screen.clear()
    program.kill(signal.SIGCONT)
    program.wait_text("NeuronCore v2 Utilization", "ND15", "q quit")
    assert program.screen.alternate
    program.press("q")
    assert program.wait_end() == 0
    program.assert_restored()


def test_closed_terminal(case):
    program = started(case)
    os.close(program.slave)
    os.close(program.master)
    program.master, program.slave = os.open(os.devnull, os.O_RDWR), os.open(os.devnull, os.O_RDWR)
    program.wait_end()


def test_ascii_and_no_color(case):
    program = case.top(case.host(), LC_ALL="C", NO_COLOR="1")
    program.wait_text("NeuronCore v2 Utilization (Avg: 0.00%)", "ND15")
    assert all(byte < 128 for byte in program.output), "only ASCII in a locale without UTF-8"
    assert not re.search(rb"\x1b\[[0-9;]*[34][0-9][0-9;]*m", program.output), "colour in spite of NO_COLOR"


def test_sixteen_colours(case):
    program = case.top(case.host(), TERM="xterm")
    program.wait_text("NeuronCore v2 Utilization (Avg: 0.00%)", "ND15")
    assert b"38;5;" not in program.output and re.search(rb"\x1b\[[0-9;]*4[0-9]m", program.output)


def test_unknown_terminal_type(case):
    program = case.top(case.host(), TERM="no-such-terminal")
    assert os.WEXITSTATUS(program.wait_end()) == 1
    assert b"TERM" in program.output and b"--once" in program.output, program.output


def test_once_in_a_pipe(case):
    result = run("--root", case.host(), "--once", "--interval", "200ms")
    text = result.stdout.decode()
    assert result.returncode == 0 and not result.stderr, result
    assert "\x1b" not in text and "(Avg: 0.00%)" in text and "EFA Interfaces" in text
    assert max(len(line) for line in text.splitlines()) <= 120
    narrow = run("--root", os.path.join(case.directory, "host"), "--no-wait", COLUMNS="80").stdout.decode()
    assert max(len(line) for line in narrow.splitlines()) <= 80
    assert "n/a: rates need a second sample" in narrow


def test_json(case):
    import json
    result = run("--root", case.host("trn2.48xlarge"), "--json", "--count", "3", "--interval", "200ms")
    assert result.returncode == 0 and not result.stderr, result
    reports = [json.loads(line) for line in result.stdout.decode().splitlines()]
    assert len(reports) == 3
    for report in reports:
        assert report["neuron_top"]["schema"] == "neuron-top/1"
        assert len(report["neuron_top"]["devices"]) == 16 and len(report["neuron_top"]["efas"]) == 16
        assert report["neuron_top"]["period"] > 0
        assert report["neuron_hardware_info"]["neuron_device_count"] == 16
        assert report["neuron_hardware_info"]["neuroncore_version"] == "v3d"
        counters = report["system_data"]["neuron_hw_counters"]["neuron_devices"]
        assert [one["neuron_device_index"] for one in counters] == list(range(16))


def test_json_ends_with_its_reader_and_with_sigterm(case):
    root = case.host("inf2.xlarge")
    command = [os.path.join(BIN, "neuron-top"), "--root", root, "--json", "--interval", "200ms"]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout.readline().startswith(b"{")
    reader.stdout.close()
    assert reader.wait(20) == 0 and not reader.stderr.read()
    reader.stderr.close()
    other = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert other.stdout.readline().startswith(b"{")
    other.send_signal(signal.SIGTERM)
    assert other.wait(20) == 0
    other.stdout.close()


def test_wrong_usage(case):
    for arguments in (["--nonsense"], ["--interval", "soon"], ["--count", "0"], ["--root", case.directory + "/none"]):
        result = run(*arguments)
        assert result.returncode == 1 and not result.stdout, (arguments, result)
        assert result.stderr.decode().startswith("neuron-top: ") and result.stderr.count(b"\n") == 1, result.stderr


def main():
    global BIN
    BIN = sys.argv[1]
    os.environ.pop("NEURON_TOP_ROOT", None)
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
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


if __name__ == "__main__":
    sys.exit(main())
