#!/usr/bin/env python3
"""Writes the files of tests/fuzz: small good and hostile inputs of every reader.

  python3 tests/fuzz/make_corpus.py            writes <format>/* and expected.txt
  python3 tests/fuzz/make_corpus.py --check    fails when a stored file differs

expected.txt has one line a file: its name, a tab, and a piece of the error text that the reader
must give; nothing after the tab for a file that it must accept. Needs Python only.
"""

import json
import os
import struct
import sys

sys.dont_write_bytecode = True

from corpus_data import cifar_cases, json_set_cases, libsvm_cases
from corpus_files import gzip_cases, idx_cases, npy_cases
from corpus_images import image_cases
from corpus_language import (fasta_cases, json_lines_cases, text_cases, tokenizer_cases,
                             vocabulary_cases)
from corpus_matlab import matlab_cases
from corpus_onnx import onnx_cases
from corpus_text import csv_cases
from corpus_torch import torch_cases
from corpus_xmc import json_cases, lz4_cases, packages_cases, sparse_cases, wordnet_cases
from corpus_zip import named_set_cases, npz_cases

FOLDER = os.path.dirname(os.path.abspath(__file__))


def safetensors(header, data=b"", length=None):
    """A file from a header (text, bytes or a dictionary) and data."""
    if isinstance(header, dict):
        header = json.dumps(header, separators=(",", ":"), ensure_ascii=False)
    if isinstance(header, str):
        header = header.encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def one(data=bytes(8), **fields):
    return safetensors({"a": entry(**fields)}, data)


def safetensors_lengths():
    good = safetensors({"a": entry()}, bytes(4))
    nest = b'{"a":' + b"[" * 3000
    yield "empty_file", b"", "at least 8 bytes"
    yield "seven_bytes", bytes(7), "at least 8 bytes"
    yield "length_all_ones", b"\xff" * 8, "header length"
    yield "length_200_million", struct.pack("<Q", 200_000_000) + bytes(100), "header length"
    yield "length_one_too_many", safetensors("{}", length=3), "exceeds the file"
    yield "length_zero", safetensors(""), "must begin with {"
    yield "length_inside_header", safetensors(b'{"a":1}', length=4), "not JSON"
    yield "data_cut", good[:-1], "do not lie in"
    yield "header_cut", good[:40], "exceeds the file"
    yield "nesting_arrays", safetensors(nest), "nested too deeply"
    yield "nesting_objects", safetensors(b'{"a":' * 3000), "nested too deeply"
    yield "blank_before_brace", safetensors(" {}"), "must begin with {"
    yield "array_as_header", safetensors("[]"), "must begin with {"
    yield "text_after_header", safetensors("{}{}"), "not JSON"
    yield "zero_byte_in_header", safetensors(b'{"a\x00":1}'), "not JSON"
    yield "name_not_utf8", safetensors(b'{"\xff\xfe":1}'), "not JSON"
    yield "number_of_400_digits", safetensors('{"a":' + "9" * 400 + "}"), "not JSON"
    yield "lone_surrogate", safetensors(r'{"\ud800":1}'), "not JSON"


