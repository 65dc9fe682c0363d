"""Learning-rate schedules as lists: the rate in force during epoch (or step) 0, 1, 2, …

Used by make_optim.py. Each schedule is a closed formula of the epoch and the base rate.
"""

import math
import warnings

import numpy as np
import torch
from torch.optim import lr_scheduler

from golden_file import GoldenFile

warnings.filterwarnings("ignore", "Detected call of `lr_scheduler.step")
warnings.filterwarnings("ignore", "The epoch parameter in")


def constant(e, o):
    return o["lr"]


def step(e, o):
    return o["lr"] * o["gamma"] ** (e // o["step_size"])


def multistep(e, o):
    return o["lr"] * o["gamma"] ** sum(m <= e for m in o["milestones"])


def exponential(e, o):
    return o["lr"] * o["gamma"] ** e


def cosine(e, o):
    """Loshchilov & Hutter 2017, equation 5, without restarts; periodic after T_max."""
    low = o.get("eta_min", 0.0)
    return low + (o["lr"] - low) * (1 + math.cos(math.pi * e / o["T_max"])) / 2


def cosine_restarts(e, o):
    """The same with restarts: cycles of T_0, T_0 T_mult, T_0 T_mult², … epochs."""
    length = o["T_0"]
    while e >= length:
        e, length = e - length, length * o.get("T_mult", 1)
    return cosine(e, {"lr": o["lr"], "eta_min": o.get("eta_min", 0.0), "T_max": length})


def polynomial(e, o):
    return o["lr"] * (1 - min(e, o["total_iters"]) / o["total_iters"]) ** o["power"]


def linear(e, o):
    part = min(e, o["total_iters"]) / o["total_iters"]
    return o["lr"] * (o["start_factor"] + (o.get("end_factor", 1.0) - o["start_factor"]) * part)


def warmup_cosine(e, o):
    """Linear from start_factor over warmup epochs, then a cosine from its own epoch 0."""
    if e < o["warmup"]:
        return linear(e, {**o, "total_iters": o["warmup"]})
    return cosine(e - o["warmup"], o)


def one_cycle(e, o):
    """Smith & Topin 2018: up to max_lr, down to a tiny rate; momentum the other way round."""
    top, low = o["max_lr"], o["max_lr"] / o.get("div_factor", 25.0)
    least = low / o.get("final_div_factor", 1e4)
    last, up = o["total_steps"] - 1, o.get("pct_start", 0.3) * o["total_steps"] - 1
    m_low, m_top = 0.85, 0.95
    if o.get("three_phase"):
        phases = [(0, up, low, top, m_top, m_low), (up, 2 * up, top, low, m_low, m_top),
                  (2 * up, last, low, least, m_top, m_top)]
    else:
        phases = [(0, up, low, top, m_top, m_low), (up, last, top, least, m_low, m_top)]
    for begin, end, lr_a, lr_b, m_a, m_b in phases:
        if e <= end or end == last:
            part = (e - begin) / (end - begin)
            if o.get("anneal_strategy", "cos") == "cos":
                part = (1 - math.cos(math.pi * part)) / 2
            return lr_a + (lr_b - lr_a) * part, m_a + (m_b - m_a) * part
    raise ValueError("epoch after the last phase")


def plateau(o, metrics):
    """Rate in force in each epoch; the metric of an epoch acts from the next epoch on."""
    lr, best, bad, cooldown, rates = o["lr"], None, 0, 0, []
    smaller = o.get("mode", "min") == "min"
    threshold, relative = o.get("threshold", 1e-4), o.get("threshold_mode", "rel") == "rel"
    for metric in metrics:
        rates.append(lr)
        if best is None:
            better = True
        elif smaller:
            better = metric < (best * (1 - threshold) if relative else best - threshold)
        else:
            better = metric > (best * (1 + threshold) if relative else best + threshold)
        best, bad = (metric, 0) if better else (best, bad + 1)
        if cooldown > 0:
            cooldown, bad = cooldown - 1, 0
        if bad > o.get("patience", 10):
            cooldown, bad = o.get("cooldown", 0), 0
            lowered = max(lr * o.get("factor", 0.1), o.get("min_lr", 0.0))
            lr = lowered if lr - lowered > 1e-8 else lr
    return rates


# case, formula, options, name and arguments of PyTorch's class (None: not compared)
CASES = [
    ("constant", constant, {"lr": 0.3}, ("LambdaLR", lambda o: {"lr_lambda": lambda e: 1.0})),
    ("step", step, {"lr": 0.5, "step_size": 3, "gamma": 0.5}, "StepLR"),
    ("multistep", multistep, {"lr": 0.5, "milestones": [2, 7, 8], "gamma": 0.1}, "MultiStepLR"),
    ("exponential", exponential, {"lr": 0.5, "gamma": 0.9}, "ExponentialLR"),
    ("cosine", cosine, {"lr": 0.5, "T_max": 19, "eta_min": 0.01}, "CosineAnnealingLR"),
    ("cosine_past_end", cosine, {"lr": 0.5, "T_max": 8}, "CosineAnnealingLR"),
    ("cosine_restarts", cosine_restarts, {"lr": 0.5, "T_0": 4, "eta_min": 0.02},
     "CosineAnnealingWarmRestarts"),
    ("cosine_restarts_growing", cosine_restarts, {"lr": 0.5, "T_0": 3, "T_mult": 2},
     "CosineAnnealingWarmRestarts"),
    ("linear", linear, {"lr": 0.5, "start_factor": 0.25, "end_factor": 0.75, "total_iters": 6},
     "LinearLR"),
    ("warmup_cosine", warmup_cosine,
     {"lr": 0.5, "start_factor": 0.1, "warmup": 5, "T_max": 14, "eta_min": 0.0}, None),
    ("polynomial", polynomial, {"lr": 0.5, "total_iters": 15, "power": 2.0}, "PolynomialLR"),
    ("polynomial_linear", polynomial, {"lr": 0.5, "total_iters": 25, "power": 1.0},
     "PolynomialLR"),
    ("FC_06e2_warm_restarts", cosine_restarts, {"lr": 1.0, "T_0": 2, "T_mult": 2, "epochs": 8},
     "CosineAnnealingWarmRestarts"),
    ("FC_0c17_warmup_then_cosine", warmup_cosine,
     {"lr": 1.0, "start_factor": 0.25, "warmup": 3, "T_max": 4, "epochs": 8}, None),
    ("FC_5b47_multistep", multistep, {"lr": 1.0, "milestones": [4], "gamma": 0.1, "epochs": 8},
     "MultiStepLR"),
    ("FC_5b47_cosine", cosine, {"lr": 1.0, "T_max": 10, "epochs": 8}, "CosineAnnealingLR"),
    ("FC_a7cf_cosine_after_end", cosine, {"lr": 1.0, "T_max": 4, "epochs": 10},
     "CosineAnnealingLR"),
    ("FC_a7cf_cosine_with_minimum", cosine,
     {"lr": 1.0, "T_max": 4, "eta_min": 0.2, "epochs": 6}, "CosineAnnealingLR"),
]

# What the field cases require, to six digits.
REQUIRED = {
    "FC_06e2_warm_restarts": [1, .5, 1, .853553, .5, .146447, 1, .961940],
    "FC_0c17_warmup_then_cosine": [.25, .5, .75, 1, .853553, .5, .146447, 0],
    "FC_5b47_multistep": [1, 1, 1, 1, .1, .1, .1, .1],
    "FC_a7cf_cosine_after_end": [1, .853553, .5, .146447, 0, .146447, .5, .853553, 1, .853553],
    "FC_a7cf_cosine_with_minimum": [1, .882843, .6, .317157, .2, .317157],
}

ONE_CYCLE = [
    ("one_cycle", {"max_lr": 1.0, "total_steps": 20}),
    ("one_cycle_linear", {"max_lr": 0.5, "total_steps": 20, "anneal_strategy": "linear",
                          "pct_start": 0.4, "div_factor": 10.0, "final_div_factor": 100.0}),
    ("one_cycle_three_phase", {"max_lr": 0.5, "total_steps": 20, "three_phase": True}),
]

LOSSES = [1.0, 0.8, 0.81, 0.8, 0.79995, 0.79, 0.795, 0.793, 0.7899, 0.79, 0.7, 0.71, 0.72, 0.73,
          0.71, 0.70, 0.72, 0.71, 0.75, 0.71]
PLATEAU = [
    ("plateau", LOSSES, {"lr": 0.5, "patience": 2, "factor": 0.5}),
    ("plateau_cooldown", LOSSES, {"lr": 0.5, "patience": 1, "factor": 0.1, "cooldown": 2,
                                  "min_lr": 0.01}),
    ("plateau_absolute", LOSSES, {"lr": 0.5, "patience": 1, "factor": 0.5, "threshold": 0.05,
                                  "threshold_mode": "abs"}),
    ("plateau_max", [1 - m for m in LOSSES], {"lr": 0.5, "mode": "max", "patience": 1,
                                              "factor": 0.5, "threshold": 0.02}),
]


def sgd(lr):
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr, momentum=0.9)


