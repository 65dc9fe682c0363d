#!/usr/bin/env python3
"""The workloads of `cutaway bench` in PyTorch, driven line by line through standard input.

The program answers `torch VERSION` when it is ready and then one line for each line it reads:
  losses NAME DTYPE THREADS N    the value after each of N steps from the start
  run NAME DTYPE THREADS STEPS   milliseconds of a step, peak memory in bytes (-1: unknown)
  quit                           ends the program
What goes wrong is answered as `error MESSAGE`. Shapes, values and optimisers are those of
tools/bench/workloads*.cpp.
"""
import ctypes
import gc
import math
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


# ---- values: the formula of fixed_values() in workloads.h

def unit(name, count):
    """Uniform numbers in [0, 1): SplitMix64 of the index and the FNV-1a hash of the name."""
    seed = 0xcbf29ce484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001b3) & 0xffffffffffffffff
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15)
        z += np.uint64(seed)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float64) * 2.0 ** -24


def values(name, sizes, scale=1.0):
    flat = ((2 * unit(name, math.prod(sizes)) - 1) * scale).astype(np.float32)
    return torch.from_numpy(flat.reshape(sizes))


def integers(name, sizes, end, power=1):
    u = unit(name, math.prod(sizes))
    v = u
    for _ in range(power - 1):
        v = v * u
    return torch.from_numpy((v * end).astype(np.int64).reshape(sizes))


def fix_parameters(model, transposed=()):
    """Parameters by their names. Those of layers named in `transposed` are stored the other way."""
    for name, p in model.named_parameters():
        with torch.no_grad():
            if p.dim() > 1:
                turned = any(part in transposed for part in name.split("."))
                sizes = tuple(p.shape[::-1]) if turned else tuple(p.shape)
                value = values(name, sizes, 1 / math.sqrt(p.numel() / sizes[0]))
                p.copy_(value.t() if turned else value)
            elif name.endswith("weight"):
                p.fill_(1)
            else:
                p.copy_(values(name, tuple(p.shape), 0.05))
    return model


# ---- ops: call on operands, and backward when there is an upstream gradient

def digest(t):
    return 0.0 if t is None else t.detach().double().abs().mean().item()


def op_case(call, operands, leaves=0, upstream=None):
    for t in operands[:leaves]:
        t.requires_grad_()
    result = [None]

    def step():
        for t in operands[:leaves]:
            t.grad = None
        result[0] = call(*operands)
        if upstream is not None:
            result[0].backward(upstream)

    def value():
        return digest(result[0]) + sum(digest(t.grad) for t in operands[:leaves])
    return step, value


def no_grad_case(call, operands):
    def quiet(*args):
        with torch.no_grad():
            return call(*args)
    return op_case(quiet, operands)


def add16(_):
    a, b = values("a", (16,)).requires_grad_(), values("b", (16,)).requires_grad_()
    result = [None]

    def step():
        result[0] = a + b
    return step, lambda: digest(result[0])


def tiny(_):
    x = values("x", (16,))
    return op_case(lambda a, b: torch.tanh(x * b + a).sum(),
                   [values("a", (16,)), values("b", (16,))], 2, torch.tensor(1.0))


def layernorm(backward):
    sizes = (4096, 768)
    operands = [values("x", sizes), values("weight", (768,)), values("b", (768,))]
    call = lambda x, w, b: F.layer_norm(x, (768,), w, b)
    if backward:
        return op_case(call, operands, 3, values("upstream", sizes))
    return no_grad_case(call, operands)


def softmax(backward):
    sizes = (4096, 1024)
    call = lambda x: torch.softmax(x, -1)
    if backward:
        return op_case(call, [values("x", sizes, 4)], 1, values("upstream", sizes))
    return no_grad_case(call, [values("x", sizes, 4)])


def scatter_rows(_):
    index = integers("index", (100000, 1), 10000).expand(100000, 64)
    return no_grad_case(lambda x, s: x.scatter_add(0, index, s),
                        [values("x", (10000, 64)), values("source", (100000, 64))])


def embedding_bags(_):
    ids = integers("ids", (512, 100), 20000, 3)
    return op_case(lambda w: F.embedding_bag(ids, w, mode="mean"), [values("weight", (20000, 64))],
                   1, values("upstream", (512, 64)))


def matmul(n):
    return no_grad_case(torch.matmul, [values("a", (n, n)), values("b", (n, n))])


