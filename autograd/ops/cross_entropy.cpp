#include <cutaway/autograd/ops/loss.h>

#include <fmt/format.h>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/autograd/ops/index_tools.h>
#include <cutaway/core/kernels/loss.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

void cross_entropy_samples(SampleList&);
void nll_loss_samples(SampleList&);

namespace {

struct CrossEntropyAttrs {
  int64_t ignore_index;
  double smoothing;
  bool normalized;
  Reduction reduction;
};

bool soft(const Tensor& target) { return target.is_floating(); }

// Place of the classes among the dimensions of the scores.
int class_dim(const Shape& sizes) { return sizes.rank() == 1 ? 0 : 1; }

Shape row_sizes(const Shape& sizes) {
  Shape rows = sizes;
  rows.erase(class_dim(sizes));
  return rows;
}

[[noreturn]] void throw_class(const char* op, int64_t at, int64_t got, int64_t classes,
                              int64_t ignore_index) {
  throw IndexError(op,
                   fmt::format("class indices must lie in [0,{}) or be ignore_index = {}; got {} "
                               "in row {} of the target",
                               classes, ignore_index, got, at));
}

void check_target(const Call& c, const Tensor& x, const Tensor& target, bool normalized) {
  const char* op = c.op.name;
  if (x.dim() < 1) {
    throw ShapeError(op, fmt::format("logits need a dimension of classes; got {}, need [N,C], "
                                     "[N,C,d…] or [C]",
                                     to_string(x.sizes())));
  }
  if (x.size(class_dim(x.sizes())) < 1) {
    throw ShapeError(op,
                     fmt::format("there must be at least one class; got {}", to_string(x.sizes())));
  }
  if (target.dtype() == DType::boolean || (normalized && soft(target))) {
    throw DTypeError(op,
                     fmt::format("the target must hold class indices{}; got {}, need i64",
                                 normalized ? "" : " or probabilities", name_of(target.dtype())));
  }
  const Shape need = soft(target) ? x.sizes() : row_sizes(x.sizes());
  if (target.sizes() != need) {
    throw ShapeError(op,
                     fmt::format("sizes of target and logits do not fit; got logits {}, target {}; "
                                 "need target {}",
                                 to_string(x.sizes()), to_string(target.sizes()), to_string(need)),
                     soft(target) || target.sizes() != x.sizes()
                         ? ""
                         : "class probabilities must be floating: target.to(DType::f32)");
  }
  if (soft(target) && target.dtype() != x.dtype()) {
    throw DTypeError(op,
                     fmt::format("probabilities must have the type of the logits; got {}, need {}",
                                 name_of(target.dtype()), name_of(x.dtype())));
  }
}

void check_weight(const Call& c, const Tensor& x) {
  if (!c.has(2)) return;
  const Tensor& weight = c.in(2);
  const Shape need{x.size(class_dim(x.sizes()))};
  if (weight.sizes() != need) {
    throw ShapeError(c.op.name,
                     fmt::format("weight has one entry a class; got weight {}, logits {}; "
                                 "need weight {}",
                                 to_string(weight.sizes()), to_string(x.sizes()), to_string(need)));
  }
  if (weight.dtype() != x.dtype()) {
    throw DTypeError(c.op.name,
                     fmt::format("weight must have the type of the logits; got {}, need {}",
                                 name_of(weight.dtype()), name_of(x.dtype())));
  }
}

// Row-major copies of the operands, and the arguments that point into them.
struct Operands {
  Tensor x, target, weight;
  CrossEntropyArgs args;

