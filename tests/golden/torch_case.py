"""Records one case: inputs, parameters, outputs, random upstream gradients and all gradients."""

import numpy as np
import torch

from golden_file import GoldenFile, as_f32_values, random_for

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)


class Group(GoldenFile):
    """One file of cases computed by PyTorch in f64."""

    def case(self, name, op, **options):
        return Case(self, name, op, options)


class Case:
    """Collects what goes in, then `done` computes and records what comes out."""

    def __init__(self, group, name, op, options):
        self.group, self.name, self.options = group, name, options
        self.random = random_for(group.name, name)
        self.leaves = {}
        group.add_case(name, {"op": op, **options})

    def randn(self, *shape, scale=1.0, shift=0.0):
        return as_f32_values(self.random.standard_normal(shape) * scale + shift)

    def _leaf(self, kind, name, values):
        values = as_f32_values(values)
        self.group.add(self.name, kind, name, values.astype(np.float32))
        leaf = torch.tensor(values, requires_grad=True)
        if name in self.leaves:
            raise ValueError(f"{self.name}: {name} twice")
        self.leaves[name] = leaf
        return leaf

    def input(self, name, *shape, values=None, scale=1.0, shift=0.0):
        """Float input with a gradient: given values, or normal numbers of the shape."""
        if values is None:
            values = self.randn(*shape, scale=scale, shift=shift)
        return self._leaf("input", name, values)

    def param(self, name, *shape, values=None, scale=0.5, shift=0.0):
        """Like input, for what a layer would hold under this state-dict key."""
        if values is None:
            values = self.randn(*shape, scale=scale, shift=shift)
        return self._leaf("param", name, values)

    def fixed(self, name, values):
        """Input without a gradient: indices, masks, class weights."""
        values = np.asarray(values)
        if values.dtype.kind == "f":
            values = values.astype(np.float32)
            self.group.add(self.name, "input", name, values)
            return torch.tensor(values.astype(np.float64))
        if values.dtype.kind == "i":
            values = values.astype(np.int64)
        self.group.add(self.name, "input", name, values)
        return torch.tensor(values)

    def fill(self, module):
        """Gives a module random parameters and records them; norms get weights around 1."""
        for name, parameter in module.named_parameters():
            around_one = name.endswith("weight") and parameter.dim() == 1
            values = self.randn(*parameter.shape, scale=0.3, shift=1.0 if around_one else 0.0)
            self.group.add(self.name, "param", name, values.astype(np.float32))
            parameter.data = torch.tensor(values)
            self.leaves[name] = parameter
        return module

    def buffers(self, module, kind):
        for name, buffer in module.named_buffers():
            values = buffer.detach().numpy().copy()
            if kind == "buffer" and values.dtype.kind == "f":
                values = values.astype(np.float32)
            self.group.add(self.name, kind, name, values)

    def done(self, outputs):
        """Records outputs (a tensor named y, or a dict) and the gradients of every leaf."""
        if torch.is_tensor(outputs):
            outputs = {"y": outputs}
        roots, upstreams = [], []
        for name, output in outputs.items():
            self.group.add(self.name, "output", name, output.detach().numpy())
            if not output.requires_grad:
                continue
            upstream = self.randn(*output.shape)
            self.group.add(self.name, "upstream", name, upstream.astype(np.float32))
            roots.append(output)
            upstreams.append(torch.tensor(upstream))
        gradients = torch.autograd.grad(roots, list(self.leaves.values()), upstreams)
        for name, gradient in zip(self.leaves, gradients):
            self.group.add(self.name, "grad", name, gradient.numpy())
