"""Cases of attention, transformer blocks, recurrent layers, embedding and linear layers."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from torch_case import Group


def attend(q, k, v, may_look=None, added=None, scale=None):
    """softmax(q kᵀ · scale + added) v; true in may_look = may look; rows with no key give 0."""
    scale = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = q @ k.transpose(-1, -2) * scale
    if added is not None:
        scores = scores + added
    if may_look is None:
        return torch.softmax(scores, -1) @ v
    some = may_look.any(-1, keepdim=True)
    scores = scores.masked_fill(~(may_look | ~some), -math.inf)
    return torch.where(some, torch.softmax(scores, -1), torch.zeros(())) @ v


def attention_functions(group):
    shapes = {"": ((2, 3, 4), (2, 5, 4), (2, 5, 3)),
              "heads_": ((2, 2, 3, 4), (2, 2, 4, 4), (2, 2, 4, 4))}
    for prefix, (q_shape, k_shape, v_shape) in shapes.items():
        rows, keys = q_shape[-2], k_shape[-2]
        lower = torch.ones(rows, keys, dtype=torch.bool).tril()
        for kind in ("plain", "causal", "scale", "bool_mask", "hidden_row", "additive_mask"):
            options = {"causal": {"is_causal": True}, "scale": {"scale": 0.3}}.get(kind, {})
            case = group.case(f"sdpa.{prefix}{kind}", "scaled_dot_product_attention", **options)
            q, k, v = (case.input(n, *s) for n, s in zip("qkv", (q_shape, k_shape, v_shape)))
            may_look, added = (lower if kind == "causal" else None), None
            if kind in ("bool_mask", "hidden_row"):
                mask = case.random.uniform(size=q_shape[:-1] + (keys,)) < 0.6
                mask[..., 0] = True
                if kind == "hidden_row":
                    mask[..., 1, :] = False
                may_look = case.fixed("mask", mask)
            elif kind == "additive_mask":
                added = case.input("mask", rows, keys)
            case.done(attend(q, k, v, may_look, added, options.get("scale")))
    case = group.case("sdpa.causal_padding", "scaled_dot_product_attention", is_causal=True)
    q, k, v = (case.input(n, 2, 1, 3, 4) for n in "qkv")
    padding = np.array([[True, True, False], [True, False, False]]).reshape(2, 1, 1, 3)
    may_look = case.fixed("mask", np.broadcast_to(padding, (2, 1, 3, 3)))
    case.done(attend(q, k, v, may_look & torch.ones(3, 3, dtype=torch.bool).tril()))


def multihead(group):
    for name, options in (
            ("self", {}), ("self_batch_first", {"batch_first": True}), ("no_bias", {"bias": False}),
            ("cross", {}), ("cross_sizes", {"kdim": 5, "vdim": 3}), ("bool_mask", {}),
            ("additive_mask", {}), ("padding", {"batch_first": True}),
            ("head_weights", {"batch_first": True})):
        case = group.case(f"mha.{name}", "MultiheadAttention", embed_dim=8, num_heads=2, **options)
        module = case.fill(nn.MultiheadAttention(8, 2, **options))
        batch_first = options.get("batch_first", False)
        x = case.input("query", *((2, 4, 8) if batch_first else (4, 2, 8)))
        key = value = x
        if name.startswith("cross"):
            key = case.input("key", 3, 2, options.get("kdim", 8))
            value = case.input("value", 3, 2, options.get("vdim", 8))
        call = {}
        if name == "bool_mask":    # here true = may NOT look
            call["attn_mask"] = case.fixed("attn_mask", ~np.tri(4, dtype=bool))
        elif name == "additive_mask":
            call["attn_mask"] = case.input("attn_mask", 4, 4)
        elif name == "padding":    # true = padding
            padding = np.array([[False, False, False, False], [False, True, False, True]])
            call["key_padding_mask"] = case.fixed("key_padding_mask", padding)
        elif name == "head_weights":
            call["average_attn_weights"] = False
        y, weights = module(x, key, value, **call)
        case.done({"y": y, "weights": weights})


def transformer(group):
    for norm_first in (False, True):
        for activation in ("relu", "gelu"):
            name = f"{'pre' if norm_first else 'post'}_norm_{activation}"
            options = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "dropout": 0.0,
                       "activation": activation, "norm_first": norm_first, "batch_first": True}
            case = group.case(f"encoder_layer.{name}", "TransformerEncoderLayer", **options)
            layer = case.fill(nn.TransformerEncoderLayer(**options))
            mask = case.fixed("src_mask", ~np.tri(3, dtype=bool))
            case.done(layer(case.input("src", 2, 3, 8), src_mask=mask))
            case = group.case(f"decoder_layer.{name}", "TransformerDecoderLayer", **options)
            layer = case.fill(nn.TransformerDecoderLayer(**options))
            mask = case.fixed("tgt_mask", ~np.tri(3, dtype=bool))
            padding = np.array([[False, False, False, True], [False, False, True, True]])
            padding = case.fixed("memory_key_padding_mask", padding)
            case.done(layer(case.input("tgt", 2, 3, 8), case.input("memory", 2, 4, 8),
                            tgt_mask=mask, memory_key_padding_mask=padding))
    options = {"d_model": 4, "nhead": 2, "dim_feedforward": 6, "dropout": 0.0}
    case = group.case("encoder.two_layers", "TransformerEncoder", num_layers=2, final_norm=True,
                      **options)
    stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(**options), 2, nn.LayerNorm(4))
    case.done(case.fill(stack)(case.input("src", 3, 2, 4)))
    case = group.case("decoder.two_layers", "TransformerDecoder", num_layers=2, final_norm=True,
                      **options)
    stack = nn.TransformerDecoder(nn.TransformerDecoderLayer(**options), 2, nn.LayerNorm(4))
    case.done(case.fill(stack)(case.input("tgt", 3, 2, 4), case.input("memory", 2, 2, 4)))


def attention():
    group = Group("attention")
    attention_functions(group)
    multihead(group)
    transformer(group)
    return group


def recurrent_case(group, kind, name, options, start, lengths=None):
    layer_type = getattr(nn, kind)
    extra = {} if lengths is None else {"lengths": lengths}
    case = group.case(f"{kind.lower()}.{name}", kind, input_size=3, hidden_size=4, **options,
                      **extra)
    layer = case.fill(layer_type(3, 4, **options))
    batch_first = options.get("batch_first", False)
    x = case.input("x", *((2, 5, 3) if batch_first else (5, 2, 3)))
    rows = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    state = ()
    if start:
        state = (case.input("h_0", rows, 2, 4),)
        if kind == "LSTM":
            state = ((state[0], case.input("c_0", rows, 2, 4)),)
    if lengths is not None:
        x = pack_padded_sequence(x, torch.tensor(lengths), batch_first, enforce_sorted=False)
    y, last = layer(x, *state)
    if lengths is not None:
        y, _ = pad_packed_sequence(y, batch_first)
    outputs = {"y": y}
    outputs.update({"h_n": last[0], "c_n": last[1]} if kind == "LSTM" else {"h_n": last})
    case.done(outputs)


def recurrent():
    group = Group("recurrent")
    for kind in ("LSTM", "GRU"):
        recurrent_case(group, kind, "one_layer", {}, start=False)
        recurrent_case(group, kind, "no_bias", {"bias": False}, start=False)
        recurrent_case(group, kind, "two_layers", {"num_layers": 2}, start=True)
        recurrent_case(group, kind, "two_layers_batch_first",
                       {"num_layers": 2, "batch_first": True}, start=True)
        recurrent_case(group, kind, "bidirectional", {"bidirectional": True}, start=True)
        recurrent_case(group, kind, "two_layers_bidirectional",
                       {"num_layers": 2, "bidirectional": True}, start=True)
        recurrent_case(group, kind, "two_layers_bidirectional_batch_first",
                       {"num_layers": 2, "bidirectional": True, "batch_first": True}, start=False)
        recurrent_case(group, kind, "lengths", {"bidirectional": True, "batch_first": True},
                       start=True, lengths=[3, 5])
    case = group.case("lstm_cell", "LSTMCell", input_size=3, hidden_size=4)
    h, c = case.fill(nn.LSTMCell(3, 4))(
        case.input("x", 2, 3), (case.input("h", 2, 4), case.input("c", 2, 4)))
    case.done({"h": h, "c": c})
    case = group.case("gru_cell", "GRUCell", input_size=3, hidden_size=4)
    h = case.fill(nn.GRUCell(3, 4))(case.input("x", 2, 3), case.input("h", 2, 4))
    case.done({"h": h})
    return group


def linear():
    """Linear, bilinear and embedding layers."""
    group = Group("linear")
    for name, shape, bias in (("matrix", (4, 3), True), ("no_bias", (4, 3), False),
                              ("vector", (3,), True), ("batch", (2, 2, 3), True)):
        case = group.case(f"linear.{name}", "Linear", in_features=3, out_features=5, bias=bias)
        case.done(case.fill(nn.Linear(3, 5, bias))(case.input("x", *shape)))
    case = group.case("bilinear", "Bilinear", in1_features=3, in2_features=2, out_features=4)
    case.done(case.fill(nn.Bilinear(3, 2, 4))(case.input("x1", 5, 3), case.input("x2", 5, 2)))
    for name, options in (("plain", {}), ("padding_idx", {"padding_idx": 1}),
                          ("padding_idx_negative", {"padding_idx": -1})):
        case = group.case(f"embedding.{name}", "Embedding", num_embeddings=6, embedding_dim=3,
                          **options)
        ids = case.fixed("ids", np.array([[0, 1, 5, 1], [2, 5, 2, 2]]))
        case.done(case.fill(nn.Embedding(6, 3, **options))(ids))
    return group