def conv(batch, channels, image, groups):
    x = (batch, channels, image, image)
    weight = (channels, channels // groups, 3, 3)
    return op_case(lambda a, w, b: F.conv2d(a, w, b, padding=1, groups=groups),
                   [values("x", x), values("weight", weight, 0.1), values("b", (channels,))], 3,
                   values("upstream", x))


def causal_attention(q, k, v):
    """The fused form where PyTorch has one."""
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    length = q.shape[-2]
    key = (length, q.dtype)
    if key not in causal_attention.masks:
        causal_attention.masks[key] = torch.ones(length, length, dtype=torch.bool).triu(1)
    scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(q.shape[-1]))
    return scores.masked_fill(causal_attention.masks[key], float("-inf")).softmax(-1) @ v


causal_attention.masks = {}


def attention(batch, heads, length, width):
    sizes = (batch, heads, length, width)
    return op_case(causal_attention, [values(n, sizes) for n in ("q", "k", "v")], 3,
                   values("upstream", sizes))


# ---- models

class Perceptron(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(F.relu(x) if i else x)
        return x


class Grok(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(114, 128), nn.Embedding(3, 128)
        self.qkv = nn.Linear(128, 384, bias=False)
        self.project = nn.Linear(128, 128, bias=False)
        self.fc1, self.fc2 = nn.Linear(128, 512), nn.Linear(512, 128)
        self.head = nn.Linear(128, 113, bias=False)

    def attend(self, x):
        n = x.shape[0]
        q, k, v = (t.transpose(1, 2) for t in self.qkv(x).view(n, 3, 12, 32).chunk(3, 2))
        y = causal_attention(q, k, v)
        return self.project(y.transpose(1, 2).reshape(n, 3, 128))

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight
        x = x + self.attend(x)
        x = x + self.fc2(F.relu(self.fc1(x)))
        return self.head(x[:, -1])


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for p in self.c_attn(x).split(c, 2))
        y = causal_attention(q, k, v)
        return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln_2, self.mlp = nn.LayerNorm(width), Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, layers, heads, width, context, vocabulary=65):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


class BasicBlock(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.stride, self.more = stride, width - before

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.more:
            left = self.more // 2
            x = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, left, self.more - left))
        return F.relu(y + x)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        before = 16
        for stage, width in enumerate((16, 32, 64)):
            blocks = []
            for i in range(3):
                blocks.append(BasicBlock(before, width, 2 if stage and not i else 1))
                before = width
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


class CharLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(65, 256)
        self.lstm = nn.LSTM(256, 256, 2)
        self.head = nn.Linear(256, 65)

    def forward(self, ids):
        return self.head(self.lstm(self.tokens(ids))[0])


def optimizer(kind, model, **options):
    """The fused form where PyTorch has one on the CPU."""
    try:
        return kind(model.parameters(), fused=True, **options)
    except (TypeError, RuntimeError):
        return kind(model.parameters(), **options)


def training(dtype, model, kind, options, x, y, transposed=()):
    fix_parameters(model, transposed)
    adjust = optimizer(kind, model, **options)
    last = [None]

    def loss():
        logits = model(x)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))

    def step():
        if dtype == "bf16":
            with torch.autocast("cpu", dtype=torch.bfloat16):
                last[0] = loss()
        else:
            last[0] = loss()
        adjust.zero_grad(set_to_none=True)
        last[0].backward()
        adjust.step()
    return step, lambda: last[0].item()


ADAM = {"lr": 1e-3}


def mlp(dtype):
    return training(dtype, Perceptron((784, 256, 10)), torch.optim.Adam, ADAM,
                    values("x", (64, 784)), integers("y", (64,), 10))


def mlp1(dtype):
    return training(dtype, Perceptron((64, 64, 64, 10)), torch.optim.SGD, {"lr": 0.01},
                    values("x", (1, 64)), integers("y", (1,), 10))


def grok(dtype, batch):
    options = {"lr": 1e-3, "betas": (0.9, 0.98), "weight_decay": 1}
    return training(dtype, Grok(), torch.optim.AdamW, options, integers("ids", (batch, 3), 113),
                    integers("y", (batch,), 113))


def gpt(dtype, batch, layers, heads, width, context):
    return training(dtype, Gpt(layers, heads, width, context), torch.optim.AdamW, ADAM,
                    integers("ids", (batch, context), 65), integers("y", (batch, context), 65),
                    ("c_attn", "c_proj", "c_fc"))


def resnet20(dtype):
    return training(dtype, ResNet20(), torch.optim.SGD, {"lr": 1e-3, "momentum": 0.9},
                    values("x", (32, 3, 32, 32)), integers("y", (32,), 10))


def lstm(dtype):
    return training(dtype, CharLstm(), torch.optim.Adam, ADAM, integers("ids", (64, 32), 65),
                    integers("y", (64 * 32,), 65))


