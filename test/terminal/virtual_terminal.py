"""A terminal without a window: runs a program on a pty and keeps the screen that a person would see.

Knows the control sequences that curses sends for TERM=screen and xterm, and fails on any other, so that a wrong picture
never passes for a right one.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

CSI = re.compile(rb"\x1b\[([?>]?)([0-9;]*)([@A-Za-z`])")
OTHER = re.compile(rb"\x1b([()][0AB]|[=>78McH]|k[^\x1b]*\x1b\\|\][^\x07]*\x07)")
PATIENCE = 60  # seconds; a condition that is met earlier ends the wait at once


class Screen:
    """Rows of characters, changed by what a program writes."""

    def __init__(self, rows, columns):
        self.pending = b""
        self.alternate = False
        self.cursor_hidden = False
        self.resize(rows, columns)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.clear()

    def clear(self):
        self.cells = [[" "] * self.columns for _ in range(self.rows)]
        self.row = self.column = 0
        self.top, self.bottom = 0, self.rows - 1  # of the region that scrolls
        self.last = " "

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells).rstrip("\n") + "\n"

    def feed(self, data):
        data = self.pending + data
        at = 0
        while at < len(data):
            byte = data[at:at + 1]
            if byte == b"\x1b":
                match = CSI.match(data, at) or OTHER.match(data, at)
                if not match:
                    if len(data) - at < 32:
                        break  # not all of it is here yet
                    raise AssertionError(f"unknown control sequence {data[at:at + 16]!r}")
                if match.re is CSI:
                    self.control(match.group(1), match.group(2), match.group(3))
                elif match.group() == b"\x1bM":
                    self.up()
                at = match.end()
            elif byte < b" ":
                self.simple(byte)
                at += 1
            else:
                length = 1 if byte < b"\xc0" else 2 if byte < b"\xe0" else 3 if byte < b"\xf0" else 4
                if at + length > len(data):
                    break
                self.put(data[at:at + length].decode("utf-8"))
                at += length
        self.pending = data[at:]

    def put(self, character):
        if self.column >= self.columns:
            self.column = 0
            self.down()
        self.cells[self.row][self.column] = self.last = character
        self.column += 1

    def simple(self, byte):
        if byte == b"\r":
            self.column = 0
        elif byte == b"\n":
            self.down()
        elif byte == b"\b":
            self.column = max(min(self.column, self.columns) - 1, 0)
        elif byte == b"\t":
            self.column = min((self.column // 8 + 1) * 8, self.columns - 1)

    def scroll(self, top, lines):
        """Rows from `top` to the end of the region: up by so many lines, down when negative."""
        rows = self.cells[top:self.bottom + 1]
        count = min(abs(lines), len(rows))
        blank = [[" "] * self.columns for _ in range(count)]
        rows = rows[count:] + blank if lines > 0 else blank + rows[:len(rows) - count]
        self.cells[top:self.bottom + 1] = rows

    def down(self):
        if self.row == self.bottom:
            self.scroll(self.top, 1)
        else:
            self.row = min(self.row + 1, self.rows - 1)

    def up(self):
        if self.row == self.top:
            self.scroll(self.top, -1)
        else:
            self.row = max(self.row - 1, 0)

    def erase(self, row, begin, end):
        for column in range(begin, end):
            self.cells[row][column] = " "

    def control(self, private, arguments, kind):
        numbers = [int(n) if n else 0 for n in arguments.split(b";")] if arguments else []
        first = numbers[0] if numbers else 0
        count = first or 1
        kind = kind.decode()
        self.column = min(self.column, self.columns - 1) if kind not in "mhl" else self.column
        if private:
            if 1049 in numbers:
                self.alternate = kind == "h"
                if kind == "h":
                    self.clear()
            if 25 in numbers:
                self.cursor_hidden = kind == "l"
        elif kind in "Hf":
            self.row = min((numbers[0] if numbers else 1) or 1, self.rows) - 1
            self.column = min(numbers[1] if len(numbers) > 1 and numbers[1] else 1, self.columns) - 1
        elif kind == "A":
            self.row = max(self.row - count, 0)
        elif kind == "B":
            self.row = min(self.row + count, self.rows - 1)
        elif kind == "C":
            self.column = min(self.column + count, self.columns - 1)
        elif kind == "D":
            self.column = max(self.column - count, 0)
        elif kind in "G`":
            self.column = min(count, self.columns) - 1
        elif kind == "d":
            self.row = min(count, self.rows) - 1
        elif kind == "J":
            for row in range(self.row + 1 if first == 0 else 0, self.rows if first != 1 else self.row):
                self.erase(row, 0, self.columns)
            if first == 0:
                self.erase(self.row, self.column, self.columns)
        elif kind == "K":
            self.erase(self.row, 0 if first else self.column, self.column + 1 if first == 1 else self.columns)
        elif kind == "X":
            self.erase(self.row, self.column, min(self.column + count, self.columns))
        elif kind == "P":
            row = self.cells[self.row]
            self.cells[self.row] = row[:self.column] + row[self.column + count:] + [" "] * min(count, self.columns - self.column)
        elif kind == "@":
            row = self.cells[self.row]
            self.cells[self.row] = (row[:self.column] + [" "] * count + row[self.column:])[:self.columns]
        elif kind == "b":
            for _ in range(count):
                self.put(self.last)
        elif kind in "LM":
            self.scroll(self.row, -count if kind == "L" else count)
        elif kind in "ST":
            self.scroll(self.top, count if kind == "S" else -count)
        elif kind == "r":
            self.top = (numbers[0] if numbers else 1) - 1
            self.bottom = (numbers[1] if len(numbers) > 1 else self.rows) - 1
            self.row = self.column = 0
        elif kind not in "mhlt":
            raise AssertionError(f"unknown control sequence CSI {arguments!r} {kind}")


class Program:
    """A program on a pty of its own."""

    def __init__(self, command, rows=24, columns=80, **environment):
        self.screen = Screen(rows, columns)
        self.output = b""
        self.status = None
        self.master, self.slave = pty.openpty()
        self.set_size(rows, columns)
        self.mode_before = termios.tcgetattr(self.slave)
        variables = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environment}
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(self.slave, fd)
            os.closerange(3, 64)
            os.execvpe(command[0], command, variables)

    def set_size(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        """As a window does; the program is told by the kernel."""
        self.read()
        self.screen.resize(rows, columns)
        self.set_size(rows, columns)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def kill(self, number):
        os.kill(self.pid, number)

    def read(self, seconds=0.0):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return
        try:
            data = os.read(self.master, 65536)
        except OSError:
            data = b""
        self.output += data
        self.screen.feed(data)

    def wait_for(self, what, condition):
        """Until the condition holds for the screen's text."""
        until = time.monotonic() + PATIENCE
        while not condition(self.screen.text()):
            assert time.monotonic() < until, f"never saw {what}; the screen:\n{self.screen.text()}"
            assert self.poll() is None, f"ended with {self.status} before {what}; the screen:\n{self.screen.text()}"
            self.read(0.1)

    def wait_quiet(self):
        """Until nothing has changed for longer than the program's interval."""
        quiet_since, seen = time.monotonic(), len(self.output)
        while time.monotonic() < quiet_since + 2.5:
            self.read(0.1)
            if len(self.output) != seen:
                quiet_since, seen = time.monotonic(), len(self.output)

    def wait_text(self, *texts):
        self.wait_for(f"{texts!r}", lambda screen: all(text in screen for text in texts))

    def wait_no_text(self, text):
        self.wait_for(f"the end of {text!r}", lambda screen: text not in screen)

    def poll(self, options=os.WNOHANG):
        if self.status is None:
            pid, status = os.waitpid(self.pid, options)
            if pid != 0:
                self.status = status
        return self.status

    def wait_end(self):
        until = time.monotonic() + PATIENCE
        while self.poll() is None:
            assert time.monotonic() < until, "the program does not end"
            self.read(0.1)
        self.read()
        return self.status

    def wait_stopped(self):
        until = time.monotonic() + PATIENCE
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid != 0:
                assert os.WIFSTOPPED(status), f"ended with {status}"
                break
            assert time.monotonic() < until, "the program does not stop"
            self.read(0.1)
        self.read()

    def assert_restored(self):
        """Main screen, visible cursor, and the line mode as it was."""
        self.read()
        assert not self.screen.alternate, "the alternate screen is still there"
        assert not self.screen.cursor_hidden, "the cursor is still hidden"
        mode = termios.tcgetattr(self.slave)
        for name, field in (("input", 0), ("output", 1), ("local", 3)):
            assert mode[field] == self.mode_before[field], f"{name} mode {mode[field]:o}, was {self.mode_before[field]:o}"

    def close(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            os.kill(self.pid, signal.SIGCONT)
            os.waitpid(self.pid, 0)
        os.close(self.master)
        os.close(self.slave)
