#!/usr/bin/env python3
"""Writes torch_layers.tsv: every layer of torch.nn and every argument of its constructor.

  python3 tests/nn/parity/torch_layers.py

Needs python3-torch. The test Parity.* asks that each line be answered by the table beside it.
"""

import inspect
import os

import torch
from torch import nn

ABSTRACT = {"Module", "Container", "RNNBase", "RNNCellBase", "NLLLoss2d"}
RECURRENT = {"LSTM", "GRU", "RNN"}    # their own signatures are (*args, **kwargs)


def arguments(name, kind):
    if name in RECURRENT:
        found = list(inspect.signature(nn.RNNBase.__init__).parameters.values())[2:]
        if name != "LSTM":
            found = [p for p in found if p.name != "proj_size"]
        names = [p.name for p in found]
        return names + (["nonlinearity"] if name == "RNN" else [])
    found = list(inspect.signature(kind.__init__).parameters.values())[1:]
    return [p.name for p in found if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_layers.tsv")
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"# torch.nn {torch.__version__.split('a')[0]}: layer, arguments\n")
        for name in sorted(dir(nn)):
            kind = getattr(nn, name)
            if not inspect.isclass(kind) or not issubclass(kind, nn.Module) or name in ABSTRACT:
                continue
            out.write("\t".join([name] + arguments(name, kind)) + "\n")


if __name__ == "__main__":
    main()
