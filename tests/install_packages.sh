#!/bin/bash
# Checks that the machine has what the tests use beside .venv, and installs what is missing where it
# may (root on Debian); elsewhere says exactly what to install, and fails. Quiet when nothing is missing.
#
# Nothing of it is started: tests run servers of their own on free ports. Debian's postgresql package
# makes a cluster of its own when it is installed; no test uses it.
set -euo pipefail

missing=()
need() { # need PACKAGE COMMAND…: the package is needed unless the command succeeds
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}

postgres15() {
  [ -x /usr/lib/postgresql/15/bin/postgres ] || pg_config --version | grep -q ' 15\.'
}
extension15() {
  local config=/usr/lib/postgresql/15/bin/pg_config
  [ -x "$config" ] || config=pg_config
  [ -f "$("$config" --sharedir)/extension/$1.control" ]
}

check() {
  missing=()
  need postgresql-15 postgres15
  need postgresql-15-pgtap extension15 pgtap
  need postgresql-15-plpgsql-check extension15 plpgsql_check
  need libtap-parser-sourcehandler-pgtap-perl command -v pg_prove
  need chromium command -v chromium
  need chromium-driver command -v chromedriver
  need curl command -v curl
  need nginx-light command -v nginx
  need openjdk-17-jdk-headless command -v javac
  need maven command -v mvn
}

check
[ ${#missing[@]} = 0 ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "Installing: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  fresh=" ${missing[*]} "
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  # Debian starts an nginx on port 80 with its package; the tests start their own.
  if [[ $fresh == *" nginx-light "* ]] && command -v systemctl >/dev/null; then
    systemctl disable --quiet --now nginx 2>/dev/null || true
  fi
  check
  [ ${#missing[@]} = 0 ] && exit 0
fi

{
  echo "The tests need packages that are not installed. On Debian run, as root:"
  echo "  apt-get install ${missing[*]}"
} >&2
exit 1
