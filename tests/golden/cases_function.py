"""Cases of activations, scans, losses and linear algebra."""

import numpy as np
import torch
import torch.nn.functional as F

from torch_case import Group

ACTIVATIONS = [
    ("gelu", {"approximate": "none"}), ("gelu", {"approximate": "tanh"}), ("relu", {}),
    ("relu6", {}), ("silu", {}), ("mish", {}), ("sigmoid", {}), ("tanh", {}), ("logsigmoid", {}),
    ("softplus", {"beta": 1, "threshold": 20}), ("softplus", {"beta": 3, "threshold": 2}),
    ("elu", {"alpha": 0.7}), ("selu", {}), ("celu", {"alpha": 0.7}),
    ("leaky_relu", {"negative_slope": 0.1}), ("hardtanh", {"min_val": -0.5, "max_val": 0.8}),
    ("hardswish", {}), ("hardsigmoid", {}), ("softsign", {}), ("glu", {"dim": 1}),
    ("glu", {"dim": 0}),
]


def celu(x, alpha):
    """Barron 2017. PyTorch 1.13 rounds 1/alpha to f32 in the gradient."""
    return torch.where(x > 0, x, alpha * torch.expm1(torch.clamp(x, max=0) / alpha))


def hardsigmoid(x):
    """PyTorch 1.13 rounds 1/6 to f32 in the gradient."""
    return torch.clamp(x / 6 + 0.5, 0, 1)


OWN = {"celu": celu, "hardsigmoid": hardsigmoid, "sigmoid": torch.sigmoid, "tanh": torch.tanh}


def activation():
    """Activations, the softmax family, and scans."""
    group = Group("activation")
    for op, options in ACTIVATIONS:
        name = "_".join([op] + [f"{k}_{v}" for k, v in options.items()])
        case = group.case(name, op, **options)
        function = OWN.get(op) or getattr(F, op)
        case.done(function(case.input("x", 4, 6, scale=2.0), **options))
    for op in ("softmax", "log_softmax", "softmin", "logsumexp"):
        function = torch.logsumexp if op == "logsumexp" else getattr(F, op)
        for name, shape, dim in (("last", (3, 5), -1), ("first", (3, 5), 0),
                                 ("middle", (2, 3, 4), 1), ("one", (3, 1), 1)):
            case = group.case(f"{op}.{name}", op, dim=dim)
            case.done(function(case.input("x", *shape, scale=3.0), dim=dim))
    for op in ("cumsum", "cumprod", "logcumsumexp"):
        for name, shape, dim in (("last", (3, 5), -1), ("first", (4, 3), 0),
                                 ("middle", (2, 4, 3), 1)):
            case = group.case(f"{op}.{name}", op, dim=dim)
            case.done(getattr(torch, op)(case.input("x", *shape), dim=dim))
    for op in ("cumprod", "prod"):
        case = group.case(f"{op}.zeros", op, dim=1)
        x = case.input("x", values=[[2, 0, 3, -1.5, 4], [3, 0, 5, 0, 2], [0, 1, 2, 3, 4]])
        case.done(getattr(torch, op)(x, dim=1))
    return group


