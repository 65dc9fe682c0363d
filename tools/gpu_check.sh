#!/usr/bin/env bash
# Everything that needs a GPU, in one go: builds for the GPU that is there, checks all ops on it
# against the CPU, trains, measures, and writes one report. Made for six minutes on a machine with a
# Hopper GPU and nvcc; needs no network. Usage: tools/gpu_check.sh [report file]
#
# GPU_CHECK_BUILD names a build folder made elsewhere (same toolkit, same libraries): then nothing
# is built here.
set -uo pipefail
cd "$(dirname "$0")/.."
report=${1:-gpu-report.txt}
build=${GPU_CHECK_BUILD:-build/gpu}
started=$SECONDS
failures=0
unverified=0

say() { printf '%s\n' "$*" | tee -a "$report"; }
# step NAME SECONDS COMMAND…: runs it for at most so long; its output goes to the report.
step() {
  local name=$1 limit=$2 begin=$SECONDS status=0
  shift 2
  say ""
  say "== $name   (at $((SECONDS - started)) s)"
  timeout --kill-after=5 "$limit" "$@" >"$build/step.log" 2>&1 || status=$?
  tail -n 120 "$build/step.log" | tee -a "$report"
  local skipped
  skipped=$(grep -c ': Skipped$' "$build/step.log")
  if [ "$status" -eq 0 ] && [ "$skipped" -gt 0 ]; then
    say "-- $name: NOT VERIFIED, $skipped tests were skipped"
    unverified=$((unverified + 1))
  elif [ "$status" -eq 0 ]; then
    say "-- $name: passed in $((SECONDS - begin)) s"
  else
    say "-- $name: FAILED (status $status; 124 means more than $limit s)"
    failures=$((failures + 1))
  fi
}

mkdir -p "$build"
: >"$report"
say "GPU check of $(git rev-parse --short HEAD 2>/dev/null || echo 'an unknown commit')"
query() { nvidia-smi "--query-gpu=$1" --format=csv,noheader 2>&1 | head -n 4; }
say "$(query name,driver_version,memory.total)"
say "$(nvcc --version 2>&1 | tail -n 2 | head -n 1)"

architecture=$(query compute_cap | head -n 1 | tr -cd '0-9')
if [ -z "${GPU_CHECK_BUILD:-}" ]; then
  step configure 60 cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCUTAWAY_CUDA=ON \
    "-DCUTAWAY_CUDA_ARCHITECTURES=${architecture:-90}" -DCUTAWAY_VARIANTS=avx2
  step build 300 cmake --build "$build" -j "$(nproc)" \
    --target cutaway_command test_cuda test_gpu test_ops
fi

step doctor 30 "$build/cutaway" doctor
step "all ops against the CPU" 150 "$build/cutaway" ops --check --device cuda --quiet
step "random numbers, determinism, memory, graphs" 60 "$build/test_cuda" \
  --gtest_filter='Gpu*' --gtest_brief=1
step "streams, graphs, library attention, sparse products" 60 "$build/test_gpu" --gtest_brief=1
if command -v compute-sanitizer >/dev/null 2>&1; then
  step "compute-sanitizer on the kernel ladders" 60 compute-sanitizer --tool memcheck \
    --error-exitcode 9 "$build/cutaway" bench kernels --device cuda --small
fi
step "Fashion-MNIST" 60 "$build/cutaway" train --model convnet --data fashion-mnist --epochs 2 \
  --seed 1 --device cuda --out "$build/fashion"
step "kernel ladders" 60 "$build/cutaway" bench kernels --device cuda
step "bandwidth, products, attention, group-shared layers, training steps" 120 \
  "$build/cutaway" bench gpu
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  step "the same training steps in PyTorch" 90 python3 tools/bench/peer_gpu.py
else
  say ""
  say "PyTorch with CUDA is not installed here: no comparison."
fi

say ""
say "$failures steps failed, $unverified could not be verified; $((SECONDS - started)) s in all."
say "Report: $report"
exit $((failures + unverified > 0))
