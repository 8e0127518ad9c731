#!/bin/bash
# Installs the Debian 12 packages that building (and with --test, testing) needs. Says nothing when all are there.
# As root or through sudo; reads no input. Go is not among them: test/go.sh installs it where it is missing.
# usage: tools/install-deps.sh [--test]
set -eu

build_packages="g++ python3 cmake ninja-build ccache pkg-config scdoc
  libexpected-dev libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libcurl4-openssl-dev libhwloc-dev
  libarchive-dev zlib1g-dev libncurses-dev libfabric-dev
  libprotobuf-dev protobuf-compiler libgrpc++-dev protobuf-compiler-grpc
  libgtest-dev libgmock-dev libbenchmark-dev"
test_packages="python3-venv ca-certificates openssl hwloc-nox clang-format-14"

# For the real kubelet. Where Docker or another packager has brought them, Debian's packages would remove theirs.
PATH=$PATH:/usr/sbin:/sbin
has() { command -v "$1" > /dev/null; }
has containerd && has ctr || test_packages="$test_packages containerd"
has runc || test_packages="$test_packages runc"
# The image of the test's pods holds nothing but a static busybox, which takes the place of Debian's plain one.
{ [ -x /bin/busybox ] && ! ldd /bin/busybox > /dev/null 2>&1; } || test_packages="$test_packages busybox-static"

packages=$build_packages
case "${1:-}" in
  "") ;;
  --test) packages="$build_packages $test_packages" ;;
  *) echo "install-deps.sh: unknown argument $1 (usage: install-deps.sh [--test])" >&2; exit 2 ;;
esac

if ! command -v dpkg-query > /dev/null; then
  echo "install-deps.sh: this is no Debian system; install these or their like by hand:" $packages >&2
  exit 1
fi

missing=""
for package in $packages; do
  case "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null || true)" in
    installed) ;;
    *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo > /dev/null; then
    echo "install-deps.sh: needs root or sudo to install:$missing" >&2
    exit 1
  fi
  as_root="sudo"
fi

echo "==> Installing with apt:$missing"
$as_root apt-get update -qq < /dev/null || echo "install-deps.sh: apt-get update failed; trying with the lists there are" >&2
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing < /dev/null > /dev/null