def classification(group):
    labels = np.array([2, 0, 3, 2, 1])
    ignored = np.array([2, -100, 3, 2, -100])
    weight = np.array([0.5, 2.0, 1.25, 3.0])
    for name, target, options in (
            ("mean", labels, {}), ("sum", labels, {"reduction": "sum"}),
            ("none", labels, {"reduction": "none"}), ("ignore", ignored, {}),
            ("ignore_other", labels, {"ignore_index": 2}),
            ("smoothing", labels, {"label_smoothing": 0.3}),
            ("smoothing_ignore", ignored, {"label_smoothing": 0.3}),
            ("weight", labels, {"weight": True}),
            ("weight_none", labels, {"weight": True, "reduction": "none"}),
            ("weight_ignore", ignored, {"weight": True}),
            ("weight_smoothing", labels, {"weight": True, "label_smoothing": 0.3}),
            ("weight_smoothing_ignore", ignored, {"weight": True, "label_smoothing": 0.3})):
        case = group.case(f"cross_entropy.{name}", "cross_entropy", **options)
        x, t = case.input("logits", 5, 4, scale=2.0), case.fixed("target", target)
        call = dict(options)
        if call.pop("weight", False):
            call["weight"] = case.fixed("weight", weight)
        case.done(F.cross_entropy(x, t, **call))
    for name, options in (("soft", {}), ("soft_sum", {"reduction": "sum"}),
                          ("soft_none", {"reduction": "none"}),
                          ("soft_smoothing", {"label_smoothing": 0.3}),
                          ("soft_weight", {"weight": True}),
                          ("soft_weight_smoothing", {"weight": True, "label_smoothing": 0.3})):
        case = group.case(f"cross_entropy.{name}", "cross_entropy", **options)
        x = case.input("logits", 5, 4, scale=2.0)
        target = case.input("target", values=case.random.dirichlet(np.ones(4), 5))
        call = dict(options)
        if call.pop("weight", False):
            call["weight"] = case.fixed("weight", weight)
        case.done(F.cross_entropy(x, target, **call))
    image = np.array([[[0, 2], [1, -100]], [[2, 2], [0, 1]]])
    for op in ("cross_entropy", "nll_loss"):
        case = group.case(f"{op}.image", op)
        x, t = case.input("logits", 2, 3, 2, 2), case.fixed("target", image)
        case.done(getattr(F, op)(x, t))
    for name, target, options in (("mean", labels, {}), ("none", labels, {"reduction": "none"}),
                                  ("weight_ignore", ignored, {"weight": True}),
                                  ("weight_sum", labels, {"weight": True, "reduction": "sum"})):
        case = group.case(f"nll_loss.{name}", "nll_loss", **options)
        x, t = case.input("logits", 5, 4), case.fixed("target", target)
        call = dict(options)
        if call.pop("weight", False):
            call["weight"] = case.fixed("weight", weight)
        case.done(F.nll_loss(x, t, **call))


def regression(group):
    for op, extra in (("mse_loss", {}), ("l1_loss", {}), ("smooth_l1_loss", {"beta": 0.7}),
                      ("huber_loss", {"delta": 0.7})):
        for reduction in ("mean", "sum", "none"):
            options = {**extra, "reduction": reduction}
            case = group.case(f"{op}.{reduction}", op, **options)
            case.done(getattr(F, op)(case.input("x", 3, 4), case.input("target", 3, 4), **options))
    for name, options in (("mean", {}), ("sum", {"reduction": "sum"}),
                          ("none", {"reduction": "none"}), ("weight", {"weight": True}),
                          ("pos_weight", {"pos_weight": True}),
                          ("both", {"weight": True, "pos_weight": True})):
        op = "binary_cross_entropy_with_logits"
        case = group.case(f"bce_with_logits.{name}", op, **options)
        x = case.input("logits", 3, 4, scale=3.0)
        target = case.input("target", values=case.random.uniform(size=(3, 4)))
        call = dict(options)
        if "weight" in call:
            call["weight"] = case.fixed("weight", abs(case.randn(3, 4)) + 0.1)
        if "pos_weight" in call:
            call["pos_weight"] = case.fixed("pos_weight", abs(case.randn(4)) + 0.1)
        case.done(getattr(F, op)(x, target, **call))
    for reduction in ("mean", "sum", "none", "batchmean"):
        for log_target in (False, True):
            name = reduction + ("_log_target" if log_target else "")
            options = {"reduction": reduction, "log_target": log_target}
            case = group.case(f"kl_div.{name}", "kl_div", **options)
            x = case.input("x", 3, 4)    # taken as log probabilities, whatever their sum
            target = case.random.dirichlet(np.ones(4), 3)
            target = case.input("target", values=np.log(target) if log_target else target)
            case.done(F.kl_div(x, target, **options))


def similarity(group):
    for name, a, b, dim in (("rows", (3, 4), (3, 4), 1), ("middle", (2, 3, 4), (2, 3, 4), 1),
                            ("broadcast", (3, 1, 4), (1, 2, 4), -1)):
        case = group.case(f"cosine_similarity.{name}", "cosine_similarity", dim=dim, eps=1e-8)
        case.done(F.cosine_similarity(case.input("x1", *a), case.input("x2", *b), dim=dim))
    for reduction in ("mean", "sum", "none"):
        options = {"margin": 0.1, "reduction": reduction}
        case = group.case(f"cosine_embedding_loss.{reduction}", "cosine_embedding_loss", **options)
        x1, x2 = case.input("x1", 6, 3), case.input("x2", 6, 3)
        target = case.fixed("target", np.array([1, -1, -1, 1, -1, -1]))
        case.done(F.cosine_embedding_loss(x1, x2, target, **options))
    for name, options in (("mean", {}), ("sum", {"reduction": "sum"}),
                          ("none", {"reduction": "none", "margin": 0.5}), ("p1", {"p": 1.0}),
                          ("swap", {"swap": True, "margin": 2.0})):
        case = group.case(f"triplet_margin_loss.{name}", "triplet_margin_loss", **options)
        inputs = [case.input(n, 5, 3) for n in ("anchor", "positive", "negative")]
        case.done(F.triplet_margin_loss(*inputs, **options))
    for name, options in (("mean", {}), ("none", {"reduction": "none", "margin": 0.5})):
        case = group.case(f"margin_ranking_loss.{name}", "margin_ranking_loss", **options)
        target = case.fixed("target", np.array([1, -1, -1, 1, -1]))
        x1, x2 = case.input("x1", 5), case.input("x2", 5)
        case.done(F.margin_ranking_loss(x1, x2, target, **options))


