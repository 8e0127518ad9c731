#!/bin/bash
# Runs ctest in a build directory and counts.   usage: test/ctest.sh BUILD_DIRECTORY LOG_DIRECTORY [CTEST_ARGUMENT...]
# A failed test is run a second time and named as FAILED AT LEAST ONCE. The last line is "N passed, N failed, N skipped"; the
# exit status is ctest's. ctest-output.log and ctest.xml (JUnit) are left in LOG_DIRECTORY.
set -u
build=$1 logs=$2
shift 2
mkdir -p "$logs" || exit 1
report=$(cd "$logs" && pwd)/ctest.xml
rm -f "$report"
# Half as many more as processors, since most of the long ones wait.
ctest --test-dir "$build" --output-on-failure --output-junit "$report" -j $(($(nproc) * 3 / 2)) --repeat until-pass:2 --progress \
  --no-tests=error "$@" > "$logs/ctest-output.log" 2>&1
status=$?
if [ "$status" -ne 0 ]; then tail -n 400 "$logs/ctest-output.log"; fi
# Hundreds of real processes on a small machine: what fails once and then passes is named, and is a bug to be found.
sed -n 's/^.*Test *#[0-9]*: \([^ ]*\) .*\*\*\*\(Failed\|Timeout\|Exception\).*$/FAILED AT LEAST ONCE: \1/p' "$logs/ctest-output.log" | sort -u
python3 - "$report" << 'PYTHON'
import os, sys, xml.etree.ElementTree as tree
cases = tree.parse(sys.argv[1]).getroot().findall("testcase") if os.path.exists(sys.argv[1]) else []
failed = [c.get("name") for c in cases if c.get("status") == "fail"]
skipped = [c.get("name") for c in cases if c.get("status") in ("notrun", "disabled")]
for name in failed: print("FAILED:", name)
for name in skipped: print("SKIPPED:", name)
print(f"{len(cases) - len(failed) - len(skipped)} passed, {len(failed)} failed, {len(skipped)} skipped")
PYTHON
exit "$status"
