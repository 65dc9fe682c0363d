"""Cases of convolution, pooling, resizing, padding, windows and norms."""

import torch
import torch.nn.functional as F
from torch import nn

from torch_case import Group

# name, shape of x, shape of weight, options
CONV = [
    ("conv1d_plain", (2, 3, 9), (4, 3, 3), {}),
    ("conv1d_stride_padding", (2, 3, 10), (4, 3, 4), {"stride": [2], "padding": [2]}),
    ("conv1d_dilation", (1, 2, 12), (3, 2, 3), {"dilation": [3], "padding": [2]}),
    ("conv1d_groups", (2, 4, 7), (6, 2, 3), {"groups": 2, "padding": [1]}),
    ("conv1d_depthwise", (2, 3, 8), (6, 1, 3), {"groups": 3}),
    ("conv2d_plain", (2, 2, 6, 7), (3, 2, 3, 3), {}),
    ("conv2d_pointwise", (2, 3, 4, 5), (4, 3, 1, 1), {}),
    ("conv2d_stride_padding", (2, 2, 7, 8), (3, 2, 3, 2), {"stride": [2, 3], "padding": [1, 2]}),
    ("conv2d_dilation", (1, 2, 9, 8), (3, 2, 3, 3), {"dilation": [2, 3], "padding": [2, 1]}),
    ("conv2d_groups", (2, 4, 5, 5), (6, 2, 3, 3), {"groups": 2, "padding": [1, 1]}),
    ("conv2d_depthwise", (2, 3, 6, 5), (3, 1, 3, 3), {"groups": 3, "padding": [1, 1]}),
    ("conv2d_depthwise_multiplier", (1, 2, 5, 6), (6, 1, 3, 2), {"groups": 2, "stride": [2, 1]}),
    ("conv2d_all_options", (2, 4, 9, 8), (6, 2, 2, 3),
     {"stride": [2, 1], "padding": [1, 2], "dilation": [2, 1], "groups": 2}),
    ("conv2d_kernel_of_input_size", (2, 2, 4, 4), (3, 2, 4, 4), {}),
    ("conv3d_plain", (1, 2, 4, 5, 4), (2, 2, 2, 3, 2), {}),
    ("conv3d_all_options", (1, 4, 5, 6, 5), (4, 2, 2, 2, 3),
     {"stride": [2, 1, 2], "padding": [1, 0, 1], "dilation": [1, 2, 1], "groups": 2}),
    ("conv3d_depthwise", (1, 2, 4, 4, 4), (2, 1, 2, 2, 2), {"groups": 2, "padding": [1, 1, 1]}),
]

TRANSPOSED = [
    ("conv_transpose1d_plain", (2, 3, 5), (3, 4, 3), {}),
    ("conv_transpose1d_stride", (2, 3, 5), (3, 2, 4),
     {"stride": [3], "padding": [1], "output_padding": [2]}),
    ("conv_transpose1d_groups_dilation", (1, 4, 5), (4, 3, 3),
     {"groups": 2, "dilation": [2], "padding": [1]}),
    ("conv_transpose2d_plain", (2, 2, 4, 3), (2, 3, 3, 3), {}),
    ("conv_transpose2d_stride", (2, 2, 4, 3), (2, 3, 3, 2),
     {"stride": [2, 3], "padding": [1, 0], "output_padding": [1, 2]}),
    ("conv_transpose2d_all_options", (1, 4, 4, 3), (4, 2, 2, 3),
     {"stride": [2, 1], "padding": [1, 2], "dilation": [3, 2], "groups": 2}),
    ("conv_transpose2d_depthwise", (1, 3, 4, 4), (3, 1, 3, 3), {"groups": 3, "stride": [2, 2]}),
    ("conv_transpose3d_plain", (1, 2, 3, 2, 3), (2, 2, 2, 2, 2), {}),
    ("conv_transpose3d_all_options", (1, 4, 3, 2, 3), (4, 2, 2, 3, 2),
     {"stride": [2, 1, 2], "padding": [1, 1, 0], "output_padding": [1, 0, 1], "groups": 2}),
]


