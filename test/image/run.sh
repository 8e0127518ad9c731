#!/bin/bash
# Builds the images with tools/image.sh into build/image and checks them, and the packages that CPack makes.
#   run.sh [--deep] [--no-build]
#   --deep       also builds a second time from nothing and compares, and cross-builds for arm64 (about half an hour)
#   --no-build   checks what is in build/image
# The base image is made from Debian packages with mmdebstrap, once, and everything is kept in build/image: no registry is
# asked, and the machine's own images are not touched. Needs root or sudo, buildah and mmdebstrap
# (tools/install-deps.sh --test), with --deep also qemu-user-static. Where a part is missing the suite says SKIPPED and
# succeeds; with CI=true that fails. The last line is "N passed, N failed, N skipped".
set -u
exec < /dev/null
here=$(dirname "$(readlink -f "$0")")
top=$(dirname "$(dirname "$here")")
out=$top/build/image
PATH=$PATH:/usr/sbin:/sbin
deep=no build=yes
for argument in "$@"; do
  case $argument in
    --deep) deep=yes ;;
    --no-build) build=no ;;
    -h | --help) sed -n '2,9s/^# //p' "$0"; exit 0 ;;
    *) echo "test/image/run.sh: unknown argument $argument (try --help)" >&2; exit 2 ;;
  esac
done

missing() {
  if [ "${CI:-}" = true ]; then
    echo "FAILED: images: $1"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
  fi
  echo "SKIPPED: images: $1"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}

broken() {
  echo "FAILED: images: $1"
  [ -z "${2:-}" ] || tail -n 60 "$2"
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
}

if [ "$(id -u)" != 0 ]; then
  sudo -n true 2> /dev/null || missing "needs root or sudo"
  exec sudo -n env "PATH=$PATH" "CI=${CI:-}" "$(readlink -f "$0")" "$@"
fi
for program in buildah mmdebstrap python3; do
  command -v $program > /dev/null || missing "$program is not installed (tools/install-deps.sh --test)"
done
unshare --mount true 2> /dev/null || missing "may not make mount namespaces here"
git config --global --get-all safe.directory 2> /dev/null | grep -qxF -e "$top" -e '*' ||
  export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$top # the tree may be another user's

mkdir -p "$out/tmp"
exec 9> "$out/lock"
flock 9 # one suite at a time: they share base, steps and results
export PYTHONDONTWRITEBYTECODE=1 TMPDIR=$out/tmp BUILDAH_ISOLATION=chroot CONTAINERS_STORAGE_CONF=$out/storage.conf

# use_storage DRIVER: overlay is quick, vfs works where this file system cannot carry overlays.
use_storage() {
  printf '[storage]\ndriver = "%s"\ngraphroot = "%s"\nrunroot = "%s"\n' "$1" "$out/storage" "$out/run" > "$CONTAINERS_STORAGE_CONF"
  buildah info > /dev/null 2>&1
}
# Steps of earlier commits pile up: from time to time all is made anew.
if [ -d "$out/storage" ] && [ "$(du -smx "$out/storage" | cut -f1)" -gt 12000 ]; then
  buildah rm -a > /dev/null 2>&1
  buildah rmi -a -f > /dev/null 2>&1
fi
use_storage overlay || use_storage vfs || broken "buildah does not work here: 'buildah info' fails"

# Objects of earlier images serve again. They lie in the cache of the user who builds, where there is one.
ccache=$out/ccache
[ -n "${SUDO_USER:-}" ] || ccache=$(ccache --get-config cache_dir 2> /dev/null || echo "$out/ccache")

# make_image DIRECTORY OPTION...
make_image() {
  local directory=$1 log=$out/tmp/build.log start=$SECONDS
  shift
  "$top/tools/image.sh" --engine buildah --output "$directory" "$@" > "$log" 2>&1 || broken "tools/image.sh $* failed" "$log"
  grep -E ' MB' "$log"
  echo "FIGURE image.sh $* took $((SECONDS - start)) s"
}

if [ "$build" = yes ]; then
  if ! buildah inspect --type image debian:12-slim > /dev/null 2>&1; then
    "$top/manifests/image/base.sh" --engine buildah > "$out/tmp/base.log" 2>&1 || broken "the base image could not be made" "$out/tmp/base.log"
  fi
  make_image "$out" --ccache "$ccache"
fi
if [ "$deep" = yes ]; then
  command -v qemu-aarch64-static > /dev/null || missing "qemu-aarch64-static is not installed (tools/install-deps.sh --deep)"
  rm -rf "$out/second" "$out/tmp/buildah-cache"*
  make_image "$out/second" --no-cache
  make_image "$out" --arch arm64
fi
# The image suite's checks, then the packages'.
passed=0 failed=0 skipped=0
for suite in image_test.py cpack_test.py; do
  log=$out/tmp/$suite.log
  DEEP=$deep python3 "$here/$suite" "$top" "$out" > "$log" 2>&1
  status=$?
  cat "$log"
  read -r p f s < <(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1 | tr -dc '0-9 \n')
  passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0})) skipped=$((skipped + ${s:-0}))
  [ "$status" -eq 0 ] || [ "${f:-0}" -gt 0 ] || failed=$((failed + 1))
  p="" f="" s=""
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