def loss():
    group = Group("loss")
    classification(group)
    regression(group)
    similarity(group)
    return group


def square(case, n, batch=()):
    """A well-conditioned matrix that is not symmetric."""
    return case.randn(*batch, n, n, scale=0.5) + 2.0 * np.eye(n)


def symmetric(case, n, batch=(), shift=0.0):
    a = case.randn(*batch, n, n)
    return (a + np.swapaxes(a, -1, -2)) / 2 + shift * np.eye(n)


def solvers(group):
    for name, n, batch, upper in (("lower", 4, (), False), ("upper", 4, (), True),
                                  ("batch", 3, (2,), False), ("one", 1, (), False)):
        case = group.case(f"cholesky.{name}", "cholesky", upper=upper)
        a = case.input("a", values=symmetric(case, n, batch, shift=5.0))
        case.done(torch.linalg.cholesky(a, upper=upper))
    for name, batch, b_shape in (("matrix", (), (4, 2)), ("vector", (), (4,)),
                                 ("batch", (2,), (2, 4, 3))):
        case = group.case(f"solve.{name}", "solve")
        a = case.input("a", values=square(case, 4, batch))
        case.done(torch.linalg.solve(a, case.input("b", *b_shape)))
    for upper in (False, True):
        for left in (True, False):
            for unit in (False, True):
                name = "_".join(["upper" if upper else "lower", "left" if left else "right"]
                                + ["unit"] * unit)
                options = {"upper": upper, "left": left, "unitriangular": unit}
                case = group.case(f"solve_triangular.{name}", "solve_triangular", **options)
                a = case.input("a", values=square(case, 3, (2,)))    # other half is not read
                b = case.input("b", *((2, 3, 2) if left else (2, 2, 3)))
                case.done(torch.linalg.solve_triangular(a, b, **options))


def linalg():
    group = Group("linalg")
    solvers(group)
    for name, n, batch in (("matrix", 4, ()), ("batch", 3, (2,)), ("one", 1, ())):
        for op in ("inv", "det", "slogdet"):
            case = group.case(f"{op}.{name}", op)
            a = square(case, n, batch)
            if op != "inv" and n > 1:
                a[..., 0, :] *= -1.5    # a determinant below 0
            y = getattr(torch.linalg, op)(case.input("a", values=a))
            case.done({"sign": y[0], "logabsdet": y[1]} if op == "slogdet" else y)
    for name, shape in (("square", (4, 4)), ("tall", (5, 3)), ("batch", (2, 4, 2))):
        case = group.case(f"qr.{name}", "qr", mode="reduced",
                          signs="columns of q and rows of r flipped so that diag(r) > 0")
        q, r = torch.linalg.qr(case.input("a", *shape))
        sign = torch.sign(torch.diagonal(r, dim1=-2, dim2=-1)).detach()
        case.done({"q": q * sign.unsqueeze(-2), "r": r * sign.unsqueeze(-1)})
    for name, n, batch in (("matrix", 4, ()), ("batch", 3, (2,)), ("one", 1, ())):
        case = group.case(f"eigh.{name}", "eigh",
                          signs="squares of the vectors' entries; their signs are free")
        values, vectors = torch.linalg.eigh(case.input("a", values=symmetric(case, n, batch)))
        case.done({"values": values, "vectors_squared": vectors * vectors})
    for name, shape in (("square", (3, 3)), ("tall", (5, 3)), ("wide", (2, 4)),
                        ("batch", (2, 3, 2))):
        case = group.case(f"svdvals.{name}", "svdvals")
        case.done(torch.linalg.svdvals(case.input("a", *shape)))
        case = group.case(f"svd.{name}", "svd", full_matrices=False,
                          signs="squares of the entries of u and vh; their signs are free")
        u, s, vh = torch.linalg.svd(case.input("a", *shape), full_matrices=False)
        case.done({"u_squared": u * u, "s": s, "vh_squared": vh * vh})
    return group
