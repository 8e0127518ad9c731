#!/bin/sh
# test/go.sh takes a Go that is new enough, from PATH or build/go, and no older one.   usage: go_test.sh SOURCE_ROOT
set -eu
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/test" "$tree/path"
cp "$1/test/go.sh" "$tree/test/"
own=$tree/build/go/lib/python3.11/site-packages/go/bin/go
mkdir -p "$(dirname "$own")"

fake_go() { # PATH VERSION
  printf '#!/bin/sh\n[ "$*" = "env GOVERSION" ] && echo %s\n' "$2" > "$1"
  chmod +x "$1"
}

expect() { # WHAT ANSWER
  answer=$(PATH=$tree/path:/usr/bin:/bin "$tree/test/go.sh")
  [ "$answer" = "$2" ] || { echo "$1: got \"$answer\" instead of \"$2\"" >&2; exit 1; }
}

# A machine's own Go comes before that of build/go.
local_go=/usr/local/go/bin/go
case $("$local_go" env GOVERSION 2> /dev/null) in
  go1.2[6-9]* | go1.[3-9][0-9]* | go[2-9]*) instead=$local_go ;;
  *) instead=$own ;;
esac
fake_go "$own" go1.26.0
for version in go1.26 go1.26.3 go1.27rc1 go1.30.1 go2.0; do
  fake_go "$tree/path/go" $version
  expect "$version on PATH" "$tree/path/go"
done
for version in go1.19.8 go1.25.9 go1.3.3 devel; do
  fake_go "$tree/path/go" $version
  expect "$version on PATH" "$instead"
done