def safetensors_entries():
    w = '"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
    big, edge = 2**32, 2**63 - 1
    yield "name_twice", safetensors("{" + w + "," + w + "}", b"x"), "duplicate tensor name w"
    yield ("metadata_twice", safetensors('{"__metadata__":{},"__metadata__":{}}'),
           "duplicate tensor name __metadata__")
    yield ("key_twice", safetensors('{"a":{"dtype":"F32","dtype":"U8","shape":[],'
                                    '"data_offsets":[0,4]}}', bytes(4)), "duplicate key dtype")
    yield "metadata_of_numbers", safetensors('{"__metadata__":{"k":1}}'), "must be a string"
    yield "metadata_list", safetensors('{"__metadata__":[]}'), "__metadata__ must be"
    yield "entry_null", safetensors('{"a":null}'), "needs dtype, shape"
    yield ("dtype_number", safetensors('{"a":{"dtype":1,"shape":[],"data_offsets":[0,0]}}'),
           "needs dtype, shape")
    yield "dtype_unknown", one(dtype="F7", offsets=(0, 4), data=bytes(4)), "unsupported type F7"
    yield "dtype_unknown_and_far", one(dtype="F7", offsets=(5, 99)), "do not lie in"
    yield "shape_missing", safetensors('{"a":{"dtype":"F32","data_offsets":[0,0]}}'), "needs dtype"
    yield "shape_larger_than_data", one(shape=(1000, 1000), data=bytes(4)), "data_offsets give 4"
    yield "shape_product_wraps", one(shape=(big, big), offsets=(0, 0), data=b""), "too many"
    yield ("shape_product_wraps_beside_0", one(shape=(0, edge, edge), offsets=(0, 0), data=b""),
           "too many")
    yield "shape_negative", one(shape=(-1,)), "whole numbers"
    yield "shape_fraction", one(shape=(1.5,)), "whole numbers"
    yield "shape_of_2_to_64", one(shape=(2**64 - 1,)), "whole numbers"
    yield "shape_nested", one(shape=([1],)), "whole numbers"
    yield "nine_dimensions", one(shape=(1,) * 9, data=bytes(4)), "9 dimensions"
    yield "offsets_reversed", one(offsets=(8, 4)), "do not lie in"
    yield "offsets_three", one(offsets=(0, 4, 8)), "needs two data_offsets"
    yield "offsets_text", one(offsets=("0", "4")), "whole numbers"
    yield "offsets_beyond_file", one(shape=(3,), offsets=(0, 12)), "do not lie in"
    yield "offsets_of_2_to_63", one(offsets=(0, 2**63)), "whole numbers"
    yield "rest_after_data", one(), "4 bytes after the last tensor"
    yield ("overlap", safetensors({"a": entry(), "b": entry(offsets=(2, 6))}, bytes(6)),
           "(overlap)")
    yield ("same_place_twice", safetensors({"a": entry(), "b": entry()}, bytes(4)), "(overlap)")
    yield "hole", safetensors({"a": entry(), "b": entry(offsets=(8, 12))}, bytes(12)), "(hole)"
    yield "hole_at_begin", one(offsets=(4, 8)), "(hole)"


def safetensors_good():
    two = {"a": entry(shape=(2, 1), offsets=(0, 8)), "b": entry("U8", (3,), (8, 11))}
    odd = {"b": entry(offsets=(1, 5)), "a": entry("U8", (1,), (0, 1)),
           "__metadata__": {"k": "v"}, "e ü/../x": entry(shape=(0, 3), offsets=(1, 1))}
    header = json.dumps(odd, ensure_ascii=False) + "   "
    types = {"f64": 8, "f32": 4, "bf16": 2, "f16": 2, "i64": 8, "i32": 4, "u8": 1, "i8": 1,
             "bool": 1}
    at, every = 0, {}
    for name, width in types.items():
        every[name] = entry(name.upper(), (), (at, at + width))
        at += width
    yield "good_nothing", safetensors("{}"), ""
    yield "good_two", safetensors(two, bytes(range(11))), ""
    yield "good_oddities", safetensors(header, b"\x07\x00\x00\xc0\x3f"), ""
    yield "good_every_type", safetensors(every, bytes([0x40] * (at - 1) + [2])), ""
    yield "good_metadata_only", safetensors('{"__metadata__":{"format":"pt"}}'), ""


STATE = {"format": 1, "step": 7, "epoch": 0, "batch": 7, "loss_sum": 1.5, "correct": 3, "seen": 9,
         "rows": 1, "best_accuracy": 0.25, "rng_seed": 2**64 - 1, "rng_stream": 0,
         "rng_offset": 12}
CONFIG = {"version": "0.1.0", "model": "mlp", "data": "digits", "epochs": 2, "batch": 32,
          "optimizer": "adamw", "lr": 0.002, "weight_decay": 0.01, "momentum": 0.9,
          "schedule": "cosine", "clip": 0, "seed": 1, "checkpoint_every": 200, "log_every": 50}


