#!/bin/bash
# Installs the Debian 12 packages that building needs. Says nothing when all are there.
# As root or through sudo; reads no input. Go is not among them: test/go.sh installs it where it is missing.
# usage: tools/install-deps.sh [--test | --deep | --programs [--arch ARCH]]
#   --test       also what test/run.sh needs
#   --deep       also what the long tests need
#   --programs   only what building the programs needs, without man pages and tests (the images' build stage)
#   --arch ARCH  build for this architecture (amd64, arm64): the cross compiler and that architecture's libraries
set -eu

usage="usage: install-deps.sh [--test | --deep | --programs [--arch ARCH]]"
tool_packages="binutils python3 cmake ninja-build ccache pkg-config protobuf-compiler protobuf-compiler-grpc"
header_packages="libexpected-dev libcli11-dev nlohmann-json3-dev prometheus-cpp-dev"
library_packages="libfmt-dev libspdlog-dev libhwloc-dev libarchive-dev zlib1g-dev libncurses-dev libfabric-dev
  libprotobuf-dev libgrpc++-dev libcurl4-openssl-dev libevent-dev libyaml-cpp-dev"
unit_packages="scdoc libgtest-dev libgmock-dev libbenchmark-dev"
test_packages="python3-venv python3-yaml ca-certificates openssl hwloc-nox clang-format-14 mmdebstrap buildah dpkg-dev prometheus"

# For the real kubelet. Where Docker or another packager has brought them, Debian's packages would remove theirs.
PATH=$PATH:/usr/sbin:/sbin
has() { command -v "$1" > /dev/null; }
has containerd && has ctr || test_packages="$test_packages containerd"
has runc || test_packages="$test_packages runc"
# For the cluster: the network of its nodes and pods.
has ip || test_packages="$test_packages iproute2"
[ -x /usr/lib/cni/bridge ] || test_packages="$test_packages containernetworking-plugins"
# The image of the test's pods holds nothing but a static busybox, which takes the place of Debian's plain one.
{ [ -x /bin/busybox ] && ! ldd /bin/busybox > /dev/null 2>&1; } || test_packages="$test_packages busybox-static"

programs="g++ $tool_packages $header_packages $library_packages"
packages="$programs $unit_packages"
foreign=""
case "${1:-}" in
  "") ;;
  --test) packages="$packages $test_packages" ;;
  --deep) packages="$packages $test_packages qemu-user-static clang-14 llvm-14 libclang-rt-14-dev clang-tidy-14" ;;
  --programs)
    packages=$programs
    if [ "${2:-}" = --arch ]; then
      arch=${3:?$usage}
      [ "$arch" = "$(dpkg --print-architecture)" ] || foreign=$arch
    fi
    ;;
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "install-deps.sh: unknown argument $1 ($usage)" >&2; exit 2 ;;
esac
if [ -n "$foreign" ]; then
  case "$foreign" in
    amd64) compiler=g++-x86-64-linux-gnu ;;
    arm64) compiler=g++-aarch64-linux-gnu ;;
    *) echo "install-deps.sh: no cross compiler known for $foreign" >&2; exit 2 ;;
  esac
  packages="$compiler $tool_packages $header_packages"
  for package in $library_packages; do packages="$packages $package:$foreign"; done
fi

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

# Prometheus's package would start its service on port 9090, now and with every boot; the tests start one of their own. A unit
# that is masked beforehand stays so (undone by: systemctl unmask prometheus). Where it is installed already nothing is changed.
unit=/etc/systemd/system/prometheus.service
case "$missing " in
  *" prometheus "*)
    if [ -d /run/systemd/system ] && [ ! -e "$unit" ] && [ ! -L "$unit" ]; then $as_root ln -s /dev/null "$unit"; fi
    ;;
esac

echo "==> Installing with apt:$missing"
[ -z "$foreign" ] || $as_root dpkg --add-architecture "$foreign"
$as_root apt-get update -qq < /dev/null || echo "install-deps.sh: apt-get update failed; trying with the lists there are" >&2
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing < /dev/null > /dev/null