def conv():
    group = Group("conv")
    for name, x_shape, w_shape, options in CONV + TRANSPOSED:
        op = "_".join(name.split("_")[: 2 if name.startswith("conv_") else 1])
        transposed = op.startswith("conv_transpose")
        for bias in (True, False):
            if not bias and not name.endswith(("_plain", "_groups")):
                continue
            case = group.case(name + ("" if bias else "_no_bias"), op, **options)
            x, weight = case.input("x", *x_shape), case.param("weight", *w_shape)
            out = w_shape[1] * options.get("groups", 1) if transposed else w_shape[0]
            b = case.param("bias", out) if bias else None
            case.done(getattr(F, op)(x, weight, b, **options))
    for mode in ("reflect", "replicate", "circular"):
        options = {"in_channels": 2, "out_channels": 3, "kernel_size": [3, 2], "padding": [2, 1],
                   "padding_mode": mode}
        case = group.case(f"conv2d_padding_{mode}", "Conv2d", **options)
        layer = case.fill(nn.Conv2d(**options))
        case.done(layer(case.input("x", 2, 2, 5, 4)))
    case = group.case("conv2d_padding_same", "conv2d", padding="same", dilation=[2, 1])
    x, weight = case.input("x", 1, 2, 5, 6), case.param("weight", 3, 2, 2, 3)
    case.done(F.conv2d(x, weight, None, padding="same", dilation=(2, 1)))
    return group


# name, shape of x, options; the op is the name up to the first '.'
POOL = [
    ("max_pool1d.plain", (2, 3, 8), {"kernel_size": [2]}),
    ("max_pool1d.ceil", (2, 2, 8), {"kernel_size": [3], "stride": [2], "padding": [1],
                                    "ceil_mode": True}),
    ("max_pool2d.plain", (2, 2, 6, 6), {"kernel_size": [2, 2]}),
    ("max_pool2d.overlap", (2, 2, 7, 6), {"kernel_size": [3, 3], "stride": [2, 1],
                                          "padding": [1, 1]}),
    ("max_pool2d.dilation", (1, 2, 8, 9), {"kernel_size": [2, 3], "stride": [2, 2],
                                           "dilation": [3, 2], "padding": [1, 1]}),
    ("max_pool2d.ceil", (1, 2, 7, 8), {"kernel_size": [2, 3], "stride": [2, 3],
                                       "ceil_mode": True}),
    ("max_pool3d.plain", (1, 2, 4, 5, 4), {"kernel_size": [2, 2, 2]}),
    ("max_pool3d.overlap", (1, 2, 4, 5, 4), {"kernel_size": [3, 2, 3], "stride": [1, 2, 2],
                                             "padding": [1, 0, 1]}),
    ("avg_pool1d.plain", (2, 3, 8), {"kernel_size": [2]}),
    ("avg_pool1d.ceil", (2, 2, 8), {"kernel_size": [3], "stride": [2], "padding": [1],
                                    "ceil_mode": True}),
    ("avg_pool2d.plain", (2, 2, 6, 6), {"kernel_size": [2, 2]}),
    ("avg_pool2d.overlap", (2, 2, 7, 6), {"kernel_size": [3, 2], "stride": [2, 1],
                                          "padding": [1, 1]}),
    ("avg_pool2d.exclude_pad", (2, 2, 7, 6), {"kernel_size": [3, 2], "stride": [2, 1],
                                              "padding": [1, 1], "count_include_pad": False}),
    ("avg_pool2d.ceil", (1, 2, 7, 8), {"kernel_size": [2, 3], "stride": [2, 3],
                                       "ceil_mode": True}),
    ("avg_pool2d.ceil_exclude_pad", (1, 2, 6, 7), {"kernel_size": [3, 3], "stride": [2, 2],
                                                   "padding": [1, 1], "ceil_mode": True,
                                                   "count_include_pad": False}),
    ("avg_pool2d.divisor", (1, 2, 5, 6), {"kernel_size": [2, 2], "divisor_override": 3}),
    ("avg_pool3d.plain", (1, 2, 4, 5, 4), {"kernel_size": [2, 2, 2]}),
    ("avg_pool3d.overlap", (1, 2, 4, 5, 4), {"kernel_size": [3, 2, 3], "stride": [1, 2, 2],
                                             "padding": [1, 0, 1]}),
    ("adaptive_avg_pool1d.uneven", (2, 3, 7), {"output_size": [3]}),
    ("adaptive_avg_pool2d.uneven", (2, 2, 7, 5), {"output_size": [3, 2]}),
    ("adaptive_avg_pool2d.larger", (1, 2, 3, 4), {"output_size": [5, 6]}),
    ("adaptive_avg_pool2d.one", (2, 3, 4, 5), {"output_size": [1, 1]}),
    ("adaptive_avg_pool3d.uneven", (1, 2, 5, 4, 3), {"output_size": [2, 3, 2]}),
    ("adaptive_max_pool1d.uneven", (2, 3, 7), {"output_size": [3]}),
    ("adaptive_max_pool2d.uneven", (2, 2, 7, 5), {"output_size": [3, 2]}),
    ("adaptive_max_pool3d.uneven", (1, 2, 5, 4, 3), {"output_size": [2, 3, 2]}),
]


