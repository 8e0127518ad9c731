#!/usr/bin/env python3
"""The real neuron-top in a real terminal: screens, keys, resizing; and what it prints without one.

usage: neuron_top_test.py BIN_DIR [TEST...]     UPDATE_GOLDEN=1 rewrites golden/
"""
import os
import re
import subprocess
import sys

import top_case
from top_case import DOWN, ENTER, ESCAPE, PLAIN_DOWN, UP, expect_golden, run, run_tests, started

# --- tests: each gets a Case


def test_screen_trn1(case):
    program = case.top(case.host("trn1.32xlarge"), rows=40, columns=120)
    program.wait_text("(n/a: captured machine, values are constant)", "ND15", "q quit")
    expect_golden("trn1.32xlarge.txt", program)


def test_screen_trn2(case):
    program = case.top(case.host("trn2.48xlarge"))
    program.wait_text("(n/a: captured machine, values are constant)", "ND15", "q quit")
    expect_golden("trn2.48xlarge.80x24.txt", program)


def test_screen_broken(case):
    root = case.host("trn2.48xlarge")
    case.sim("set", root, "neuron3", "sram_ecc_uncorrected=2")
    program = case.top(root, rows=40, columns=120)
    program.wait_text("(n/a: captured machine, values are constant)", "ND3!")
    program.press("c")
    program.wait_for("the panel with values", lambda screen: "Health, ECC" in screen)
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
    program.wait_text("Teraflops (n/a)")
    program.press("f/nd7")
    program.wait_text("Filter: nd7_")
    program.press(ENTER)
    program.wait_text("filter nd7", "Memory Usage Summary (1 of 16 devices)")
    program.press(ESCAPE)
    program.wait_no_text("filter nd7")
    program.press("ss")
    program.wait_text("by memory")
    program.press("?")
    program.wait_text("this help; any key closes it, q quits")
    program.press(UP)
    program.wait_no_text("this help; any key closes it, q quits")
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
    program.wait_for("bars", lambda screen: "[   n/a]" in screen and screen.count("\n") == 45)
    program.resize(20, 70)
    program.wait_text("neuron-top needs 80 x 24", "this is 70 x 20")
    program.resize(24, 80)
    program.wait_text("ND15", "q quit")
    program.press("q")
    assert program.wait_end() == 0
    program.assert_restored()


def test_columns_of_the_environment_are_not_believed(case):
    program = case.top(case.host(), COLUMNS="200", LINES="60")
    program.wait_for("a picture of 80 x 24", lambda screen: screen.splitlines()[-1].startswith("q quit")
                     and "neuron-top" in screen.splitlines()[0] and "ND15" in screen)


def test_ascii_and_no_color(case):
    program = case.top(case.host(), LC_ALL="C", NO_COLOR="1")
    program.wait_text("NeuronCore v2 Utilization (n/a: captured machine, values are constant)", "ND15")
    assert all(byte < 128 for byte in program.output), "only ASCII in a locale without UTF-8"
    assert not re.search(rb"\x1b\[[0-9;]*[34][0-9][0-9;]*m", program.output), "colour in spite of NO_COLOR"


def test_sixteen_colours(case):
    program = case.top(case.host(), TERM="xterm")
    program.wait_text("NeuronCore v2 Utilization (n/a: captured machine, values are constant)", "ND15")
    assert b"38;5;" not in program.output and re.search(rb"\x1b\[[0-9;]*4[0-9]m", program.output)


def test_unknown_terminal_type(case):
    program = case.top(case.host(), TERM="no-such-terminal")
    assert os.WEXITSTATUS(program.wait_end()) == 1
    assert b"TERM" in program.output and b"--once" in program.output, program.output


def test_terminal_without_a_movable_cursor(case):
    program = case.top(case.host(), TERM="dumb")
    assert os.WEXITSTATUS(program.wait_end()) == 1
    assert b"TERM" in program.output and b"--once" in program.output, program.output


def test_once_in_a_pipe(case):
    result = run("--root", case.host(), "--once", "--interval", "200ms")
    text = result.stdout.decode()
    assert result.returncode == 0 and not result.stderr, result
    assert "\x1b" not in text and "(n/a: captured machine, values are constant)" in text and "EFA Interfaces" in text
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


def test_a_slow_first_look_leaves_the_interval_for_rates(case):
    import json
    host = case.host("trn2.48xlarge")
    rules = os.path.join(case.directory, "rules")
    with open(rules, "w", encoding="utf-8") as file:
        file.write("slow */serial_number 20\n")  # which the first of two samples reads, for each device
    result = run("--root", host, "--json", "--once", "--interval", "200ms", FAULTY_IO=rules,
                 LD_PRELOAD=os.path.join(top_case.BIN, "..", "test", "faulty_io.so"))
    assert result.returncode == 0 and not result.stderr, result
    assert json.loads(result.stdout)["neuron_top"]["period"] >= 0.2, result.stdout


def test_json_once_is_one_object(case):
    result = run("--root", case.host("inf2.xlarge"), "--json", "--once", "--interval", "200ms")
    assert result.returncode == 0 and result.stdout.count(b"\n") == 1, result


def test_wrong_usage(case):
    for arguments in (["--nonsense"], ["--interval", "soon"], ["--count", "0"], ["--root", case.directory + "/none"]):
        result = run(*arguments)
        assert result.returncode == 1 and not result.stdout, (arguments, result)
        assert result.stderr.decode().startswith("neuron-top: ") and result.stderr.count(b"\n") == 1, result.stderr


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
