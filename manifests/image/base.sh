#!/bin/sh
# Makes the base image of the build stage from Debian packages alone, for machines without a registry: a minimal
# Debian 12 under the name that the Containerfile asks for.
# usage: base.sh [--engine docker|podman|buildah] [--help] [NAME]     NAME: default localhost/debian:12-slim
# Needs mmdebstrap, and root or user namespaces. Packages come from where this machine's apt gets them: its sources,
# options, proxies and keys are used, and copied into the base so that the build stage can install more. They stay there:
# nothing of the base but libraries and their licences gets into the images that are built on it.
set -eu

engine=buildah
name=localhost/debian:12-slim
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,7s/^# //p' "$0"; exit 0 ;;
    --engine) engine=${2:?--engine needs a value}; shift 2 ;;
    -*) echo "base.sh: unknown option $1 (try --help)" >&2; exit 2 ;;
    *) name=$1; shift ;;
  esac
done
command -v mmdebstrap > /dev/null || { echo "base.sh: mmdebstrap is not installed (apt-get install mmdebstrap)" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The machine's Debian sources: those that name bookworm. Without any, Debian's own.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
  if [ -f "$file" ] && grep -q '^[^#]*\<bookworm\>' "$file"; then set -- "$@" "$file"; fi
done
include=--include=ca-certificates
for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
  # Only what says how to reach the packages: another program's hooks would look for that program in the base.
  if [ -f "$file" ] && grep -qi '^ *Acquire' "$file" && ! grep -qi '^ *\(DPkg\|APT::Update\)::' "$file"; then
    cat "$file" >> "$work/machine.conf"
    echo >> "$work/machine.conf"
  fi
done
[ ! -f "$work/machine.conf" ] || set -- "--aptopt=$work/machine.conf" "$@"

echo "==> Making a minimal Debian 12 from $(apt-config shell ARCH APT::Architecture | cut -d\' -f2) packages"
options=
keys=
[ ! -d /etc/apt/keyrings ] || keys="/etc/apt/keyrings"
for path in /etc/apt/trusted.gpg /etc/apt/trusted.gpg.d /etc/apt/auth.conf /etc/apt/auth.conf.d $keys; do
  [ -e "$path" ] && options="$options $path"
done
cat > "$work/hook" << HOOK
#!/bin/sh
set -eu
mkdir -p "\$1/etc/apt" "\$1/usr/local/share/ca-certificates" "\$1/etc/ssl/certs"
for path in $options; do cp -a "\$path" "\$1/etc/apt/"; done
[ ! -f /etc/ssl/certs/ca-certificates.crt ] || cp /etc/ssl/certs/ca-certificates.crt "\$1/etc/ssl/certs/ca-certificates.crt"
HOOK
chmod +x "$work/hook"
mmdebstrap --quiet --variant=minbase $include --customize-hook="$work/hook" \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  bookworm "$work/base.tar" "$@" < /dev/null

case $engine in
  docker | podman) "$engine" import "$work/base.tar" "$name" > /dev/null ;;
  buildah)
    container=$(buildah from scratch)
    buildah add --quiet "$container" "$work/base.tar" / > /dev/null
    buildah commit --quiet --rm "$container" "$name" > /dev/null
    ;;
  *) echo "base.sh: unknown engine $engine" >&2; exit 2 ;;
esac
echo "==> $name is made"
