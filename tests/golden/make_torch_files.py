#!/usr/bin/env python3
"""Writes the .pt files of tests/core/io/torch_file_test.cpp with PyTorch.

  python3 tests/golden/make_torch_files.py

nested.pt holds every kind of value that the reader knows, old.pt is in the format before
PyTorch 1.6, resnet20.pt.gz has the names of models/zoo/resnet.h with weights that
are cheap to write down: element i of the k-th tensor is ((7 i + k) mod 31 - 15) / 64; logits.pt
has a batch and what PyTorch makes of it. bert.pt and bert_results.pt are the same for a small BERT
under Hugging Face's names.
"""

import gzip
import io
import os
from collections import OrderedDict

import torch
import torch.nn.functional as F

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch")


def pattern(sizes, k):
    n = 1
    for size in sizes:
        n *= size
    return (((torch.arange(n) * 7 + k) % 31 - 15).float() / 64).reshape(sizes)


def resnet20():
    names = []

    def conv(name, to, of, kernel):
        names.append((name + ".weight", (to, of, kernel, kernel)))

    def norm(name, n):
        for part in ("weight", "bias", "running_mean", "running_var"):
            names.append((f"{name}.{part}", (n,)))
        names.append((name + ".num_batches_tracked", None))

    conv("conv1", 16, 3, 3)
    norm("bn1", 16)
    width = 16
    for stage in range(3):
        for block in range(3):
            to = 16 << stage
            at = f"layer{stage + 1}.{block}"
            conv(at + ".conv1", to, width, 3)
            norm(at + ".bn1", to)
            conv(at + ".conv2", to, to, 3)
            norm(at + ".bn2", to)
            width = to
    names += [("fc.weight", (10, 64)), ("fc.bias", (10,))]
    state = OrderedDict()
    for k, (name, sizes) in enumerate(names):
        state[name] = torch.tensor(k) if sizes is None else pattern(sizes, k)
        if name.endswith("running_var"):
            state[name] = state[name] + 1
    return state


def logits(state, x):
    """The network in eval mode, written with torch's functions alone."""
    def conv(name, x, stride=1):
        return F.conv2d(x, state[name + ".weight"], stride=stride, padding=1)

    def norm(name, x):
        return F.batch_norm(x, *(state[f"{name}.{part}"] for part in (
            "running_mean", "running_var", "weight", "bias")))

    x = F.relu(norm("bn1", conv("conv1", x)))
    for stage in range(3):
        for block in range(3):
            at = f"layer{stage + 1}.{block}"
            stride = 2 if stage and not block else 1
            y = F.relu(norm(at + ".bn1", conv(at + ".conv1", x, stride)))
            y = norm(at + ".bn2", conv(at + ".conv2", y))
            if stride == 2:
                half = x.shape[1] // 2  # the new channels lie on both sides
                x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, half, half))
            x = F.relu(x + y)
    return F.linear(x.mean((2, 3)), state["fc.weight"], state["fc.bias"])


BERT = {"vocabulary": 40, "context": 12, "types": 2, "layers": 2, "heads": 2, "width": 8,
        "hidden": 16}


def bert():
    """Weights of a small BERT under Hugging Face's names, with its classifier."""
    w, names = BERT["width"], []

    def linear(name, to, of):
        names.extend([(name + ".weight", (to, of)), (name + ".bias", (to,))])

    def norm(name):
        names.extend([(name + ".weight", (w,)), (name + ".bias", (w,))])

    for table, rows in (("word", "vocabulary"), ("position", "context"), ("token_type", "types")):
        names.append((f"embeddings.{table}_embeddings.weight", (BERT[rows], w)))
    norm("embeddings.LayerNorm")
    for i in range(BERT["layers"]):
        at = f"encoder.layer.{i}."
        for part in ("query", "key", "value"):
            linear(at + "attention.self." + part, w, w)
        linear(at + "attention.output.dense", w, w)
        norm(at + "attention.output.LayerNorm")
        linear(at + "intermediate.dense", BERT["hidden"], w)
        linear(at + "output.dense", w, BERT["hidden"])
        norm(at + "output.LayerNorm")
    linear("pooler.dense", w, w)
    state = OrderedDict()
    state["bert.embeddings.position_ids"] = torch.arange(BERT["context"])[None]
    for k, (name, sizes) in enumerate(names):
        state["bert." + name] = pattern(sizes, k) + (1 if name.endswith("LayerNorm.weight") else 0)
    state["classifier.weight"], state["classifier.bias"] = pattern((3, w), 5), pattern((3,), 6)
    return state


