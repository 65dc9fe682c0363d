#!/usr/bin/env python3
"""Trains the language model of a run of `cutaway train --model gpt` again, in PyTorch.

  cutaway train --model gpt --data austen --stop-after 0 --out start    the initial weights
  python3 tools/bench/peer_language.py start                            the whole run

Everything comes from the run folder: config.json, tokenizer.json (characters), and the weights of
its checkpoint, which must be of step 0. Batches come in the same order (Philox4x32-10, as
core/math/philox.h), the learning rate, clipping and AdamW are those of the run. Prints the loss on
the validation text, nats per character, after every epoch.
"""
import argparse
import glob
import gzip
import json
import math
import os
import struct
import time

import numpy as np
import torch
import torch.nn.functional as F

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../datasets/samples/text")
SETS = {"austen": ["austen_northangerabbey.txt.gz", "austen_persuasion.txt.gz"]}
M64 = (1 << 64) - 1


# ---- the order of batches

def philox(seed, stream, block):
    """Four 32-bit words of each block: block is an array of uint64."""
    low = np.uint64(0xffffffff)
    c0, c1 = block & low, block >> np.uint64(32)
    c2 = np.full_like(block, stream & 0xffffffff)
    c3 = np.full_like(block, stream >> 32)
    k0, k1 = seed & 0xffffffff, seed >> 32
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        n0 = (p1 >> np.uint64(32)) ^ c1 ^ np.uint64(k0)
        n2 = (p0 >> np.uint64(32)) ^ c3 ^ np.uint64(k1)
        c1, c3 = p1 & low, p0 & low
        c0, c2 = n0, n2
        k0, k1 = (k0 + 0x9E3779B9) & 0xffffffff, (k1 + 0xBB67AE85) & 0xffffffff
    return np.stack([c0, c1, c2, c3], 1)


def random_words(seed, stream, n):
    blocks = np.arange((n + 3) // 4, dtype=np.uint64)
    high = philox(seed, stream, blocks).reshape(-1)
    low = philox(seed, stream ^ (1 << 63), blocks).reshape(-1)
    return [(int(h) << 32) | int(w) for h, w in zip(high[:n], low[:n])]


def epoch_order(n, seed, epoch):
    """Fisher and Yates with the words of the epoch's stream."""
    words = random_words(seed, 0x5A0FFE1 + epoch, n)
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        word, key, size = words[i], seed, i + 1
        surplus = (1 << 64) % size
        while ((word * size) & M64) < surplus:
            key = (key + 0x9E3779B97F4A7C15) & M64
            word = random_words(key, 0x5A0FFE1 + epoch, i + 1)[i]
        j = (word * size) >> 64
        order[i], order[j] = order[j], order[i]
    return np.array(order)


# ---- text

def windows(ids, context):
    n = (len(ids) - 1) // context
    return (torch.from_numpy(ids[:n * context].reshape(n, context)),
            torch.from_numpy(ids[1:n * context + 1].reshape(n, context)))


def read_text(path):
    opened = gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")
    with opened as file:
        return file.read()


def read_data(config, vocabulary):
    paths = SETS.get(config["data"])
    paths = [os.path.join(SAMPLES, p) for p in paths] if paths else [config["data"]]
    parts = ([], [])
    for path in paths:
        text = read_text(path)
        cut = len(text) - len(text) // 10
        while cut < len(text) and text[cut] & 0xC0 == 0x80:
            cut += 1
        for part, piece in zip(parts, (text[:cut], text[cut:])):
            part += [vocabulary[c] for c in piece.decode()]
    return [windows(np.array(p, dtype=np.int64), config["context"]) for p in parts]


# ---- the model, with the names of the file

def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size, = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + o for o in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], dtype=np.float32).copy()
        tensors[name] = torch.from_numpy(values.reshape(entry["shape"]))
    return tensors


