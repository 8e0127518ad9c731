#!/bin/sh
# Runs inside the build stage: compiles the programs of the tree it lies in and installs them.
# usage: build.sh DIRECTORY [ARCH]     ARCH: amd64 or arm64; another than this machine's is cross-built
# Leaves DIRECTORY/install (the files as `cmake --install` puts them), DIRECTORY/inputs.txt (every library archive and
# header of the system that went in, for the bill of materials) and DIRECTORY/arch.
set -eu
out=${1:?usage: build.sh DIRECTORY [ARCH]}
cd "$(dirname "$(readlink -f "$0")")/../.."
native=$(dpkg --print-architecture)
arch=${2:-$native}

# Paths in the objects are made relative by ccache, whether it finds them or not: what it holds never shows in the result.
export CCACHE_DIR=/var/cache/ccache
if [ -d /ccache.host ]; then
  CCACHE_DIR=/ccache.host
  . /ccache.env
fi
unset CFLAGS CXXFLAGS LDFLAGS
umask 022

# The same flags as every release build, so that objects of a release build on this machine serve again (--ccache).
set -- -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX=/usr
case $arch in
  "$native") ;;
  *) set -- "$@" "-DCMAKE_TOOLCHAIN_FILE=cmake/cross-$arch.cmake" ;;
esac
cmake --preset release "$@"
cmake --build build/release --parallel "$(nproc)"
DESTDIR=$out/install cmake --install build/release > /dev/null
ccache --show-stats | sed -n '1,3p'

{
  ninja -C build/release -t deps | sed -n 's/^ *\(\/usr\/.*\)$/\1/p'
  ninja -C build/release -t commands | grep -o '/usr/lib/[^ ]*\.a'
} | sort -u > "$out/inputs.txt"
echo "$arch" > "$out/arch"
rm -rf build/release