def torch_rates(make, lr, count, key="lr", metrics=None):
    optimizer = sgd(lr)
    schedule, rates = make(optimizer), []
    for epoch in range(count):
        rates.append(optimizer.param_groups[0][key])
        if epoch + 1 < count:
            schedule.step(*([] if metrics is None else [metrics[epoch]]))
    return rates


def near(name, got, want, tolerance=1e-12):
    worst = np.abs(np.array(got) - np.array(want)).max()
    if not worst <= tolerance:
        raise AssertionError(f"{name}: differs by {worst}\n{got}\n{want}")


def schedules():
    file = GoldenFile("schedules")
    for name, formula, options, other in CASES:
        count = options.get("epochs", 20)
        rates = [formula(e, options) for e in range(count)]
        if name in REQUIRED:
            near(name, rates, REQUIRED[name], 6e-7)
        arguments = {k: v for k, v in options.items() if k not in ("lr", "epochs")}
        if isinstance(other, tuple):
            other, arguments = other[0], other[1](options)
        if other:
            make = getattr(lr_scheduler, other)
            near(name, torch_rates(lambda o: make(o, **arguments), options["lr"], count), rates)
        file.add_case(name, {"schedule": formula.__name__, **options})
        file.add(name, "output", "lr", np.array(rates, dtype=np.float64))
    for name, options in ONE_CYCLE:
        pairs = [one_cycle(e, options) for e in range(options["total_steps"])]
        file.add_case(name, {"schedule": "one_cycle", **options})
        for key, values in zip(("lr", "momentum"), zip(*pairs)):
            near(name, torch_rates(lambda o: lr_scheduler.OneCycleLR(o, **options), 0.1,
                                   options["total_steps"], key), values)
            file.add(name, "output", key, np.array(values))
    for name, metrics, options in PLATEAU:
        rates = plateau(options, metrics)
        arguments = {k: v for k, v in options.items() if k != "lr"}
        near(name, torch_rates(lambda o: lr_scheduler.ReduceLROnPlateau(o, **arguments),
                               options["lr"], len(metrics), metrics=metrics), rates)
        if len(set(rates)) < 3:
            raise AssertionError(f"{name} falls less than twice: {rates}")
        file.add_case(name, {"schedule": "plateau", **options})
        file.add(name, "input", "metrics", np.array(metrics))
        file.add(name, "output", "lr", np.array(rates))
    return file
