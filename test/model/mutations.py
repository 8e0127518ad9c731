#!/usr/bin/env python3
"""Does the model check notice when the gate or the ledger is wrong? Each mutation is made in a copy of the sources, which
is built; then model_check must find a broken rule.

usage: mutations.py SOURCE_ROOT WORK_DIRECTORY [--runs N]     exit status 1 when one was not noticed; the last line counts
"""
import os
import shutil
import subprocess
import sys

GATE = "plugin/device/admission_gate.cpp"
LEDGER = "plugin/device/ledger.cpp"
ALLOCATIONS = "plugin/device/allocations.cpp"

# What goes wrong, where, and the text that is replaced: it must be there exactly once.
MUTATIONS = [
    ("an answer does not wait for lists that are on their way", GATE,
     "if (!lists_first && sending_ == 0 && (on_the_way_ == 0 || never_written_)) {",
     "if (!lists_first && (sending_ == 0 || never_written_)) {"),
    ("lists go out between two answers of a container", GATE,
     "return answering_ > 0 || answers_wait() || open_version_ != 0;", "return answering_ > 0 || answers_wait();"),
    ("a write counts for two lists", GATE,
     "on_the_way_ = std::max(on_the_way_ - 1, 0);", "on_the_way_ = std::max(on_the_way_ - 2, 0);"),
    ("an answer that needs a fresh checkpoint does not wait for the list that is sent for it", GATE,
     "const bool published = one.kind == Kind::answer || one.list_published;", "const bool published = true;"),
    # Each of the three reasons is enough on most days: test/unit/plugin/ledger_test.cpp tests them one by one.
    ("List ends what it was too early to show", LEDGER,
     "const bool too_early = old.since >= shown.asked_at || in_transit || unwritten || undecided_yet;",
     "const bool too_early = old.since > shown.asked_at && in_transit && unwritten && undecided_yet;"),
    # In confirm() alone it is too rare here: six tests of test/unit/plugin notice that.
    ("the time of the checkpoint's file does not count", LEDGER,
     "return written_at <= than.since + Ledger::kMaxWriteDelay;", "return written_at == SteadyTime{} && than.since == SteadyTime{};"),
    ("what the checkpoint shows is forgotten", LEDGER,
     "return bounded(std::move(current));", "current.clear();\n  return bounded(std::move(current));"),
    ("another container's cores are no obstacle", LEDGER,
     "if (over[i] || holding.resource == resource ||", "if (over[i] || holding.holder.empty() || holding.resource == resource ||"),
    ("cores held through another name are offered", LEDGER,
     "if (holding.resource != resource) blocked.insert(holding.cores.begin(), holding.cores.end());",
     "if (holding.resource != resource && holding.holder.empty()) blocked.insert(holding.cores.begin(), holding.cores.end());"),
    ("one container gets other cores under its second name", ALLOCATIONS,
     "first != nullptr && first->cores != asked.cores) {", "first != nullptr && first->cores.size() > 64) {"),
    ("a holding that the fresh checkpoint lacks goes on", LEDGER,
     "return !held.contains({holding.resource, unit});", "return unit < 0 && !held.contains({holding.resource, unit});"),
]


# Those of ctest; then late writes and restarts far more often than they are.
ODDS = [[], ["--late", "40", "--restarts", "4"]]


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)


def main():
    if len(sys.argv) not in (3, 5):
        print(__doc__, file=sys.stderr)
        return 2
    root, work = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    runs = sys.argv[4] if len(sys.argv) == 5 else "500"
    source = os.path.join(work, "source")
    build = os.path.join(source, "build", "release")  # as everywhere, so that the compiler cache knows the objects
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(root, source, symlinks=True, ignore=shutil.ignore_patterns("build", ".git"))
    configured = run(["cmake", "--preset", "release"], cwd=source)
    if configured.returncode != 0:
        print(configured.stdout)
        return 1
    unnoticed = 0
    for what, path, old, new in MUTATIONS:
        path = os.path.join(source, path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if text.count(old) != 1:
            print(f"UNKNOWN: {what}: its text is {text.count(old)} times in {path}")
            unnoticed += 1
            continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))
        built = run(["cmake", "--build", build, "--target", "model_check"], cwd=source)
        checked, noticed = built, False
        for odds in ODDS if built.returncode == 0 else []:
            checked = run([os.path.join(build, "test/model_check"), "--runs", runs, "--events", "2000", *odds])
            noticed = checked.returncode == 1 and "broke a rule" in checked.stdout
            if noticed:
                break
        reason = checked.stdout.strip().splitlines()[-1] if checked.stdout.strip() else ""
        print(f"{'noticed' if noticed else 'NOT NOTICED'}: {what}: {reason[:150]}", flush=True)
        unnoticed += not noticed
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    print(f"{len(MUTATIONS) - unnoticed} passed, {unnoticed} failed")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
