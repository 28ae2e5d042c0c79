#!/bin/bash
# Makes .venv with this project and extras of it, at the versions of constraints.txt.
#
#   deploy/venv.sh EXTRA[,EXTRA]     (embedded, rocketmq, dev)
set -euo pipefail
cd "$(dirname "$0")/.."
extra=$1

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3 if it is not on PATH." >&2
  exit 1
}

# Debian ships Python without ensurepip; python3-venv brings it.
need_ensurepip() {
  "$1" -c 'import ensurepip' 2>/dev/null && return
  local package
  package=$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing $package"
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq "$package" >/dev/null || { apt-get update -qq && apt-get install -y -qq "$package" >/dev/null; }
  else
    echo "Python's venv module is incomplete here. Run this, then try again:" >&2
    echo "  sudo apt-get install $package" >&2
    exit 1
  fi
}

if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
  python=$(find_python)
  need_ensurepip "$python"
  echo "Making .venv with $("$python" --version)"
  rm -rf .venv
  "$python" -m venv .venv
fi

echo "Installing the project (extra: $extra)"
.venv/bin/python -m pip install --quiet --constraint constraints.txt --editable ".[$extra]"