def pool():
    group = Group("pool")
    for name, shape, options in POOL:
        op = name.split(".")[0]
        case = group.case(name, op, **options)
        x = case.input("x", *shape)
        if "max" in op:
            y, indices = getattr(F, op)(x, **options, return_indices=True)
            case.done({"y": y, "indices": indices})
        else:
            case.done(getattr(F, op)(x, **options))
    return group


RESIZE = [
    ("nearest1d_up", (2, 2, 4), {"size": [7], "mode": "nearest"}),
    ("nearest1d_down", (2, 2, 7), {"size": [3], "mode": "nearest"}),
    ("nearest2d_up", (1, 2, 3, 4), {"size": [7, 6], "mode": "nearest"}),
    ("nearest2d_down", (1, 2, 7, 6), {"size": [3, 4], "mode": "nearest"}),
    ("nearest2d_scale", (1, 2, 3, 4), {"scale_factor": [2.0, 1.5], "mode": "nearest"}),
    ("nearest2d_exact", (1, 2, 7, 6), {"size": [3, 9], "mode": "nearest-exact"}),
    ("nearest3d_up", (1, 1, 2, 3, 2), {"size": [3, 5, 4], "mode": "nearest"}),
    ("linear1d", (2, 2, 4), {"size": [7], "mode": "linear", "align_corners": False}),
    ("linear1d_corners", (2, 2, 4), {"size": [7], "mode": "linear", "align_corners": True}),
    ("bilinear_up", (1, 2, 3, 4), {"size": [7, 6], "mode": "bilinear", "align_corners": False}),
    ("bilinear_up_corners", (1, 2, 3, 4),
     {"size": [7, 6], "mode": "bilinear", "align_corners": True}),
    ("bilinear_down", (1, 2, 7, 6), {"size": [3, 4], "mode": "bilinear", "align_corners": False}),
    ("bilinear_down_corners", (1, 2, 7, 6),
     {"size": [3, 4], "mode": "bilinear", "align_corners": True}),
    ("bilinear_to_one_corners", (1, 2, 3, 4),
     {"size": [1, 2], "mode": "bilinear", "align_corners": True}),
    ("bilinear_scale", (1, 2, 3, 4),
     {"scale_factor": [2.3, 1.6], "mode": "bilinear", "align_corners": False}),
    ("bilinear_scale_recomputed", (1, 2, 3, 4),
     {"scale_factor": [2.3, 1.6], "mode": "bilinear", "align_corners": False,
      "recompute_scale_factor": True}),
    ("trilinear", (1, 1, 2, 3, 2), {"size": [3, 5, 4], "mode": "trilinear",
                                    "align_corners": False}),
]

PAD = [
    ("constant", (2, 3, 4), {"pad": [1, 2, 0, 1], "mode": "constant", "value": 0.5}),
    ("constant_negative", (2, 5, 6), {"pad": [-1, 2, 1, -2], "mode": "constant", "value": 0.0}),
    ("reflect1d", (2, 2, 5), {"pad": [3, 4], "mode": "reflect"}),
    ("reflect2d", (1, 2, 4, 5), {"pad": [2, 1, 3, 0], "mode": "reflect"}),
    ("replicate2d", (1, 2, 3, 4), {"pad": [2, 1, 4, 0], "mode": "replicate"}),
    ("circular2d", (1, 2, 3, 4), {"pad": [2, 1, 3, 0], "mode": "circular"}),
]

WINDOWS = [
    ("unfold", (2, 3, 5, 6), {"kernel_size": [2, 3]}),
    ("unfold", (1, 2, 6, 7), {"kernel_size": [3, 2], "stride": [2, 1], "padding": [1, 2],
                              "dilation": [1, 2]}),
    ("fold", (2, 8, 12), {"output_size": [4, 5], "kernel_size": [2, 2]}),
    ("fold", (1, 12, 12), {"output_size": [6, 7], "kernel_size": [3, 2], "stride": [2, 2],
                           "padding": [1, 1], "dilation": [1, 1]}),
]


def resize():
    """Interpolation, padding, unfold/fold (im2col), sliding windows, pixel shuffle."""
    group = Group("resize")
    for name, shape, options in RESIZE:
        case = group.case("interpolate." + name, "interpolate", **options)
        case.done(F.interpolate(case.input("x", *shape), **options))
    for name, shape, options in PAD:
        case = group.case("pad." + name, "pad", **options)
        case.done(F.pad(case.input("x", *shape), **options))
    for number, (op, shape, options) in enumerate(WINDOWS):
        case = group.case(f"{op}.{'plain' if number % 2 == 0 else 'all_options'}", op, **options)
        case.done(getattr(F, op)(case.input("x", *shape), **options))
    case = group.case("sliding.windows", "Tensor.unfold", dim=1, size=3, step=2)
    case.done(case.input("x", 2, 8, 2).unfold(1, 3, 2))
    for op, shape in (("pixel_shuffle", (1, 8, 2, 3)), ("pixel_unshuffle", (1, 2, 4, 6))):
        case = group.case(op, op, factor=2)
        case.done(getattr(F, op)(case.input("x", *shape), 2))
    return group