LARGE = (1 << 24,)
WORKLOADS = {
    "add16": add16,
    "tiny": tiny,
    "mlp": mlp,
    "mlp1": mlp1,
    "grok-512": lambda d: grok(d, 512),
    "grok-3830": lambda d: grok(d, 3830),
    "nanogpt": lambda d: gpt(d, 12, 4, 4, 128, 64),
    "gpt-mid": lambda d: gpt(d, 4, 6, 6, 384, 256),
    "resnet20": resnet20,
    "lstm": lstm,
    "conv3x3-16": lambda _: conv(32, 16, 32, 1),
    "conv3x3-64": lambda _: conv(16, 64, 28, 1),
    "conv3x3-256": lambda _: conv(8, 256, 14, 1),
    "depthwise-32": lambda _: conv(4, 32, 112, 32),
    "depthwise-128": lambda _: conv(16, 128, 28, 128),
    "depthwise-512": lambda _: conv(16, 512, 14, 512),
    "layernorm": lambda _: layernorm(False),
    "layernorm-backward": lambda _: layernorm(True),
    "softmax": lambda _: softmax(False),
    "softmax-backward": lambda _: softmax(True),
    "attention-64": lambda _: attention(32, 4, 64, 32),
    "attention-256": lambda _: attention(8, 6, 256, 64),
    "attention-1024": lambda _: attention(2, 8, 1024, 64),
    "embedding-bag": embedding_bags,
    "add-large": lambda _: no_grad_case(torch.add, [values("a", LARGE), values("b", LARGE)]),
    "cumsum": lambda _: no_grad_case(lambda x: x.cumsum(-1), [values("x", (4096, 1024))]),
    "sort": lambda _: no_grad_case(lambda x: x.sort(dim=-1, stable=True)[0],
                                   [values("x", (1024, 1024))]),
    "scatter-add": scatter_rows,
}
for size in (64, 128, 256, 512, 1024, 2048):
    WORKLOADS[f"matmul-{size}"] = lambda _, n=size: matmul(n)


# ---- memory: the peak of the process above what it holds without the workload

def status(field):
    try:
        with open("/proc/self/status", encoding="ascii") as f:
            for line in f:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return -1


def reset_peak():
    """Whether the kernel forgets the former peak."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as f:
            f.write("5")
        return True
    except OSError:
        return False


def keep_freed_blocks(keep):
    """As PyTorch has no cache of host memory, glibc gives its large blocks back to the system and
    fetches fresh pages for each result, at random: ops take up to six times as long. They are kept
    while time is measured, so that the comparison is with the fastest PyTorch, but not while memory
    is, which a heap with holes would exaggerate."""
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(-1, 2**31 - 1 if keep else 128 * 1024)  # M_TRIM_THRESHOLD
        libc.mallopt(-3, 128 * 1024)  # M_MMAP_THRESHOLD
        libc.mallopt(-4, 0 if keep else 65536)  # M_MMAP_MAX
    except (AttributeError, OSError):
        pass


def trim():
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        pass


class Current:
    """The workload that runs now, and the most memory that it needed."""

    def __init__(self):
        self.key, self.case, self.peak = None, None, -1

    def forget(self):
        self.key, self.case = None, None

    def prepare(self, name, dtype, threads):
        if self.key == (name, dtype, threads):
            return
        self.forget()
        keep_freed_blocks(False)
        warm = WORKLOADS[name](dtype)
        warm[0]()  # what libraries load at first use belongs to the idle footprint
        del warm
        trim()
        idle = status("VmRSS")
        self.case = WORKLOADS[name](dtype)
        trim()  # the formula of the values needs memory that is none of the workload's
        measured = reset_peak()
        for _ in range(10):
            self.case[0]()
        self.peak = max(0, status("VmHWM") - idle) if measured else -1
        keep_freed_blocks(True)
        self.key = (name, dtype, threads)


def answer(words, current):
    command, name, dtype, threads, count = words
    if name not in WORKLOADS:
        return f"error there is no workload {name}"
    torch.set_num_threads(int(threads))
    if command == "losses":
        current.forget()  # two at once would count in the peak
        step, value = WORKLOADS[name](dtype)
        found = []
        for _ in range(int(count)):
            step()
            found.append(value())
        return "losses " + " ".join(repr(v) for v in found)
    current.prepare(name, dtype, threads)
    step = current.case[0]
    begin = time.perf_counter()
    for _ in range(int(count)):
        step()
    return f"{(time.perf_counter() - begin) * 1e3 / int(count)!r} {current.peak}"


def main():
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    out.write(f"torch {torch.__version__}\n")
    current = Current()
    for line in sys.stdin:
        words = line.split()
        if words == ["quit"]:
            break
        try:
            out.write(answer(words, current) + "\n")
        except Exception as e:  # pylint: disable=broad-except
            out.write("error " + " ".join(f"{type(e).__name__}: {e}".split()) + "\n")


main()
