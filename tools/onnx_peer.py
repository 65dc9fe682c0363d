#!/usr/bin/env python3
"""Runs exported models with onnxruntime and holds the results against ours.

  python3 tools/onnx_peer.py FOLDER

For each NAME.onnx of the folder, NAME.npz holds its inputs and results under their names. Prints a
line a model; exit status 1 when one is off by more than 1e-4 of its largest result, 77 without
onnxruntime.
"""

import glob
import os
import sys

try:
    import numpy
    import onnxruntime
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def worst(path):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    arrays = numpy.load(path[:-5] + ".npz")
    names = [o.name for o in session.get_outputs()]
    got = session.run(names, {i.name: arrays[i.name] for i in session.get_inputs()})
    off = 0
    for name, value in zip(names, got):
        want = arrays[name]
        if want.shape != value.shape:
            return float("inf")
        off = max(off, float(abs(value - want).max()) / max(1, float(abs(want).max())))
    return off


def main():
    failed = 0
    paths = sorted(glob.glob(os.path.join(sys.argv[1], "*.onnx")))
    for path in paths:
        off = worst(path)
        failed += not off <= 1e-4
        print(f"{os.path.basename(path):<24} {off:.2e}")
    sys.exit(1 if failed or not paths else 0)


main()