# name, layer, shape of x, arguments
BATCH_NORM = [
    ("1d_flat", nn.BatchNorm1d, (5, 3), {}),
    ("1d", nn.BatchNorm1d, (3, 2, 4), {"momentum": 0.3}),
    ("2d", nn.BatchNorm2d, (2, 3, 3, 2), {"eps": 1e-3}),
    ("2d_cumulative", nn.BatchNorm2d, (2, 3, 3, 2), {"momentum": None}),
    ("2d_no_affine", nn.BatchNorm2d, (2, 3, 3, 2), {"affine": False}),
    ("2d_no_running_stats", nn.BatchNorm2d, (2, 3, 3, 2), {"track_running_stats": False}),
    ("3d", nn.BatchNorm3d, (2, 2, 2, 3, 2), {}),
]


def batch_norm_case(group, name, layer, shape, options, train):
    """Two forward steps in training (running statistics move twice), one in evaluation."""
    case = group.case(f"batch_norm.{name}_{'train' if train else 'eval'}", layer.__name__,
                      num_features=shape[1], train=train, steps=2 if train else 1, **options)
    module = case.fill(layer(shape[1], **options)).train(train)
    if options.get("track_running_stats", True):
        module.running_mean.data = torch.tensor(case.randn(shape[1]))
        module.running_var.data = torch.tensor(abs(case.randn(shape[1])) + 0.5)
        module.running_var.data = module.running_var.float().double()
        module.num_batches_tracked.data = torch.tensor(3)
        case.buffers(module, "buffer")
    x = case.input("x", *shape, scale=2.0, shift=1.0)
    y = module(x)
    outputs = {"y": y}
    if train:
        outputs["y_second"] = module(case.input("x_second", *shape, shift=-1.0))
    case.done(outputs)
    if options.get("track_running_stats", True):
        case.buffers(module, "after")


def rms_norm(x, weight, eps):
    """Zhang & Sennrich 2019: x / sqrt(mean(x²) + eps) ⊙ weight over the last dimension."""
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)
    return y if weight is None else y * weight


def norm():
    group = Group("norm")
    for name, layer, shape, options in BATCH_NORM:
        for train in (True, False):
            batch_norm_case(group, name, layer, shape, options, train)
    for name, shape, dims, affine, eps in (
            ("last", (2, 3, 5), [5], True, 1e-5), ("two", (2, 3, 4), [3, 4], True, 1e-2),
            ("plain", (4, 6), [6], False, 1e-5), ("one_row", (7,), [7], True, 1e-5)):
        case = group.case(f"layer_norm.{name}", "layer_norm", normalized_shape=dims, eps=eps)
        x = case.input("x", *shape, scale=2.0, shift=0.5)
        weight = case.param("weight", *dims, shift=1.0) if affine else None
        bias = case.param("bias", *dims) if affine else None
        case.done(F.layer_norm(x, dims, weight, bias, eps))
    for name, shape, groups, affine in (
            ("two", (2, 4, 3), 2, True), ("image", (2, 6, 2, 3), 3, True),
            ("one", (2, 3, 4), 1, True), ("channels", (2, 3, 2, 2), 3, True),
            ("plain", (2, 4, 5), 2, False)):
        case = group.case(f"group_norm.{name}", "group_norm", num_groups=groups, eps=1e-5)
        x = case.input("x", *shape, scale=2.0, shift=0.5)
        weight = case.param("weight", shape[1], shift=1.0) if affine else None
        bias = case.param("bias", shape[1]) if affine else None
        case.done(F.group_norm(x, groups, weight, bias))
    case = group.case("instance_norm.image", "instance_norm", eps=1e-5)
    case.done(F.instance_norm(case.input("x", 2, 3, 3, 2, shift=1.0)))
    for name, shape, affine, eps in (("last", (2, 3, 5), True, 1e-6),
                                     ("plain", (4, 6), False, 1e-5)):
        case = group.case(f"rms_norm.{name}", "rms_norm", normalized_shape=[shape[-1]], eps=eps)
        x = case.input("x", *shape, scale=2.0, shift=0.5)
        case.done(rms_norm(x, case.param("weight", shape[-1], shift=1.0) if affine else None, eps))
    for p, dim in ((2.0, 1), (1.0, -1), (3.0, 0)):
        case = group.case(f"normalize.p{int(p)}", "normalize", p=p, dim=dim, eps=1e-12)
        case.done(F.normalize(case.input("x", 3, 4), p=p, dim=dim))
    return group