  Operands(const Tensor& logits, const Tensor& targets, const Tensor& weights,
           const CrossEntropyAttrs& attrs)
      : x(contiguous_raw(logits)),
        target(contiguous_raw(soft(targets) ? targets : cast_raw(targets, DType::i64))) {
    const Shape& sizes = x.sizes();
    const int d = class_dim(sizes);
    args.x = x.raw();
    if (soft(target)) {
      args.soft = target.raw();
    } else {
      args.target = target.data<int64_t>();
    }
    if (weights.defined()) {
      weight = contiguous_raw(weights);
      args.weight = weight.raw();
    }
    args.outer = sizes.slice(0, d).numel();
    args.classes = sizes[d];
    args.inner = sizes.slice(d + 1, sizes.rank()).numel();
    args.ignore_index = attrs.ignore_index;
    args.smoothing = attrs.smoothing;
    args.normalized = attrs.normalized;
    args.reduce = attrs.reduction != Reduction::none;
    args.mean = attrs.reduction == Reduction::mean;
  }
  void check_classes(const char* op) const {
    if (!args.target) return;
    const int64_t row = first_outside(target, 0, args.classes, args.ignore_index);
    if (row >= 0) throw_class(op, row, value_at(target, row), args.classes, args.ignore_index);
  }
};

void forward(Call& c) {
  const CrossEntropyAttrs& attrs = c.attrs<CrossEntropyAttrs>();
  const Tensor &x = c.in(0), &target = c.in(1);
  c.require_dtype(0);
  c.require_same_device();
  check_target(c, x, target, attrs.normalized);
  check_weight(c, x);
  if (!(attrs.smoothing >= 0 && attrs.smoothing <= 1)) {
    throw ValueError(c.op.name,
                     fmt::format("label_smoothing must lie in [0, 1]; got {}", attrs.smoothing));
  }
  const Shape rows = row_sizes(x.sizes());
  const Shape result = attrs.reduction == Reduction::none ? rows : Shape{};
  if (x.is_meta()) {
    c.out(0, result, x.dtype());
    return;
  }
  Operands o(x, target, c.has(2) ? c.in(2) : Tensor(), attrs);
  o.check_classes(c.op.name);
  const Tensor stats = empty({rows.numel() + 1}, {DType::f64, x.device()});
  o.args.stats = stats.data<double>();
  o.args.y = c.out(0, result, x.dtype()).raw();
  kernels::cross_entropy(x.device(), x.dtype(), o.args);
  c.save(stats);
}

// What both rules start from. Everything has a dimension of classes, of size 1 where it does not
// depend on the class.
struct Parts {
  const CrossEntropyAttrs& attrs;
  Tensor x, weight, share, valid, upstream;
  int dim;

