"""Cases of layers of torch.nn beyond those of the other files, called as modules."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import spectral_norm, weight_norm
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from golden_file import as_f32_values
from torch_case import Group

# class, shape of x, options
PLAIN = [
    ("GLU", (4, 3), {"dim": 0}, "rows"), ("GLU", (3, 6), {"dim": -1}, ""),
    ("Softmin", (3, 4), {"dim": 0}, ""), ("Softmax2d", (2, 3, 2, 2), {}, ""),
    ("Hardshrink", (4, 5), {"lambd": 0.8}, ""), ("Softshrink", (4, 5), {"lambd": 0.8}, ""),
    ("Tanhshrink", (4, 5), {}, ""), ("Threshold", (4, 5), {"threshold": 0.3, "value": -2.0}, ""),
    ("RReLU", (4, 5), {"lower": 0.1, "upper": 0.4}, ""),
    ("ConstantPad1d", (2, 2, 4), {"padding": [1, 2], "value": 1.5}, ""),
    ("ConstantPad2d", (2, 2, 3, 4), {"padding": [1, 2, 0, -1], "value": 1.5}, ""),
    ("ConstantPad3d", (1, 2, 2, 3, 2), {"padding": [1, 0, 2, 1, 0, 1], "value": -1.0}, ""),
    ("ZeroPad2d", (2, 2, 3, 4), {"padding": [1, 1, 1, 1]}, ""),
    ("ReflectionPad1d", (2, 2, 5), {"padding": [2, 1]}, ""),
    ("ReflectionPad2d", (1, 2, 4, 5), {"padding": [2, 1, 1, 3]}, ""),
    ("ReflectionPad3d", (1, 1, 3, 3, 4), {"padding": [2, 1, 1, 0, 1, 2]}, ""),
    ("ReplicationPad1d", (2, 2, 5), {"padding": [2, 1]}, ""),
    ("ReplicationPad2d", (1, 2, 4, 3), {"padding": [2, 1, 1, 3]}, ""),
    ("ReplicationPad3d", (1, 1, 3, 2, 3), {"padding": [2, 1, 1, 0, 1, 2]}, ""),
    ("LPPool1d", (2, 2, 7), {"norm_type": 3, "kernel_size": 3, "stride": 2}, ""),
    ("LPPool2d", (1, 2, 5, 6), {"norm_type": 2, "kernel_size": [2, 3], "ceil_mode": True}, ""),
    ("LocalResponseNorm", (2, 5, 3), {"size": 3, "alpha": 0.4, "beta": 0.6, "k": 1.3}, ""),
    ("LocalResponseNorm", (2, 5, 2, 2), {"size": 4, "alpha": 0.4}, "even"),
    ("Unfold", (2, 2, 4, 5), {"kernel_size": [2, 3], "dilation": [2, 1], "padding": [1, 0],
                              "stride": [1, 2]}, ""),
    ("Fold", (2, 8, 6), {"output_size": [3, 4], "kernel_size": [2, 2]}, ""),
    ("Fold", (1, 8, 4), {"output_size": [3, 4], "kernel_size": [2, 2], "dilation": [2, 1],
                         "padding": [1, 0], "stride": [2, 2]}, "options"),
    ("UpsamplingNearest2d", (1, 2, 2, 3), {"size": [5, 4]}, ""),
    ("UpsamplingBilinear2d", (1, 2, 2, 3), {"scale_factor": 2}, ""),
]


def plain(group):
    for kind, shape, options, tag in PLAIN:
        case = group.case(".".join(filter(None, (kind, tag))), kind, **options)
        # Elements of windows of LPPool are positive: a root of a negative sum is not a number.
        x = case.input("x", values=abs(case.randn(*shape)) + 0.1) if kind.startswith("LPPool") \
            else case.input("x", *shape, scale=1.5)
        call = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
        case.done(getattr(nn, kind)(**call).eval()(x))
    case = group.case("ChannelShuffle", "ChannelShuffle", groups=3)
    # PyTorch 1.13 has no derivative of its own.
    case.done(case.input("x", 2, 6, 2, 2).unflatten(1, (3, 2)).transpose(1, 2).flatten(1, 2))
    for dims, shape, padding in ((1, (2, 2, 4), [2, 1]), (2, (1, 2, 3, 4), [1, 2, 2, 0])):
        case = group.case(f"CircularPad{dims}d", f"CircularPad{dims}d", padding=padding)
        case.done(F.pad(case.input("x", *shape), padding, mode="circular"))
    for dims, shape, options in ((1, (2, 2, 7), {"kernel_size": 2}),
                                 (2, (1, 2, 5, 6), {"kernel_size": 2, "stride": 3, "padding": 1}),
                                 (3, (1, 1, 4, 4, 4), {"kernel_size": 2})):
        case = group.case(f"MaxUnpool{dims}d", f"MaxUnpool{dims}d", **options)
        values, indices = getattr(nn, f"MaxPool{dims}d")(**options, return_indices=True)(
            case.input("x", *shape))
        case.done(getattr(nn, f"MaxUnpool{dims}d")(**options)(values, indices,
                                                             output_size=list(shape)))


def norms(group):
    for dims, shape in ((1, (3, 2, 5)), (2, (2, 3, 3, 2))):
        for train in (True, False):
            options = {"num_features": shape[1], "affine": True, "track_running_stats": True,
                       "momentum": 0.3}
            name = f"InstanceNorm{dims}d.{'train' if train else 'eval'}"
            case = group.case(name, f"InstanceNorm{dims}d", **options, train=train)
            layer = case.fill(getattr(nn, f"InstanceNorm{dims}d")(**options)).train(train)
            layer.running_mean.copy_(torch.tensor(case.randn(shape[1])))
            layer.running_var.copy_(torch.tensor(as_f32_values(abs(case.randn(shape[1])) + 0.5)))
            case.buffers(layer, "buffer")
            y = layer(case.input("x", *shape))
            case.done(y)
            case.buffers(layer, "after")
    for name, module, options in (
            ("linear", nn.Linear(4, 3), {}), ("linear_columns", nn.Linear(4, 3), {"dim": 1}),
            ("linear_whole", nn.Linear(4, 3), {"dim": None}), ("conv", nn.Conv1d(2, 3, 2), {})):
        case = group.case(f"weight_norm.{name}", f"weight_norm.{name.split('_')[0]}", **options)
        layer = case.fill(weight_norm(module, **options))
        case.done(layer(case.input("x", *((2, 2, 5) if name == "conv" else (3, 4)))))
    for name, module, dim in (("linear", nn.Linear(4, 3), 0),
                              ("transposed", nn.ConvTranspose1d(2, 3, 2), 1)):
        for train in (True, False):
            case = group.case(f"spectral_norm.{name}_{'train' if train else 'eval'}",
                              f"spectral_norm.{name}", train=train)
            layer = spectral_norm(type(module)(*((4, 3) if name == "linear" else (2, 3, 2))))
            case.fill(layer).train(train)
            for vector in (layer.weight_u, layer.weight_v):
                start = case.randn(*vector.shape)
                vector.copy_(torch.tensor(as_f32_values(start / np.linalg.norm(start))))
            case.buffers(layer, "buffer")
            case.done(layer(case.input("x", *((3, 4) if name == "linear" else (2, 2, 4)))))
            case.buffers(layer, "after")


def embeddings(group):
    ids = np.array([[1, 4, 1], [0, 5, 1]])
    for name, options in (("max_norm", {"max_norm": 1.0}),
                          ("max_norm_1", {"max_norm": 1.5, "norm_type": 1.0}),
                          ("frequency", {"scale_grad_by_freq": True})):
        case = group.case(f"Embedding.{name}", "Embedding", num_embeddings=6, embedding_dim=3,
                          **options)
        layer = nn.Embedding(6, 3, **options)
        case.param("weight", 6, 3, scale=1.0)
        layer.weight.data = case.leaves["weight"].detach().clone()
        case.leaves["weight"] = layer.weight
        case.done(layer(case.fixed("ids", ids)))
    flat, offsets = np.array([1, 4, 1, 0, 5, 1, 2]), np.array([0, 2, 2, 5])
    for mode in ("sum", "mean", "max"):
        for name, options in (("bags", {}), ("padding", {"padding_idx": 1}),
                              ("offsets", {"offsets": True}),
                              ("last_offset", {"include_last_offset": True}),
                              ("frequency", {"scale_grad_by_freq": True}),
                              ("max_norm", {"max_norm": 1.0}), ("weights", {"weights": True})):
            if (name == "weights" and mode != "sum") or (name == "frequency" and mode == "max"):
                continue
            made = {k: v for k, v in options.items() if k not in ("offsets", "weights")}
            case = group.case(f"EmbeddingBag.{mode}_{name}", "EmbeddingBag", num_embeddings=6,
                              embedding_dim=3, mode=mode, **made)
            layer = nn.EmbeddingBag(6, 3, mode=mode, **made)
            case.param("weight", 6, 3, scale=1.0)
            layer.weight.data = case.leaves["weight"].detach().clone()
            case.leaves["weight"] = layer.weight
            weights = None
            if name in ("offsets", "last_offset"):
                last = [7] if name == "last_offset" else []
                call = (case.fixed("ids", flat),
                        case.fixed("offsets", np.concatenate([offsets, last]).astype(int)))
            else:
                call = (case.fixed("ids", ids),)
            if name == "weights":
                weights = case.input("weights", 2, 3)
            if name == "frequency":    # PyTorch 1.13 takes the count of another row here
                rows = F.embedding(call[0], layer.weight, scale_grad_by_freq=True)
                case.done(getattr(rows, mode)(1))
                continue
            case.done(layer(*call, per_sample_weights=weights))


def recurrent(group):
    for name, kind, options in (
            ("tanh", "RNN", {"num_layers": 2, "bidirectional": True}),
            ("relu", "RNN", {"nonlinearity": "relu"}), ("projected", "LSTM", {"proj_size": 2}),
            ("projected_both", "LSTM", {"proj_size": 2, "num_layers": 2, "bidirectional": True})):
        case = group.case(f"{kind}.{name}", kind, input_size=3, hidden_size=4, **options)
        layer = case.fill(getattr(nn, kind)(3, 4, **options))
        y, last = layer(case.input("x", 4, 2, 3))
        outputs = {"y": y}
        outputs.update({"h_n": last[0], "c_n": last[1]} if kind == "LSTM" else {"h_n": last})
        case.done(outputs)
    for kind in ("RNN", "GRU", "LSTM"):
        lengths = [2, 4, 1]
        case = group.case(f"{kind}.packed", f"{kind}.packed", input_size=3, hidden_size=4,
                          num_layers=2, bidirectional=True, lengths=lengths)
        layer = case.fill(getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True))
        x = case.input("x", 4, 3, 3)
        packed = pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
        y, last = layer(packed)
        padded, _ = pad_packed_sequence(y, padding_value=-1.0, total_length=5)
        outputs = {"data": y.data, "y": padded}
        outputs.update({"h_n": last[0], "c_n": last[1]} if kind == "LSTM" else {"h_n": last})
        case.done(outputs)
    for nonlinearity in ("tanh", "relu"):
        case = group.case(f"RNNCell.{nonlinearity}", "RNNCell", input_size=3, hidden_size=4,
                          nonlinearity=nonlinearity)
        cell = case.fill(nn.RNNCell(3, 4, nonlinearity=nonlinearity))
        case.done(cell(case.input("x", 2, 3), case.input("h", 2, 4)))


def turned(x, base=10000.0, interleaved=False):
    """Rotary positions, pair by pair."""
    steps, width = x.shape[-2:]
    angle = torch.arange(steps)[:, None] * base ** (-2.0 * torch.arange(width // 2) / width)
    c, s = torch.cos(angle), torch.sin(angle)
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * c - b * s, b * c + a * s), -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat((a * c - b * s, b * c + a * s), -1)


def grouped_query(case, rotary):
    """Four query heads that share two heads of keys and values, from the formula."""
    x = case.input("x", 2, 3, 8)
    in_weight, in_bias = case.param("in_proj_weight", 16, 8), case.param("in_proj_bias", 16)
    out_weight, out_bias = case.param("out_proj.weight", 8, 8), case.param("out_proj.bias", 8)
    q, k, v = F.linear(x, in_weight, in_bias).split((8, 4, 4), -1)
    q, k, v = (t.unflatten(-1, (-1, 2)).transpose(1, 2) for t in (q, k, v))
    if rotary:
        q, k = turned(q), turned(k)
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    scores = q @ k.transpose(-1, -2) / math.sqrt(2)
    scores = scores.masked_fill(~torch.ones(3, 3).tril().bool(), -math.inf)
    y = (torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2)
    case.done(F.linear(y, out_weight, out_bias))


def attention(group):
    for name, options in (("zero_attn", {"add_zero_attn": True}),
                          ("both", {"add_bias_kv": True, "add_zero_attn": True})):
        case = group.case(f"MultiheadAttention.{name}", "MultiheadAttention", embed_dim=8,
                          num_heads=2, **options)
        layer = case.fill(nn.MultiheadAttention(8, 2, batch_first=True, **options))
        q, k = case.input("query", 2, 3, 8), case.input("key", 2, 4, 8)
        mask = case.fixed("attn_mask", ~np.tri(3, 4, dtype=bool))
        padding = case.fixed("key_padding_mask",
                             np.array([[False] * 4, [False, False, True, True]]))
        y, weights = layer(q, k, k, attn_mask=mask, key_padding_mask=padding)
        case.done({"y": y, "weights": weights})
    for rotary in (False, True):
        case = group.case(f"grouped_query.{'rotary' if rotary else 'plain'}", "grouped_query",
                          rotary=rotary)
        grouped_query(case, rotary)
    for interleaved in (False, True):
        case = group.case(f"rotary.{'pairs' if interleaved else 'halves'}", "rotary",
                          interleaved=interleaved, base=100.0)
        case.done(turned(case.input("x", 2, 3, 6), 100.0, interleaved))
    case = group.case("SinusoidalPositions", "SinusoidalPositions")
    table = torch.zeros(4, 6)
    angle = torch.arange(4)[:, None] * 10000.0 ** (-2.0 * torch.arange(3) / 6)
    table[:, 0::2], table[:, 1::2] = torch.sin(angle), torch.cos(angle)
    case.done(case.input("x", 2, 4, 6) + table)
    for name, norm_first in (("post_norm", False), ("pre_norm", True)):
        options = {"d_model": 4, "nhead": 2, "num_encoder_layers": 1, "num_decoder_layers": 1,
                   "dim_feedforward": 6, "dropout": 0.0, "norm_first": norm_first}
        case = group.case(f"Transformer.{name}", "Transformer", **options)
        layer = case.fill(nn.Transformer(**options))
        src, tgt = case.input("src", 4, 2, 4), case.input("tgt", 3, 2, 4)
        mask = case.fixed("tgt_mask", ~np.tri(3, dtype=bool))
        padding = case.fixed("padding", np.array([[False] * 4, [False, False, False, True]]))
        case.done(layer(src, tgt, tgt_mask=mask, src_key_padding_mask=padding,
                        memory_key_padding_mask=padding))


def layers():
    group = Group("layers")
    plain(group)
    norms(group)
    embeddings(group)
    recurrent(group)
    attention(group)
    return group


def ctc(group):
    targets, joined = np.array([[1, 2, 2], [3, 1, 0]]), np.array([1, 2, 2, 3])
    for name, options, table, inputs, lengths in (
            ("mean", {}, targets, [6, 5], [3, 2]),
            ("sum", {"reduction": "sum"}, targets, [6, 6], [3, 2]),
            ("none", {"reduction": "none"}, targets, [6, 4], [3, 0]),
            ("joined", {}, joined, [6, 6], [3, 1]),
            ("blank", {"blank": 4}, targets, [6, 5], [3, 3]),
            ("zero_infinity", {"zero_infinity": True, "reduction": "none"}, targets, [6, 1],
             [3, 2])):
        case = group.case(f"CTCLoss.{name}", "CTCLoss", input_lengths=inputs,
                          target_lengths=lengths, **options)
        x = F.log_softmax(case.input("x", 6, 2, 5), -1)
        case.done(nn.CTCLoss(**options)(x, case.fixed("target", table), torch.tensor(inputs),
                                        torch.tensor(lengths)))


def losses():
    group = Group("losses")
    for reduction in ("mean", "sum", "none"):
        for name, options in (("plain", {}), ("square", {"p": 2, "margin": 0.7}),
                              ("weight", {"weight": True})):
            if reduction != "mean" and name == "square":
                continue
            case = group.case(f"MultiMarginLoss.{name}_{reduction}", "MultiMarginLoss",
                              reduction=reduction, **options)
            x, t = case.input("x", 4, 3), case.fixed("target", np.array([2, 0, 1, 1]))
            call = dict(options)
            if call.pop("weight", False):
                call["weight"] = case.fixed("weight", np.array([0.5, 2.0, 1.25]))
            case.done(nn.MultiMarginLoss(reduction=reduction, **call)(x, t))
        case = group.case(f"MultiLabelMarginLoss.{reduction}", "MultiLabelMarginLoss",
                          reduction=reduction)
        x = case.input("x", 3, 4)
        t = case.fixed("target", np.array([[3, 0, -1, 1], [-1, 2, 2, 2], [1, 2, 3, 0]]))
        case.done(nn.MultiLabelMarginLoss(reduction=reduction)(x, t))
        for weight in (False, True):
            case = group.case(f"MultiLabelSoftMarginLoss.{reduction}{'_weight' * weight}",
                              "MultiLabelSoftMarginLoss", reduction=reduction)
            x = case.input("x", 3, 4)
            t = case.fixed("target", (case.random.uniform(size=(3, 4)) < 0.5).astype(float))
            w = case.fixed("weight", np.array([0.5, 2.0, 1.25, 1.0])) if weight else None
            case.done(nn.MultiLabelSoftMarginLoss(w, reduction=reduction)(x, t))
        case = group.case(f"SoftMarginLoss.{reduction}", "SoftMarginLoss", reduction=reduction)
        x, t = case.input("x", 2, 3), case.fixed("target", np.array([[1., -1, 1], [-1, 1, 1]]))
        case.done(nn.SoftMarginLoss(reduction=reduction)(x, t))
        case = group.case(f"HingeEmbeddingLoss.{reduction}", "HingeEmbeddingLoss", margin=0.8,
                          reduction=reduction)
        x, t = case.input("x", 2, 3), case.fixed("target", np.array([[1., -1, 1], [-1, 1, -1]]))
        case.done(nn.HingeEmbeddingLoss(margin=0.8, reduction=reduction)(x, t))
        case = group.case(f"BCELoss.{reduction}", "BCELoss", reduction=reduction)
        x = case.input("x", values=case.random.uniform(0.1, 0.9, size=(2, 3)))
        t = case.input("target", values=case.random.uniform(size=(2, 3)))
        case.done(nn.BCELoss(reduction=reduction)(x, t))
        case = group.case(f"TripletMarginWithDistanceLoss.{reduction}",
                          "TripletMarginWithDistanceLoss", margin=0.7, swap=True,
                          reduction=reduction)
        triple = [case.input(n, 4, 3) for n in ("anchor", "positive", "negative")]
        case.done(nn.TripletMarginWithDistanceLoss(
            distance_function=lambda a, b: (a - b).abs().sum(-1), margin=0.7, swap=True,
            reduction=reduction)(*triple))
    for log_input in (True, False):
        for full in (True, False):
            options = {"log_input": log_input, "full": full}
            case = group.case(f"PoissonNLLLoss.{log_input}_{full}".lower(), "PoissonNLLLoss",
                              **options)
            x = case.input("x", values=abs(case.randn(2, 3)) + 0.2)
            t = case.fixed("target", np.array([[0., 3, 1], [2, 5, 0]]))
            case.done(nn.PoissonNLLLoss(**options)(x, t))
    for full in (True, False):
        case = group.case(f"GaussianNLLLoss.{full}".lower(), "GaussianNLLLoss", full=full)
        x, t = case.input("x", 2, 3), case.input("target", 2, 3)
        v = case.input("var", values=abs(case.randn(2, 3)) + 0.2)
        case.done(nn.GaussianNLLLoss(full=full)(x, t, v))
    for p, keepdim in ((2.0, False), (1.0, True), (3.0, False)):
        case = group.case(f"PairwiseDistance.{int(p)}", "PairwiseDistance", p=p, keepdim=keepdim)
        case.done(nn.PairwiseDistance(p=p, keepdim=keepdim)(case.input("x1", 3, 4),
                                                            case.input("x2", 3, 4)))
    ctc(group)
    return group
