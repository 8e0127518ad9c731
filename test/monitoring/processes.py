"""Processes of a test: started with a log of their own, awaited, ended in reverse order."""
import os
import signal
import socket
import subprocess
import time

DUE = 60  # seconds; for anything to happen on a loaded machine


class GaveUp(Exception):
    """What was awaited did not happen; the text says what."""


def wait_until(what, condition, due=DUE):
    """The first true value of condition(), asked every 100 ms. Raises GaveUp."""
    end = time.monotonic() + due
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise GaveUp(f"{what}: not within {due} s")
        time.sleep(0.1)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Processes:
    """A context: at its end every process started here is gone."""

    def __init__(self, directory):
        self.directory = directory
        self._running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self._running):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def start(self, name, command, **how):
        """Runs on, with standard error (and output, unless `how` says otherwise) in <directory>/<name>.log."""
        log = open(os.path.join(self.directory, name + ".log"), "wb")
        how.setdefault("stdin", subprocess.DEVNULL)
        how.setdefault("stdout", log)
        process = subprocess.Popen(command, stderr=log, **how)
        log.close()
        self._running.append(process)
        return process

    def log(self, name):
        with open(os.path.join(self.directory, name + ".log"), encoding="utf-8", errors="replace") as file:
            return file.read()
