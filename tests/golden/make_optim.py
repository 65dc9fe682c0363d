#!/usr/bin/env python3
"""Makes the reference files of optimisers and learning-rate schedules.

  python3 tests/golden/make_optim.py            writes optim and schedules
  python3 tests/golden/make_optim.py --check    compares with the stored files (1e-9)

The trajectories are computed here, in NumPy, from the published update formulas; PyTorch then
runs the same steps and must agree to 1e-12. The schedules are closed formulas of the epoch, again
compared with PyTorch where it has the schedule. Needs python3-torch and python3-numpy.
"""

import sys

sys.dont_write_bytecode = True

import numpy as np
import torch

from golden_file import GoldenFile, as_f32_values, finish, random_for
from make_schedules import schedules

STEPS = 10
TOLERANCE = 1e-12


def start():
    """Two parameters of different shape and the constants of the problem."""
    random = random_for("optim", "problem")
    weight = as_f32_values(random.standard_normal((3, 2)))
    bias = as_f32_values(random.standard_normal(3))
    return {"weight": weight, "bias": bias}


U, C = np.array([0.5, -1.25]), np.array([0.75, -0.5, 0.25])


def gradient(p):
    """Of f = Σ (tanh(W u + b) − c)² + 0.05 Σ W⁴ + 0.1 Σ cos(3 b), derived by hand."""
    t = np.tanh(p["weight"] @ U + p["bias"])
    inner = 2 * (t - C) * (1 - t * t)
    return {"weight": np.outer(inner, U) + 0.2 * p["weight"] ** 3,
            "bias": inner - 0.3 * np.sin(3 * p["bias"])}


def torch_loss(p):
    t = torch.tanh(p["weight"] @ torch.tensor(U) + p["bias"])
    return ((t - torch.tensor(C)) ** 2).sum() + 0.05 * (p["weight"] ** 4).sum() + \
        0.1 * torch.cos(3 * p["bias"]).sum()


def sgd(x, g, s, o):
    """Sutskever et al. 2013 in the form b ← μ b + (1 − d) g, b₁ = g; x ← x − lr b."""
    g = -g if o.get("maximize") else g
    g = g + o.get("weight_decay", 0) * x
    mu = o.get("momentum", 0)
    if mu:
        first = "momentum_buffer" not in s
        s["momentum_buffer"] = g if first else \
            mu * s["momentum_buffer"] + (1 - o.get("dampening", 0)) * g
        g = g + mu * s["momentum_buffer"] if o.get("nesterov") else s["momentum_buffer"]
    return x - o["lr"] * g


def adam(x, g, s, o, decoupled=False):
    """Kingma & Ba 2015, algorithm 1; amsgrad: Reddi et al. 2018 with the maximum of v itself."""
    g = -g if o.get("maximize") else g
    decay = o.get("weight_decay", 0)
    if decoupled:
        x = x * (1 - o["lr"] * decay)
    else:
        g = g + decay * x
    b1, b2 = o.get("betas", (0.9, 0.999))
    s["step"] = s.get("step", 0) + 1
    s["exp_avg"] = b1 * s.get("exp_avg", 0) + (1 - b1) * g
    s["exp_avg_sq"] = b2 * s.get("exp_avg_sq", 0) + (1 - b2) * g * g
    v = s["exp_avg_sq"]
    if o.get("amsgrad"):
        v = s["max_exp_avg_sq"] = np.maximum(s.get("max_exp_avg_sq", 0), v)
    m_hat = s["exp_avg"] / (1 - b1 ** s["step"])
    v_hat = v / (1 - b2 ** s["step"])
    return x - o["lr"] * m_hat / (np.sqrt(v_hat) + o.get("eps", 1e-8))


def adamw(x, g, s, o):
    """Loshchilov & Hutter 2019, algorithm 2: the decay acts on x, scaled by lr only."""
    return adam(x, g, s, {"weight_decay": 1e-2, **o}, decoupled=True)


def rmsprop(x, g, s, o):
    """Hinton's lecture 6e; centered: Graves 2013, variance instead of the second moment."""
    g = g + o.get("weight_decay", 0) * x
    a = o.get("alpha", 0.99)
    s["square_avg"] = a * s.get("square_avg", 0) + (1 - a) * g * g
    v = s["square_avg"]
    if o.get("centered"):
        s["grad_avg"] = a * s.get("grad_avg", 0) + (1 - a) * g
        v = v - s["grad_avg"] ** 2
    step = g / (np.sqrt(v) + o.get("eps", 1e-8))
    if o.get("momentum", 0):
        s["momentum_buffer"] = o["momentum"] * s.get("momentum_buffer", 0) + step
        step = s["momentum_buffer"]
    return x - o["lr"] * step


def adagrad(x, g, s, o):
    """Duchi et al. 2011, diagonal form; lr falls as lr / (1 + (step − 1) lr_decay)."""
    g = g + o.get("weight_decay", 0) * x
    s["step"] = s.get("step", 0) + 1
    s["sum"] = s.get("sum", o.get("initial_accumulator_value", 0)) + g * g
    lr = o["lr"] / (1 + (s["step"] - 1) * o.get("lr_decay", 0))
    return x - lr * g / (np.sqrt(s["sum"]) + o.get("eps", 1e-10))