def bert_results(state, tokens, mask, types):
    """Hidden vectors, pooled vectors and logits, written with torch's functions alone."""
    def get(name):
        return state["bert." + name]

    def linear(name, x):
        return F.linear(x, get(name + ".weight"), get(name + ".bias"))

    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], get(name + ".weight"), get(name + ".bias"), 1e-12)

    def table(name, ids):
        return F.embedding(ids, get(f"embeddings.{name}_embeddings.weight"))

    def heads(x):
        return x.unflatten(-1, (BERT["heads"], -1)).transpose(1, 2)

    x = table("word", tokens) + table("token_type", types) + table(
        "position", torch.arange(tokens.shape[1]))
    x = norm("embeddings.LayerNorm", x)
    hidden = (1 - mask[:, None, None, :].float()) * -1e30
    for i in range(BERT["layers"]):
        at = f"encoder.layer.{i}."
        q, k, v = (heads(linear(at + "attention.self." + part, x))
                   for part in ("query", "key", "value"))
        weights = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + hidden, -1)
        y = (weights @ v).transpose(1, 2).flatten(2)
        x = norm(at + "attention.output.LayerNorm",
                 linear(at + "attention.output.dense", y) + x)
        y = F.gelu(linear(at + "intermediate.dense", x))
        x = norm(at + "output.LayerNorm", linear(at + "output.dense", y) + x)
    pooled = torch.tanh(linear("pooler.dense", x[:, 0]))
    logits = F.linear(pooled, state["classifier.weight"], state["classifier.bias"])
    count = mask[:, :, None].float()
    mean = (x * count).sum(1) / count.sum(1)
    return x, pooled, logits, F.normalize(mean, dim=1)


def nested():
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    every = {str(t).split(".")[1]: torch.tensor([0, 1, 3]).to(t) for t in (
        torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32,
        torch.uint8, torch.int8, torch.bool)}
    model = OrderedDict(weight=base, transposed=base.t(), row=base[1], odd=base[:, 1::2],
                        wide=base[:, :1].expand(3, 5))
    model._metadata = OrderedDict([("", {"version": 1})])
    return {"model": model, "every": every, "epoch": 3, "lr": 0.5, "note": "text", "none": None,
            "flags": (True, False, -1, 2**40), "list": [torch.tensor(2.5), {"x": torch.ones(1)}],
            "empty": torch.zeros(0, 3), 7: torch.tensor([7]),
            "parameter": torch.nn.Parameter(torch.tensor([1.0, -2.0]))}


def main():
    os.makedirs(FOLDER, exist_ok=True)
    torch.save(nested(), os.path.join(FOLDER, "nested.pt"))
    torch.save({"a": torch.ones(2)}, os.path.join(FOLDER, "old.pt"),
               _use_new_zipfile_serialization=False)
    buffer = io.BytesIO()
    state = resnet20()
    torch.save(state, buffer)
    x = pattern((2, 3, 8, 8), 5)
    torch.save({"x": x, "y": logits(state, x)}, os.path.join(FOLDER, "logits.pt"))
    state = bert()
    torch.save(state, os.path.join(FOLDER, "bert.pt"))
    tokens = torch.tensor([[2, 17, 39, 5, 3, 0, 0], [2, 8, 8, 30, 21, 4, 3]])
    types = torch.tensor([[0, 0, 0, 1, 1, 0, 0], [0] * 7])
    mask = (tokens != 0).long()
    hidden, pooled, classes, sentences = bert_results(state, tokens, mask, types)
    torch.save({"tokens": tokens, "types": types, "mask": mask, "hidden": hidden,
                "pooled": pooled, "logits": classes, "sentences": sentences},
               os.path.join(FOLDER, "bert_results.pt"))
    with open(os.path.join(FOLDER, "resnet20.pt.gz"), "wb") as file:
        file.write(gzip.compress(buffer.getvalue(), 9, mtime=0))


if __name__ == "__main__":
    main()
