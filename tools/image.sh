#!/bin/bash
# Builds the container images of this tree with docker, podman or buildah, whichever works here:
#   localhost/neuron-agent:VERSION      all programs but neuron-sim
#   localhost/neuron-agent-sim:VERSION  with neuron-sim
# usage: tools/image.sh [OPTION...]
#   --output DIR       also writes both as archives, which docker load, ctr images import and skopeo read, each with its
#                      bill of materials (SPDX), and the debug symbols of all programs:
#                        neuron-agent-VERSION-ARCH.tar  neuron-agent-VERSION-ARCH.spdx.json  (and -sim)
#                        neuron-agent-VERSION-ARCH-debug.tar
#   --arch ARCH        amd64 or arm64; default: this machine's. Another is cross-built and only written as archives
#   --base IMAGE       image of Debian 12 to build in; default debian:12-slim. Never pulled from a registry that you do not
#                      name here: pull it yourself, or make it from Debian packages with manifests/image/base.sh
#   --engine PROGRAM   docker, podman or buildah
#   --name PREFIX      instead of localhost/neuron-agent
#   --tag TAG          instead of the version
#   --ccache DIR       keeps compiled objects there (podman, buildah), for builds that follow
#   --no-cache         builds all steps again
#   -h, --help         this text
# The same commit gives the same archives, byte for byte, as long as Debian's packages in the base and mirror are the same.
# Needs python3. Never pushes.
set -eu
exec < /dev/null
umask 022
here=$(readlink -f "$0")
root=$(dirname "$(dirname "$here")")
canon=$root/manifests/image/archive.py

fail() { echo "image.sh: $*" >&2; exit 1; }
usage() { echo "image.sh: $* (try --help)" >&2; exit 2; }

output="" arch="" base="" engine="" name=localhost/neuron-agent tag="" ccache="" options=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,/^set -eu/{/^set/!s/^# \{0,1\}//p}' "$here"; exit 0 ;;
    --no-cache) options+=(--no-cache); shift; continue ;;
    --output | --arch | --base | --engine | --name | --tag | --ccache) [ $# -ge 2 ] || usage "$1 needs a value" ;;
    *) usage "unknown argument $1" ;;
  esac
  case $1 in
    --output) output=$2 ;;
    --arch) arch=$2 ;;
    --base) base=$2 ;;
    --engine) engine=$2 ;;
    --name) name=$2 ;;
    --tag) tag=$2 ;;
    --ccache) ccache=$2 ;;
  esac
  shift 2
done

case $(uname -m) in x86_64) native=amd64 ;; aarch64) native=arm64 ;; *) native=$(uname -m) ;; esac
[ -n "$arch" ] || arch=$native
case $arch in amd64 | arm64) ;; *) usage "no image for the architecture $arch, only amd64 and arm64" ;; esac
[ "$arch" = "$native" ] || [ -n "$output" ] || usage "--arch $arch on a machine that is $native needs --output DIR"
[ "$arch" = "$native" ] || [ -f "$root/cmake/cross-$arch.cmake" ] || fail "cross-building for $arch is not offered: build on such a machine"
command -v python3 > /dev/null || fail "python3 is not installed"

# A client without its daemon is no engine.
works() { command -v "$1" > /dev/null && "$1" info > /dev/null 2>&1; }
if [ -n "$engine" ]; then
  case $engine in docker | podman | buildah) ;; *) usage "unknown engine $engine" ;; esac
  works "$engine" || fail "$engine does not work here: '$engine info' fails"
else
  for one in docker podman buildah; do
    if works "$one"; then engine=$one; break; fi
  done
  [ -n "$engine" ] || fail "neither docker, podman nor buildah works here. On Debian: apt-get install buildah"
fi
export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot}

