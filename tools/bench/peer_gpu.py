#!/usr/bin/env python3
"""The training steps of `cutaway bench gpu` in PyTorch, on the same sizes: GPT-2 small in bf16 and
ResNet-50 in f32, eager. Needs PyTorch with CUDA; `--small` tries it on the CPU."""
import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2)
                   for y in self.c_attn(self.ln_1(x)).split(w, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(b, t, w))
        return x + self.down(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary, context, layers, heads, width):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.h = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        return F.linear(self.ln_f(self.h(x)), self.wte.weight)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != 4 * width:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False),
                                          nn.BatchNorm2d(4 * width))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
              nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for i in range(count):
            layers.append(Bottleneck(inputs, width, 2 if stage > 0 and i == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def measure(name, device, rounds, model, loss):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    times = []
    for i in range(rounds + 3):
        wait()
        begin = time.perf_counter()
        loss(model).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        wait()
        if i >= 3:
            times.append(time.perf_counter() - begin)
    ms = 1000 * statistics.median(times)
    print(f"{name:<38} {ms:10.3f} ms {1000 / ms:10.1f} steps/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    small = parser.parse_args().small
    device = "cpu" if small else "cuda"
    print(f"PyTorch {torch.__version__} on {device}")
    rounds = 1 if small else 11
    torch.manual_seed(0)
    sizes = (50, 16, 2, 2, 16) if small else (50257, 1024, 12, 12, 768)
    batch = 1 if small else 8
    tokens = torch.randint(sizes[0], (batch, sizes[1]), device=device)
    targets = torch.randint(sizes[0], (batch, sizes[1]), device=device)
    gpt = Gpt(*sizes).to(device).to(torch.bfloat16)
    measure("GPT-2 small, bf16, 8 x 1024 tokens", device, rounds, gpt,
            lambda m: F.cross_entropy(m(tokens).flatten(0, 1), targets.flatten()))
    del gpt
    count, side = (2, 64) if small else (64, 224)
    images = torch.randn(count, 3, side, side, device=device)
    labels = torch.randint(1000, (count,), device=device)
    measure("ResNet-50, f32, 64 images of 224", device, rounds, resnet50().to(device),
            lambda m: F.cross_entropy(m(images), labels))


if __name__ == "__main__":
    main()
