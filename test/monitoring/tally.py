"""Counting of checks, with one line for each that is not passed."""


class Tally:
    """Mutable; one thread."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, what, ok, why=""):
        """Counts one check; `why` is printed when it failed. Returns whether it passed."""
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {what}: {why}" if why else f"FAILED: {what}", flush=True)
        return bool(ok)

    def skip(self, what, why):
        self.skipped += 1
        print(f"SKIPPED: {what}: {why}", flush=True)

    def finish(self):
        """Prints the counts that test/run.sh adds up; returns the exit status."""
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return 1 if self.failed else 0
