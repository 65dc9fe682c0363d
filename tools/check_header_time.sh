#!/usr/bin/env bash
# Prints how long `#include <cutaway/cutaway.h>` takes to compile at -O0 (best of three, seconds,
# no cache). A benchmark, not a test. usage: tools/check_header_time.sh [BUILD_DIR]
set -euo pipefail
build="${1:-build}"
if [ ! -e "$build/include/cutaway/cutaway.h" ]; then
  echo "check_header_time: $build/include/cutaway/cutaway.h is missing; run make first" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '#include <cutaway/cutaway.h>\nint main() { return 0; }\n' >"$work/umbrella.cpp"
best=
for _ in 1 2 3; do
  begin=$(date +%s%N)
  "${CXX:-g++}" -std=c++20 -O0 -I "$build/include" -c "$work/umbrella.cpp" -o "$work/umbrella.o"
  took=$(($(date +%s%N) - begin))
  if [ -z "$best" ] || [ "$took" -lt "$best" ]; then best=$took; fi
done
printf 'umbrella header at -O0: %d.%02d s\n' \
  $((best / 1000000000)) $((best % 1000000000 / 10000000))