SGD_LR = [0.1, 0.1, 0.05, 0.2, 0.2, 0.01, 0.01, 0.1, 0.0, 0.1]
RULES = {"SGD": sgd, "Adam": adam, "AdamW": adamw, "RMSprop": rmsprop, "Adagrad": adagrad}
CASES = [
    ("sgd.plain", "SGD", {"lr": 0.1}),
    ("sgd.momentum", "SGD", {"lr": 0.1, "momentum": 0.9}),
    ("sgd.nesterov", "SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("sgd.dampening", "SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    ("sgd.weight_decay", "SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("sgd.nesterov_weight_decay", "SGD",
     {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.05}),
    ("sgd.maximize", "SGD", {"lr": 0.02, "momentum": 0.9, "maximize": True}),
    ("sgd.lr_changes", "SGD", {"lr": SGD_LR, "momentum": 0.9}),
    ("sgd.skipped", "SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1,
                            "no_gradient": {"bias": [0, 4]}}),
    ("adam.plain", "Adam", {"lr": 0.1}),
    ("adam.betas_eps", "Adam", {"lr": 0.05, "betas": [0.8, 0.95], "eps": 1e-3}),
    ("adam.weight_decay", "Adam", {"lr": 0.1, "weight_decay": 0.1}),
    ("adam.amsgrad", "Adam", {"lr": 0.1, "betas": [0.9, 0.5], "amsgrad": True}),
    ("adam.maximize", "Adam", {"lr": 0.05, "maximize": True}),
    ("adam.lr_changes", "Adam", {"lr": SGD_LR}),
    ("adamw.default_decay", "AdamW", {"lr": 0.1}),
    ("adamw.weight_decay", "AdamW", {"lr": 0.1, "weight_decay": 0.3}),
    ("adamw.no_decay", "AdamW", {"lr": 0.1, "weight_decay": 0.0}),
    ("adamw.amsgrad", "AdamW",
     {"lr": 0.1, "betas": [0.9, 0.5], "weight_decay": 0.1, "amsgrad": True}),
    ("adamw.lr_changes", "AdamW", {"lr": SGD_LR, "weight_decay": 0.3}),
    ("adamw.skipped", "AdamW", {"lr": 0.1, "weight_decay": 0.5,
                                "no_gradient": {"bias": [0, 4], "weight": [4, 9]}}),
    ("rmsprop.plain", "RMSprop", {"lr": 0.02}),
    ("rmsprop.alpha_eps", "RMSprop", {"lr": 0.02, "alpha": 0.8, "eps": 1e-3}),
    ("rmsprop.centered", "RMSprop", {"lr": 0.02, "alpha": 0.9, "centered": True}),
    ("rmsprop.momentum", "RMSprop", {"lr": 0.02, "momentum": 0.7}),
    ("rmsprop.centered_momentum_decay", "RMSprop",
     {"lr": 0.02, "centered": True, "momentum": 0.7, "weight_decay": 0.1}),
    ("adagrad.plain", "Adagrad", {"lr": 0.3}),
    ("adagrad.lr_decay", "Adagrad", {"lr": 0.3, "lr_decay": 0.2}),
    ("adagrad.start_decay", "Adagrad",
     {"lr": 0.3, "initial_accumulator_value": 0.5, "weight_decay": 0.1}),
]


def options_at(options, step):
    o = {k: v for k, v in options.items() if k != "no_gradient"}
    if isinstance(o["lr"], list):
        o["lr"] = o["lr"][step]
    return o


def skipped(options, name, step):
    return step in options.get("no_gradient", {}).get(name, [])


def trajectory(optimizer, options):
    """Gradient met and value reached by each parameter in each step, and the last state."""
    p, states = start(), {"weight": {}, "bias": {}}
    gradients, values = {n: [] for n in p}, {n: [] for n in p}
    for step in range(STEPS):
        g = gradient(p)
        for name in p:
            if skipped(options, name, step):
                g[name] = np.zeros_like(g[name])    # stored, but the test must not feed it
            else:
                p[name] = RULES[optimizer](p[name], g[name], states[name],
                                           options_at(options, step))
            gradients[name].append(g[name])
            values[name].append(p[name])
    return gradients, values, states


def compare_with_torch(name, optimizer, options, values):
    p = {n: torch.tensor(v, requires_grad=True) for n, v in start().items()}
    first = options_at(options, 0)
    if "betas" in first:
        first["betas"] = tuple(first["betas"])
    torch_optimizer = getattr(torch.optim, optimizer)(list(p.values()), **first)
    for step in range(STEPS):
        torch_optimizer.param_groups[0]["lr"] = options_at(options, step)["lr"]
        torch_optimizer.zero_grad(set_to_none=True)
        torch_loss(p).backward()
        for n in p:
            if skipped(options, n, step):
                p[n].grad = None
        torch_optimizer.step()
        for n in p:
            worst = np.abs(p[n].detach().numpy() - values[n][step]).max()
            if not worst <= TOLERANCE:
                raise AssertionError(f"{name}: {n} differs from PyTorch by {worst} in {step}")


def optim():
    file = GoldenFile("optim")
    for name, optimizer, options in CASES:
        gradients, values, states = trajectory(optimizer, options)
        compare_with_torch(name, optimizer, options, values)
        file.add_case(name, {"optimizer": optimizer, "steps": STEPS, **options})
        for n, initial in start().items():
            file.add(name, "param", n, initial.astype(np.float32))
            file.add(name, "grad", n, np.stack(gradients[n]))
            file.add(name, "output", n, np.stack(values[n]))
            for key, state in states[n].items():
                state = np.asarray(state)
                file.add(name, "state", f"{n}.{key}", state)
    return file


finish([optim(), schedules()], sys.argv[1:])
