#!/usr/bin/env bash
# Installs a build into a folder of its own and builds the project beside this script against it:
# with find_package, static and shared, and with pkg-config. Usage: check.sh BUILD CXX LARGEST,
# the largest size of the shared library in bytes, 0 for any.
set -euo pipefail
build=$1 compiler=$2 largest=$3
here=$(cd "$(dirname "$0")" && pwd)
work=$build/consumer
rm -rf "$work"
cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$work/build" >/dev/null
for kind in static shared; do
  echo "find_package, $kind: $("$work/build/consumer_$kind")"
done

libdir=$(dirname "$(find "$work/prefix" -name cutaway.pc)")
export PKG_CONFIG_PATH=$libdir
# shellcheck disable=SC2046  # flags are words
"$compiler" "$here/main.cpp" $(pkg-config --cflags --libs cutaway) -o "$work/by_pkg_config"
echo "pkg-config: $(LD_LIBRARY_PATH=$(dirname "$libdir") "$work/by_pkg_config")"

library=$(readlink -f "$(dirname "$libdir")/libcutaway.so")
foreign=$(nm -DC --defined-only "$library" | sed 's/^[0-9a-f]* . //' | grep -v 'cutaway::' || true)
if [ -n "$foreign" ]; then
  echo "libcutaway.so shows names that are not its own:" >&2
  head -n 20 <<<"$foreign" >&2
  exit 1
fi
size=$(stat -c %s "$library")
echo "libcutaway.so: $((size / 1024)) KiB"
if [ "$largest" -gt 0 ] && [ "$size" -gt "$largest" ]; then
  echo "libcutaway.so is larger than $largest bytes" >&2
  exit 1
fi
