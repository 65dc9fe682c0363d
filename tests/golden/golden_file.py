"""Writes the reference files of this folder: a case recorder and a writer of the file format.

A file is laid out as safetensors: 8 bytes little-endian header length, a JSON header, raw data.
Tensor names are '<case>/<kind>.<name>'; '__metadata__' holds each case's options as JSON text.
"""

import json
import os
import struct
import zlib

import numpy as np

FOLDER = os.path.dirname(os.path.abspath(__file__))

DTYPES = {
    np.dtype(np.float64): "F64",
    np.dtype(np.float32): "F32",
    np.dtype(np.int64): "I64",
    np.dtype(np.bool_): "BOOL",
}


def random_for(group, case):
    """Generator of one case. It depends on the names alone, so new cases never change old ones.

    RandomState's streams are frozen by NumPy; values are rounded to f32 before use, which hides
    last-bit differences between mathematical libraries.
    """
    return np.random.RandomState(zlib.crc32(f"{group}/{case}".encode()))


def as_f32_values(array):
    """The array in f64 with every value exactly representable in f32."""
    return np.asarray(array, dtype=np.float64).astype(np.float32).astype(np.float64)


class GoldenFile:
    """Tensors and options of one file, written in sorted order."""

    def __init__(self, name):
        self.name = name
        self.tensors = {}
        self.options = {}

    def add_case(self, case, options):
        if case in self.options:
            raise ValueError(f"case {case} twice in {self.name}")
        self.options[case] = options

    def add(self, case, kind, name, array):
        key = f"{case}/{kind}.{name}"
        if key in self.tensors:
            raise ValueError(f"tensor {key} twice in {self.name}")
        array = np.array(array, order="C")
        if array.dtype.kind == "f" and not np.isfinite(array).all() and kind != "input":
            raise ValueError(f"tensor {key} in {self.name} is not finite")
        self.tensors[key] = array

    def path(self):
        return os.path.join(FOLDER, self.name + ".safetensors")

    def bytes(self):
        meta = {case: json.dumps(o, sort_keys=True) for case, o in sorted(self.options.items())}
        header, chunks, offset = {"__metadata__": meta}, [], 0
        for key in sorted(self.tensors):
            array = self.tensors[key]
            data = array.astype(array.dtype.newbyteorder("<")).tobytes()
            header[key] = {
                "dtype": DTYPES[array.dtype],
                "shape": list(array.shape),
                "data_offsets": [offset, offset + len(data)],
            }
            offset += len(data)
            chunks.append(data)
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text + b"".join(chunks)

    def write(self):
        data = self.bytes()
        with open(self.path(), "wb") as out:
            out.write(data)
        print(f"{self.name}.safetensors  {len(self.options):4} cases  {len(data):7} bytes")

    def check(self, tolerance=1e-9):
        """Compares with the stored file: same names, shapes and options, values near."""
        stored, options = read(self.path())
        if options != json.loads(json.dumps(self.options)):
            raise AssertionError(f"{self.name}: options of the stored file differ")
        if set(stored) != set(self.tensors):
            raise AssertionError(f"{self.name}: tensor names of the stored file differ")
        worst = 0.0
        for key, want in stored.items():
            got = self.tensors[key]
            if got.shape != want.shape or got.dtype != want.dtype:
                raise AssertionError(f"{self.name}: {key} has another shape or dtype")
            if got.dtype.kind != "f":
                np.testing.assert_array_equal(got, want, err_msg=key)
            elif got.size:
                finite = np.isfinite(want)
                scale = max(1e-12, np.abs(want[finite]).max(initial=0))
                np.testing.assert_array_equal(np.where(finite, 0, got), np.where(finite, 0, want))
                worst = max(worst, np.abs((got - want)[finite]).max(initial=0) / scale)
        if worst > tolerance:
            raise AssertionError(f"{self.name}: worst relative difference {worst}")
        print(f"{self.name}.safetensors  agrees, worst relative difference {worst:.1e}")


def read(path):
    """Tensors and options of a stored file."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    options = {case: json.loads(text) for case, text in header.pop("__metadata__").items()}
    names = {v: k for k, v in DTYPES.items()}
    tensors = {}
    for key, entry in header.items():
        begin, end = (8 + length + o for o in entry["data_offsets"])
        flat = np.frombuffer(data[begin:end], dtype=names[entry["dtype"]].newbyteorder("<"))
        tensors[key] = flat.reshape(entry["shape"]).astype(names[entry["dtype"]])
    return tensors, options


def finish(files, arguments):
    """Writes the files, or with --check compares them with the stored ones."""
    for file in files:
        if "--check" in arguments:
            file.check()
        else:
            file.write()