  explicit Parts(Backward& b) : attrs(b.attrs<CrossEntropyAttrs>()), x(b.input(0)) {
    const Tensor target = b.input(1);
    dim = class_dim(x.sizes());
    Shape along = Shape::filled(x.dim(), 1);
    along[dim] = x.size(dim);
    if (b.num_inputs() > 2 && b.input(2).defined()) weight = reshape(b.input(2), along);
    if (soft(target)) {
      share = target;
    } else {
      const Tensor rows = unsqueeze(target.to(DType::i64), dim);
      const Tensor classes = arange(0, x.size(dim), 1, {.dtype = DType::i64, .device = x.device()});
      share = eq(rows, reshape(classes, along)).to(x.dtype());
      valid = ne(rows, Scalar(attrs.ignore_index));
    }
    if (attrs.smoothing != 0) {
      share = share * (1 - attrs.smoothing) + attrs.smoothing / double(x.size(dim));
    }
    if (weight.defined()) share = share * weight;
    if (valid.defined()) share = where(valid, share, 0.0);
    const Tensor& g = b.upstream();
    upstream = attrs.reduction == Reduction::none ? unsqueeze(g, dim) : g;
    if (attrs.reduction == Reduction::mean) {
      const Tensor stats = b.extra(0).detach();
      // Only the divisor is read: targets and weights are constants, so it is one too. The mean of
      // nothing is NaN, but its gradient is 0.
      const Tensor divisor = select(stats, 0, stats.numel() - 1);
      const Tensor factor = where(eq(divisor, 0.0), zeros_like(divisor), reciprocal(divisor));
      upstream = upstream * factor.to(x.dtype());
    }
  }
  Tensor lse() const { return logsumexp(x, Shape{dim}, {.keepdim = true}); }
};

void backward(Backward& b) {
  const Parts p(b);
  if (b.needs(0)) {
    Tensor d;
    if (p.attrs.normalized) {
      d = p.upstream * neg(p.share);
    } else {
      d = p.upstream * (exp(p.x - p.lse()) * sum(p.share, p.dim, {.keepdim = true}) - p.share);
    }
    b.set(0, p.valid.defined() ? where(p.valid, d, 0.0) : d);
  }
  if (b.needs(1)) {
    Tensor cost = (p.lse() - p.x) * (1 - p.attrs.smoothing);
    if (p.weight.defined()) cost = cost * p.weight;
    b.set(1, p.upstream * cost);
  }
}

void fast_backward(Backward& b) {
  if (b.needs(1) || b.input(0).is_meta()) return backward(b);
  const Tensor g = contiguous_raw(b.upstream()), stats = b.extra(0);
  Operands o(b.input(0), b.input(1), b.num_inputs() > 2 ? b.input(2) : Tensor(),
             b.attrs<CrossEntropyAttrs>());
  const Tensor grad = empty(o.x.sizes(), {o.x.dtype(), o.x.device()});
  o.args.upstream = g.raw();
  o.args.stats = stats.data<double>();
  o.args.grad = grad.raw();
  kernels::cross_entropy_backward(o.x.device(), o.x.dtype(), o.args);
  b.set(0, grad);
}

void onnx_loss(OnnxCall& c, const char* type) {
  const auto& a = c.attrs<CrossEntropyAttrs>();
  if (a.smoothing != 0 || soft(c.in(1)) || c.in().dim() < 2) {
    c.refuse("has an equivalent in ONNX for class indices of a batch without smoothing only");
  }
  const char* reduction = a.reduction == Reduction::none   ? "none"
                          : a.reduction == Reduction::mean ? "mean"
                                                           : "sum";
  c.result(c.node(type, {c.name(0), c.name(1), c.name(2)},
                  {{"ignore_index", a.ignore_index}, {"reduction", reduction}}));
}

const OpRecord kCrossEntropy{
    .name = "cross_entropy",
    .signature =
        "cross_entropy(logits, target, {weight, ignore_index, label_smoothing, reduction}) → y",
    .meaning = "Cross entropy of scores against class indices or class probabilities.",
    .formula = "y = −Σ_c q_c w_c log softmax(x)_c,  q = (1 − ε) t + ε/C; mean: / Σ w_t",
    .shapes = "logits [N,C,d…]   target [N,d…] or [N,C,d…]   weight [C]   y [] or [N,d…]",
    .compute = Compute::f32,
    .save_inputs = 0b111,
    .forward = forward,
    .backward_text = "dx = g (softmax(x) Σ_c q_c w_c − q ⊙ w),  dt = −g (1 − ε) w ⊙ log softmax(x)",
    .backward = backward,
    .fast_backward = fast_backward,
    .samples = cross_entropy_samples,
    .onnx = [](OnnxCall& c) { onnx_loss(c, "SoftmaxCrossEntropyLoss"); },
};

const OpRecord kNllLoss{
    .name = "nll_loss",
    .signature = "nll_loss(log_probs, target, {weight, ignore_index, reduction}) → y",
    .meaning = "Negative log-likelihood of class indices.",
    .formula = "y = −w_t x_t; mean: / Σ w_t",
    .shapes = "log_probs [N,C,d…]   target [N,d…]   weight [C]   y [] or [N,d…]",
    .compute = Compute::f32,
    .save_inputs = 0b111,
    .forward = forward,
    .backward_text = "dx_t = −g w_t, 0 for other classes",
    .backward = backward,
    .fast_backward = fast_backward,
    .samples = nll_loss_samples,
    .onnx = [](OnnxCall& c) { onnx_loss(c, "NegativeLogLikelihoodLoss"); },
};

}  // namespace

Tensor cross_entropy(TensorArg logits, TensorArg target, const CrossEntropyOptions& o) {
  return run(kCrossEntropy, {logits, target, o.weight},
             CrossEntropyAttrs{o.ignore_index, o.label_smoothing, false, o.reduction});
}
Tensor nll_loss(TensorArg log_probs, TensorArg target, const NllOptions& o) {
  return run(kNllLoss, {log_probs, target, o.weight},
             CrossEntropyAttrs{o.ignore_index, 0, true, o.reduction});
}

void register_cross_entropy_ops(std::vector<const OpRecord*>& list) {
  list.push_back(&kCrossEntropy);
  list.push_back(&kNllLoss);
}

}  // namespace cutaway
