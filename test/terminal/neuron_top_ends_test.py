#!/usr/bin/env python3
"""However neuron-top ends or is stopped, the terminal is given back; and nothing keeps it from ending.

usage: neuron_top_ends_test.py BIN_DIR [TEST...]
"""
import array
import fcntl
import itertools
import os
import signal
import subprocess
import sys
import termios
import time

import top_case
from top_case import CTRL_C, CTRL_S, CTRL_Z, Case, run_tests, started
from virtual_terminal import PATIENCE

# --- tests: each gets a Case


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


def test_every_other_signal_that_would_end_it(case):
    for number in (signal.SIGQUIT, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2):
        with Case() as own:
            assert ends_by(own, number) == 0, number


def test_sigterm_while_the_output_is_stopped(case):
    program = started(case)
    program.press(CTRL_S)
    program.kill(signal.SIGTERM)
    assert program.wait_end() == 0
    program.assert_restored()


def test_sigterm_while_a_picture_waits_for_a_terminal_that_takes_no_more(case):
    program = started(case, rows=100, columns=300)

    def writing():
        with open(f"/proc/{program.pid}/syscall", encoding="utf-8") as file:
            return file.read().split()[1:2] == ["0x1"]  # blocked in a call of stdout

    until = time.monotonic() + PATIENCE
    for view in itertools.cycle("ce"):  # the pictures of both are not read
        if writing():
            break
        assert time.monotonic() < until and program.poll() is None
        program.press(view)
        time.sleep(0.01)
    program.kill(signal.SIGTERM)
    while program.poll() is None:
        assert time.monotonic() < until, "the program does not end"
        time.sleep(0.01)
    assert program.status == 0


def test_stopped_by_force_and_continued_by_a_shell(case):
    program = started(case)
    program.kill(signal.SIGSTOP)
    program.wait_stopped()
    termios.tcsetattr(program.slave, termios.TCSANOW, program.mode_before)  # as a shell does
    program.kill(signal.SIGCONT)
    program.wait_for("raw mode again", lambda _: not termios.tcgetattr(program.slave)[3] & termios.ICANON)
    program.press("c")
    program.wait_text("Device Health, ECC and Power")


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


def test_json_ends_with_its_reader_and_with_sigterm(case):
    root = case.host("inf2.xlarge")
    command = [os.path.join(top_case.BIN, "neuron-top"), "--root", root, "--json", "--interval", "200ms"]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout.readline().startswith(b"{")
    reader.stdout.close()
    assert reader.wait(PATIENCE) == 0 and not reader.stderr.read()
    reader.stderr.close()
    other = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert other.stdout.readline().startswith(b"{")
    other.send_signal(signal.SIGTERM)
    assert other.wait(PATIENCE) == 0
    other.stdout.close()


def test_json_goes_on_after_a_resize_and_a_stop(case):
    command = [os.path.join(top_case.BIN, "neuron-top"), "--root", case.host("inf2.xlarge"), "--json", "--interval", "200ms"]
    program = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert program.stdout.readline().startswith(b"{")
    program.send_signal(signal.SIGWINCH)
    program.send_signal(signal.SIGTSTP)
    assert os.WIFSTOPPED(os.waitpid(program.pid, os.WUNTRACED)[1])
    program.send_signal(signal.SIGCONT)
    for _ in range(20):  # more than was on its way
        assert program.stdout.readline().startswith(b"{")
    program.send_signal(signal.SIGTERM)
    assert program.wait(PATIENCE) == 0
    program.stdout.close()


def test_sigterm_while_nobody_reads_json(case):
    command = [os.path.join(top_case.BIN, "neuron-top"), "--root", case.host("trn2.48xlarge"), "--json", "--interval", "200ms"]
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    program = subprocess.Popen(command, stdout=writing)
    os.close(writing)

    def waiting():
        held = array.array("i", [0])
        fcntl.ioctl(reading, termios.FIONREAD, held)
        return held[0] >= 4096  # of a longer line

    until = time.monotonic() + PATIENCE
    while not waiting():
        assert time.monotonic() < until and program.poll() is None
        time.sleep(0.01)
    program.send_signal(signal.SIGTERM)
    assert program.wait(PATIENCE) == 0
    os.close(reading)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