def changed(base, **fields):
    text = {**base, **fields}
    return json.dumps({k: v for k, v in text.items() if v != "gone"}).encode()


def named(name, content):
    """An input of the checkpoint reader: which of its files, a line end, what it holds."""
    return name.encode() + b"\n" + content


def checkpoint_json(file, base, count, key):
    """Cases of a file of numbers; `count` is a whole number of it, `key` any field."""
    def bad(**fields):
        return named(file, changed(base, **fields))
    stem = file.split(".")[0]
    yield f"{stem}_good", named(file, changed(base)), ""
    yield f"{stem}_empty", named(file, b""), "is not JSON"
    yield f"{stem}_cut", named(file, changed(base)[:50]), "is not JSON"
    yield f"{stem}_list", named(file, b"[1,2]"), "is not JSON"
    yield f"{stem}_not_utf8", named(file, b'{"\xff":1}'), "is not JSON"
    yield f"{stem}_zero_bytes", named(file, bytes(30)), "is not JSON"
    yield f"{stem}_nesting", named(file, b'{"a":' + b"[" * 3000), "is not JSON"
    yield f"{stem}_field_gone", bad(**{key: "gone"}), f'"{key}"'
    yield f"{stem}_text_for_number", bad(**{count: "7"}), f'"{count}"'
    yield f"{stem}_null_for_number", bad(**{count: None}), f'"{count}"'
    yield f"{stem}_true_for_number", bad(**{count: True}), f'"{count}"'
    yield f"{stem}_fraction", bad(**{count: 1.5}), f'"{count}"'
    yield f"{stem}_1e300", bad(**{count: 1e300}), f'"{count}"'
    yield f"{stem}_negative", bad(**{count: -3}), count
    yield f"{stem}_2_to_63", bad(**{count: 2**63}), f'"{count}"'


def checkpoint_cases():
    yield from checkpoint_json("state.json", STATE, "step", "rng_offset")
    yield from checkpoint_json("config.json", CONFIG, "epochs", "schedule")
    yield ("state_newer", named("state.json", changed(STATE, format=99)), "newer version")
    yield ("state_negative_seed", named("state.json", changed(STATE, rng_seed=-1)), '"rng_seed"')
    yield ("state_batch_far", named("state.json", changed(STATE, batch=2**60)), '"batch"')
    yield ("config_batch_0", named("config.json", changed(CONFIG, batch=0)), "batch")
    yield ("config_lr_text", named("config.json", changed(CONFIG, lr="1")), '"lr"')
    yield ("config_model_number", named("config.json", changed(CONFIG, model=1)), '"model"')
    model = {"weight": entry(shape=(1, 2), offsets=(0, 8)), "bias": entry(offsets=(8, 12))}
    file = "model.safetensors"
    yield "model_good", named(file, safetensors(model, bytes(12))), ""
    yield "model_empty", named(file, b""), "at least 8 bytes"
    yield "model_cut", named(file, safetensors(model, bytes(11))), "do not lie in"
    yield ("model_lacks_bias", named(file, safetensors({"weight": model["weight"]}, bytes(8))),
           "missing: bias")
    yield ("model_other_sizes", named(file, safetensors(
        {**model, "weight": entry(shape=(2, 1), offsets=(0, 8))}, bytes(12))), "other sizes")
    yield ("model_unknown_name", named(file, safetensors(
        {**model, "extra": entry(shape=(0,), offsets=(12, 12))}, bytes(12))), "unknown: extra")
    yield ("model_other_type", named(file, safetensors(
        {"weight": entry("BOOL", (1, 2), (0, 2)), "bias": entry("I64", (1,), (2, 10))},
        bytes(10))), "")
    moments = {"bias.exp_avg": entry(offsets=(0, 4)), "bias.exp_avg_sq": entry(offsets=(4, 8)),
               "bias.step": entry("I64", (), (8, 16))}
    file = "optim.safetensors"
    step = struct.pack("<q", 5)
    yield "optim_good", named(file, safetensors(moments, bytes(8) + step)), ""
    yield "optim_nothing", named(file, safetensors("{}")), ""
    yield "optim_cut", named(file, safetensors(moments, bytes(8) + step[:7])), "do not lie in"
    yield ("optim_lacks_moment", named(file, safetensors(
        {"bias.step": entry("I64", (), (0, 8))}, step)), "lacks exp_avg")
    yield ("optim_step_of_2", named(file, safetensors(
        {**moments, "bias.step": entry("I64", (2,), (8, 24))}, bytes(8) + step * 2)),
           "does not fit")
    yield ("optim_step_negative", named(file, safetensors(
        moments, bytes(8) + struct.pack("<q", -1))), "step count")
    yield ("optim_step_largest", named(file, safetensors(
        moments, bytes(8) + struct.pack("<q", 2**63 - 1))), "step count")
    yield "latest_good", named("latest", b"step-000000007\n"), ""
    yield "latest_empty", named("latest", b""), ""
    yield "latest_elsewhere", named("latest", b"../../../etc\n"), ""
    yield "latest_missing_step", named("latest", b"step-999999999\n"), ""
    yield "latest_zero_bytes", named("latest", b"step-\x00\x00"), ""