has_image() { if [ "$engine" = buildah ]; then buildah inspect --type image "$1"; else "$engine" image inspect "$1"; fi > /dev/null 2>&1; }
pull=never
if ! has_image "${base:=debian:12-slim}"; then
  case ${base%%/*} in
    "$base" | localhost) fail "the base image $base is not here. Pull it, name another or its registry with --base, or make it: manifests/image/base.sh --engine $engine" ;;
    *) pull=missing ;;
  esac
fi

version=$(sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
tag=${tag:-$version}
revision="" source="" epoch=${SOURCE_DATE_EPOCH:-}
if git -C "$root" rev-parse --git-dir > /dev/null 2>&1; then
  revision=$(git -C "$root" rev-parse HEAD)
  [ -n "$epoch" ] || epoch=$(git -C "$root" log -1 --format=%ct)
  # Only what the image is built from; notes beside it change nothing.
  [ -z "$(git -C "$root" status --porcelain -- CMakeLists.txt CMakePresets.json LICENSE cmake proto agent plugin tools manifests/image)" ] || revision=$revision-dirty
fi
epoch=${epoch:-0}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -n "$output" ] || output=$work/output
mkdir -p "$output"
output=$(cd "$output" && pwd)

options+=(--build-arg "BASE=$base" --build-arg "ARCH=$arch" --build-arg "VERSION=$version" --build-arg "REVISION=$revision"
  --build-arg "SOURCE=${NEURON_IMAGE_SOURCE:-}" --build-arg "SOURCE_DATE_EPOCH=$epoch"
  --build-arg "CREATED=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)" -f "$root/manifests/image/Containerfile")
case $engine in
  docker)
    export BUILDX_NO_DEFAULT_ATTESTATIONS=1 # they name the time of the build, and make an index of every image
    [ -z "$ccache" ] || fail "docker keeps its own cache: --ccache is for podman and buildah"
    ;;
  *)
    options+=(--layers --pull="$pull")
    if [ -n "$ccache" ]; then
      mkdir -p "$ccache"
      # What its owner set for it (the size, above all), and the language, which is part of every object's key.
      {
        env | sed -n "s/^\(LANG\|LC_ALL\|LC_CTYPE\|LC_MESSAGES\)=\([A-Za-z0-9._@-]*\)$/export \1=\2/p"
        if [ "$(ccache --get-config cache_dir 2> /dev/null)" = "$(readlink -f "$ccache")" ]; then
          echo "export CCACHE_MAXSIZE=$(ccache --get-config max_size)"
        fi
      } > "$work/ccache.env"
      options+=(--volume "$(cd "$ccache" && pwd):/ccache.host" --volume "$work/ccache.env:/ccache.env:ro")
    fi
    ;;
esac

# build TARGET: leaves the target as an archive in $work/TARGET.tar.
build() {
  local target=$1 temporary=localhost/neuron-agent-build:$1-$arch
  "$engine" build "${options[@]}" --target "$target" -t "$temporary" "$root" || fail "$engine could not build the target $target"
  # Only the first target is rebuilt: the others share its steps.
  local kept=() one
  for one in "${options[@]}"; do [ "$one" = --no-cache ] || kept+=("$one"); done
  options=("${kept[@]}")
  case $engine in
    docker) docker save -o "$work/$target.tar" "$temporary" ;;
    podman) podman save --quiet --format docker-archive -o "$work/$target.tar" "$temporary" ;;
    buildah) buildah push --quiet --disable-compression=true "$temporary" "docker-archive:$work/$target.tar:$temporary" ;;
  esac
  if [ "$engine" = buildah ]; then buildah rmi "$temporary"; else "$engine" image rm "$temporary"; fi > /dev/null
}

# finish TARGET NAME: the archive in its final form, and the image of exactly these bytes in the engine's store.
finish() {
  local target=$1 image=$2:$tag file=$output/$3-$version-$arch.tar id size
  read -r id size < <("$canon" canonical "$work/$target.tar" "$work/$target.canonical.tar" --name "$image" --arch "$arch" --epoch "$epoch")
  rm -f "$work/$target.tar"
  mv -f "$work/$target.canonical.tar" "$file"
  if [ "$arch" = "$native" ]; then
    case $engine in
      docker | podman) "$engine" load -q -i "$file" > /dev/null ;;
      buildah) buildah pull --quiet "docker-archive:$file" > /dev/null ;;
    esac
  fi
  summary+=("$(printf '%-40s %-6s %6.1f MB  sha256:%s' "$image" "$arch" "$(awk "BEGIN { print $size / 1e6 }")" "${id:0:12}")")
}

echo "==> Building with $engine on $base for $arch (minutes the first time)"
summary=()
build extras
build agent
build sim
finish agent "$name" neuron-agent
finish sim "$name-sim" neuron-agent-sim
"$canon" unpack "$work/extras.tar" "$work/extras"
for title in neuron-agent neuron-agent-sim; do
  cp "$work/extras/$title.spdx.json" "$output/$title-$version-$arch.spdx.json"
done
"$canon" pack "$work/extras/debug" "$output/neuron-agent-$version-$arch-debug.tar" --epoch "$epoch"
cat "$work/extras/sizes.txt"
printf '%s\n' "${summary[@]}"
case $output in "$work"/*) ;; *) ls -l "$output" | awk -v d="$output" '/neuron-agent/ { print d "/" $NF }' ;; esac