def forward(p, x, layers, heads):
    batch, length = x.shape
    width = p["wte.weight"].shape[1]
    h = p["wte.weight"][x] + p["wpe.weight"][:length]
    mask = torch.triu(torch.full((length, length), -math.inf), 1)

    def norm(name, v):
        return F.layer_norm(v, (width,), p[name + ".weight"], p[name + ".bias"])

    def project(name, v):
        return torch.addmm(p[name + ".bias"], v.reshape(-1, v.shape[-1]),
                           p[name + ".weight"]).view(batch, length, -1)

    for i in range(layers):
        name = f"h.{i}."
        q, k, v = project(name + "attn.c_attn", norm(name + "ln_1", h)).view(
            batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1)) / math.sqrt(width // heads) + mask
        y = (torch.softmax(weights, -1) @ v).transpose(1, 2).reshape(batch, length, width)
        h = h + project(name + "attn.c_proj", y)
        y = F.gelu(project(name + "mlp.c_fc", norm(name + "ln_2", h)), approximate="tanh")
        h = h + project(name + "mlp.c_proj", y)
    return norm("ln_f", h) @ p["wte.weight"].t()


def loss_of(p, x, y, config):
    logits = forward(p, x, config["layers"] or 4, config["heads"] or 4)
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), y.reshape(-1))


def factor(config, step, total):
    if config["schedule"] == "constant":
        return 1.0
    if config["schedule"] == "cosine":
        return (1 + math.cos(math.pi * step / total)) / 2
    warm = max(total // 20, 1)
    if step < warm:
        return 0.05 + 0.95 * step / warm
    return (1 + math.cos(math.pi * (step - warm) / max(total - warm, 1))) / 2


def evaluate(p, data, config):
    x, y = data
    with torch.no_grad():
        sums = [float(loss_of(p, x[i:i + 64], y[i:i + 64], config)) * len(x[i:i + 64])
                for i in range(0, len(x), 64)]
    return sum(sums) / len(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with open(os.path.join(options.run, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    with open(os.path.join(options.run, "tokenizer.json"), encoding="utf-8") as file:
        vocabulary = json.load(file)["model"]["vocab"]
    if config["model"] != "gpt" or config["optimizer"] != "adamw" or config["dropout"] != 0:
        raise SystemExit("peer_language: needs a run of gpt with adamw and without dropout")
    start, = glob.glob(os.path.join(options.run, "checkpoint/step-000000000/model.safetensors"))
    p = read_safetensors(start)
    for value in p.values():
        value.requires_grad_()
    train, validation = read_data(config, vocabulary)
    batch, n = config["batch"], len(train[0])
    per_epoch = (n + batch - 1) // batch
    total = per_epoch * config["epochs"]
    optimizer = torch.optim.AdamW(p.values(), lr=config["lr"],
                                  weight_decay=config["weight_decay"])
    print(f"torch {torch.__version__}   {sum(v.numel() for v in p.values())} parameters   "
          f"{n} + {len(validation[0])} windows", flush=True)
    step, begin = 0, time.time()
    for epoch in range(config["epochs"]):
        order = epoch_order(n, config["seed"], epoch)
        for b in range(per_epoch):
            rows = order[b * batch:(b + 1) * batch]
            for group in optimizer.param_groups:
                group["lr"] = config["lr"] * factor(config, step, total)
            loss = loss_of(p, train[0][rows], train[1][rows], config)
            optimizer.zero_grad()
            loss.backward()
            if config["clip"] > 0:
                torch.nn.utils.clip_grad_norm_(p.values(), config["clip"])
            optimizer.step()
            step += 1
            if step <= 3 or step % 100 == 0:
                print(f"step {step}   loss {float(loss):.6f}", flush=True)
        seconds = time.time() - begin
        print(f"epoch {epoch + 1}/{config['epochs']}   validation "
              f"{evaluate(p, validation, config):.4f} nats/char   {step} steps in {seconds:.1f} s",
              flush=True)


if __name__ == "__main__":
    main()