def all_cases():
    for format_name, suffix, groups in (
            ("safetensors", ".safetensors",
             (safetensors_good(), safetensors_lengths(), safetensors_entries())),
            ("checkpoint", ".txt", (checkpoint_cases(),)),
            ("idx", ".idx", (idx_cases(),)),
            ("idx_gz", ".idx.gz", (gzip_cases(),)),
            ("npy", ".npy", (npy_cases(),)),
            ("npz", ".npz", (npz_cases(),)),
            ("torch", ".pt", (torch_cases(),)),
            ("csv", ".csv", (csv_cases(),)),
            ("lz4", ".lz4", (lz4_cases(),)),
            ("json_fields", ".json", (json_cases(),)),
            ("xmc_sparse", ".txt", (sparse_cases(),)),
            ("packages", ".txt", (packages_cases(),)),
            ("wordnet", ".txt", (wordnet_cases(),)),
            ("tokenizer", ".json", (tokenizer_cases(),)),
            ("vocabulary", ".txt", (vocabulary_cases(),)),
            ("json_lines", ".jsonl", (json_lines_cases(),)),
            ("fasta", ".fa", (fasta_cases(),)),
            ("text", ".txt", (text_cases(),)),
            ("onnx", ".onnx", (onnx_cases(),)),
            ("cifar", ".bin", (cifar_cases(),)),
            ("libsvm", ".svm", (libsvm_cases(),)),
            ("image", "", (image_cases(),)),
            ("named_set", ".npz", (named_set_cases(),)),
            ("json_set", ".jsonl", (json_set_cases(),)),
            ("matlab", ".mat", (matlab_cases(),))):
        for group in groups:
            for name, content, needle in group:
                yield f"{format_name}/{name}{suffix}", content, needle


def main():
    check = sys.argv[1:] == ["--check"]
    files = {}
    lines = []
    for name, content, needle in all_cases():
        if name in files:
            raise ValueError(f"{name} is made twice")
        files[name] = content
        lines.append(f"{name}\t{needle}\n")
    files["expected.txt"] = "".join(sorted(lines)).encode()
    differing = []
    for name, content in files.items():
        path = os.path.join(FOLDER, name)
        if check:
            stored = open(path, "rb").read() if os.path.isfile(path) else None
            # Another zlib may pack the same content in other bytes.
            same = stored == content or (stored and name.startswith(("idx_gz/", "npz/", "torch/")))
            differing += [] if same else [name]
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
    for name in differing:
        print(f"{name} differs from what the script makes")
    total = sum(len(c) for c in files.values())
    print(f"{len(files) - 1} files, {total} bytes, {len(differing)} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
