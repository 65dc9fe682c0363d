#!/usr/bin/env bash
# Installs the Debian packages of tools/debian-packages.txt that are missing; says nothing and does
# nothing when all are there.
set -euo pipefail
list="$(dirname "$0")/debian-packages.txt"
mapfile -t packages < <(sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$list")

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
  echo "install_deps: this system has no apt-get, so nothing was installed." >&2
  echo "  Needed are the counterparts of these Debian packages: ${packages[*]}" >&2
  echo "  When they are there, run cmake directly: cmake -S . -B build && cmake --build build" >&2
  exit 1
fi

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null |
  sed -n 's/^installed //p')
missing=()
for package in "${packages[@]}"; do
  grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
done
[ "${#missing[@]}" -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "install_deps: these packages are missing and neither root nor sudo is at hand:" >&2
    echo "  ${missing[*]}" >&2
    echo "  hint: as root, run  apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Installing ${#missing[@]} Debian packages: ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
"${apt[@]}" update </dev/null ||
  echo "install_deps: apt-get update failed; trying with the package lists at hand" >&2
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null
