#!/bin/sh
# Every C++ file of the tree is as .clang-format has it.   usage: format_test.sh CLANG_FORMAT SOURCE_ROOT
set -eu
cd "$2"
if [ -d .git ] && command -v git > /dev/null; then files=$(git ls-files '*.h' '*.cpp'); else files=$(find agent plugin tools test -name '*.h' -o -name '*.cpp'); fi
# shellcheck disable=SC2086  # one word per file, none has a space
exec "$1" --dry-run -Werror $files
