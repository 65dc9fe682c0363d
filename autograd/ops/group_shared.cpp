#include <cutaway/autograd/ops/group_shared.h>

#include <fmt/format.h>

#include <cutaway/autograd/op.h>
#include <cutaway/autograd/ops/index_tools.h>
#include <cutaway/core/context.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/group_shared.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: group_shared_samples.cpp.
void group_shared_linear_samples(SampleList&);
void group_shared_input_grad_samples(SampleList&);
void group_shared_weight_grad_samples(SampleList&);

namespace {

struct GroupAttrs {
  int64_t group = 1;
  int64_t features = 0;
};

[[noreturn, gnu::cold]] void throw_sizes(const Call& c, const char* need) {
  std::string got;
  for (int i = 0; i < c.num_inputs; ++i) {
    got += fmt::format("{}{}", i ? ", " : "", to_string(c.in(i).sizes()));
  }
  throw ShapeError(c.op.name, fmt::format("sizes do not fit; got {} with group {}, need {}", got,
                                          c.attrs<GroupAttrs>().group, need));
}

// Checks the type of inputs 0 and 2, which must be matrices, and the group.
void check_operands(const Call& c, const char* need) {
  c.require_dtype(0);
  c.require_dtype(2);
  c.require_same_device();
  if (c.in(0).dim() != 2 || c.in(1).dim() != 2 || c.in(2).dim() != 2) throw_sizes(c, need);
  require_same_type(c.op.name, c.in(0), c.in(2));
  const int64_t group = c.attrs<GroupAttrs>().group;
  if (group < 1) {
    throw ValueError(c.op.name,
                     fmt::format("a group needs labels; got group {}, need at least 1", group));
  }
}

int64_t groups_of(int64_t labels, int64_t group) { return labels / group + (labels % group != 0); }

// The index in the form of the kernels, checked.
Tensor checked_index(const Call& c, int64_t features) {
  const Tensor index = index_values(c.op.name, c.in(1));
  check_index(c.op.name, index, features);
  return cast_raw(c.in(1), DType::i32);
}

// [B,N] as a dense [N,B].
Tensor turned(const Tensor& t) {
  const Shape &n = t.sizes(), &s = t.strides();
  return contiguous_raw(make_view(t, {{n[1], n[0]}, {s[1], s[0]}, t.layout().offset}));
}
// Writes a dense [N,B] to a [B,N].
void turn_into(const Tensor& out, const Tensor& t) {
  const Shape& n = t.sizes();
  copy_elements(out, make_view(t, {{n[1], n[0]}, {1, n[1]}, t.layout().offset}));
}

template <class Args>
Args args_of(const Tensor& index, int64_t batch, int64_t features, int64_t labels, int64_t group,
             DType type) {
  Args a;
  a.batch = batch;
  a.features = features;
  a.labels = labels;
  a.fan_in = index.sizes()[1];
  a.group = group;
  a.weight_type = type;
  a.x_row = batch;
  a.z_row = batch;
  a.index = index.data<int32_t>();
  return a;
}

Tensor empty_beside(const Tensor& like, const Shape& sizes) {
  return empty(sizes, {.dtype = like.dtype(), .device = like.device()});
}

// dweight [L,F] from dz [L,B] and x [H,B], written to `out`.
void run_weight_grad(const Tensor& out, const Tensor& dz, const Tensor& index, const Tensor& x,
                     int64_t group) {
  if (out.numel() == 0) return;
  auto a = args_of<GroupSharedWeightGradArgs>(index, x.sizes()[1], x.sizes()[0], dz.sizes()[0],
                                              group, x.dtype());
  a.x = x.raw();
  a.dz = dz.raw();
  a.dweight = out.raw();
  kernels::group_shared_weight_grad(x.device(), x.dtype(), a);
}

// dx [H,B] from dz [L,B] and weight [L,F].
Tensor run_input_grad(const Tensor& dz, const Tensor& index, const Tensor& weight, int64_t features,
                      int64_t group) {
  const int64_t batch = dz.sizes()[1];
  const Tensor dx = empty_beside(dz, {features, batch});
  if (dx.numel() == 0) return dx;
  auto a =
      args_of<GroupSharedInputGradArgs>(index, batch, features, dz.sizes()[0], group, dz.dtype());
  a.atomics = !context().deterministic;
  a.weight = weight.raw();
  a.dz = dz.raw();
  a.dx = dx.raw();
  kernels::group_shared_input_grad(dz.device(), dz.dtype(), a);
  return dx;
}

void linear_forward(Call& c) {
  static constexpr const char* kNeed =
      "x [B,H], index [⌈L/group⌉,F], weight [L,F], bias [L] or none";
  check_operands(c, kNeed);
  const Tensor &x = c.in(0), &weight = c.in(2);
  const int64_t group = c.attrs<GroupAttrs>().group, labels = weight.sizes()[0];
  const Shape want{groups_of(labels, group), weight.sizes()[1]};
  if (c.in(1).sizes() != want) throw_sizes(c, kNeed);
  if (c.has(3)) {
    c.require_dtype(3);
    if (c.in(3).sizes() != Shape{labels}) throw_sizes(c, kNeed);
    require_same_type(c.op.name, x, c.in(3));
  }
  const Tensor index = checked_index(c, x.sizes()[1]);
  const int64_t batch = x.sizes()[0];
  Tensor& out = c.out(0, {batch, labels}, x.dtype());
  if (c.meta() || out.numel() == 0) return;
  const Tensor features = turned(x), w = contiguous_raw(weight);
  const Tensor z = empty_beside(x, {labels, batch});
  auto a = args_of<GroupSharedForwardArgs>(index, batch, x.sizes()[1], labels, group, x.dtype());
  a.x = features.raw();
  a.weight = w.raw();
  const Tensor bias = c.has(3) ? contiguous_raw(c.in(3)) : Tensor();
  a.bias = bias.defined() ? bias.raw() : nullptr;
  a.z = z.raw();
  kernels::group_shared_forward(x.device(), x.dtype(), a);
  turn_into(out, z);
}

void linear_backward(Backward& b) {
  const Tensor& g = b.upstream();
  const int64_t group = b.attrs<GroupAttrs>().group;
  if (b.needs(0)) {
    b.set(0, group_shared_input_grad(g, b.input(1), b.input(2), b.input_sizes(0)[1], group));
  }
  if (b.needs(2)) b.set(2, group_shared_weight_grad(g, b.input(1), b.input(0), group));
  if (b.num_inputs() > 3 && b.needs(3)) b.set(3, g);  // summed to [L] by the engine
}

// The same by kernels alone: g is turned once.
void linear_fast_backward(Backward& b) {
  const Tensor& g = b.upstream();
  const int64_t group = b.attrs<GroupAttrs>().group;
  if (g.is_meta()) return linear_backward(b);
  const Tensor dz = turned(g), index = cast_raw(b.input(1), DType::i32);
  if (b.needs(0)) {
    const Shape& sizes = b.input_sizes(0);
    const Tensor weight = contiguous_raw(b.input(2)), dx = empty_beside(g, sizes);
    turn_into(dx, run_input_grad(dz, index, weight, sizes[1], group));
    b.set(0, dx);
  }
  if (b.needs(2)) {
    const Tensor dweight = empty_beside(g, b.input_sizes(2));
    run_weight_grad(dweight, dz, index, turned(b.input(0)), group);
    b.set(2, dweight);
  }
  if (b.num_inputs() > 3 && b.needs(3)) b.set(3, g);
}

void input_grad_forward(Call& c) {
  static constexpr const char* kNeed = "g [B,L], index [⌈L/group⌉,F], weight [L,F]";
  check_operands(c, kNeed);
  const Tensor &g = c.in(0), &weight = c.in(2);
  const auto& attrs = c.attrs<GroupAttrs>();
  const int64_t labels = weight.sizes()[0];
  const Shape want{groups_of(labels, attrs.group), weight.sizes()[1]};
  if (c.in(1).sizes() != want || g.sizes()[1] != labels) throw_sizes(c, kNeed);
  if (attrs.features < 0) {
    throw ValueError(c.op.name, fmt::format("the number of features must not be negative; got {}",
                                            attrs.features));
  }
  const Tensor index = checked_index(c, attrs.features);
  Tensor& out = c.out(0, {g.sizes()[0], attrs.features}, g.dtype());
  if (c.meta() || out.numel() == 0) return;
  const Tensor w = contiguous_raw(weight);
  turn_into(out, run_input_grad(turned(g), index, w, attrs.features, attrs.group));
}

void input_grad_backward(Backward& b) {
  const Tensor& u = b.upstream();
  const int64_t group = b.attrs<GroupAttrs>().group;
  if (b.needs(0)) b.set(0, group_shared_linear(u, b.input(1), b.input(2), Tensor(), group));
  if (b.needs(2)) b.set(2, group_shared_weight_grad(b.input(0), b.input(1), u, group));
}

void weight_grad_forward(Call& c) {
  static constexpr const char* kNeed = "g [B,L], index [⌈L/group⌉,F], x [B,H]";
  check_operands(c, kNeed);
  const Tensor &g = c.in(0), &x = c.in(2);
  const int64_t group = c.attrs<GroupAttrs>().group, labels = g.sizes()[1];
  if (c.in(1).sizes()[0] != groups_of(labels, group) || g.sizes()[0] != x.sizes()[0]) {
    throw_sizes(c, kNeed);
  }
  const Tensor index = checked_index(c, x.sizes()[1]);
  Tensor& out = c.out(0, {labels, index.sizes()[1]}, g.dtype());
  if (c.meta() || out.numel() == 0) return;
  run_weight_grad(out, turned(g), index, turned(x), group);
}

void weight_grad_backward(Backward& b) {
  const Tensor& u = b.upstream();
  const int64_t group = b.attrs<GroupAttrs>().group;
  if (b.needs(0)) b.set(0, group_shared_linear(b.input(2), b.input(1), u, Tensor(), group));
  if (b.needs(2)) {
    b.set(2, group_shared_input_grad(b.input(0), b.input(1), u, b.input_sizes(2)[1], group));
  }
}

const OpRecord kGroupSharedLinear{
    .name = "group_shared_linear",
    .signature = "group_shared_linear(x, index, weight, bias?, group) → y",
    .meaning = "A sparse linear map; consecutive outputs share the indices of their inputs.",
    .formula = "y[b, l] = bias[l] + Σ_j weight[l, j] · x[b, index[l / group, j]]",
    .shapes = "x [B,H]   index [K,F]   weight [L,F]   bias [L]   y [B,L]   K = ⌈L / group⌉",
    .dtypes = kFloating,
    .compute = Compute::low,
    .save_inputs = 0b111,
    .forward = linear_forward,
    .backward_text =
        "dx = group_shared_input_grad(g, …),  dweight = group_shared_weight_grad(g, …),"
        "  dbias = Σ_b g",
    .backward = linear_backward,
    .fast_backward = linear_fast_backward,
    .samples = group_shared_linear_samples,
};

const OpRecord kGroupSharedInputGrad{
    .name = "group_shared_input_grad",
    .signature = "group_shared_input_grad(g, index, weight, features, group) → y",
    .meaning = "The derivative of group_shared_linear in its input.",
    .formula = "y[b, h] = Σ weight[l, j] · g[b, l] over l, j with index[l / group, j] = h",
    .shapes = "g [B,L]   index [K,F]   weight [L,F]   y [B,features]   K = ⌈L / group⌉",
    .dtypes = kFloating,
    .compute = Compute::low,
    .save_inputs = 0b111,
    .forward = input_grad_forward,
    .backward_text = "dg = group_shared_linear(u, …),  dweight = group_shared_weight_grad(g, …, u)",
    .backward = input_grad_backward,
    .samples = group_shared_input_grad_samples,
};

const OpRecord kGroupSharedWeightGrad{
    .name = "group_shared_weight_grad",
    .signature = "group_shared_weight_grad(g, index, x, group) → y",
    .meaning = "The derivative of group_shared_linear in its weights.",
    .formula = "y[l, j] = Σ_b g[b, l] · x[b, index[l / group, j]]",
    .shapes = "g [B,L]   index [K,F]   x [B,H]   y [L,F]   K = ⌈L / group⌉",
    .dtypes = kFloating,
    .compute = Compute::low,
    .save_inputs = 0b111,
    .forward = weight_grad_forward,
    .backward_text = "dg = group_shared_linear(x, …, u),  dx = group_shared_input_grad(g, …, u)",
    .backward = weight_grad_backward,
    .samples = group_shared_weight_grad_samples,
};

}  // namespace

Tensor group_shared_linear(TensorArg x, TensorArg index, TensorArg weight, TensorArg bias,
                           int64_t group) {
  const GroupAttrs attrs{.group = group};
  if (!bias->defined()) return run(kGroupSharedLinear, {x, index, weight}, attrs);
  return run(kGroupSharedLinear, {x, index, weight, bias}, attrs);
}
Tensor group_shared_input_grad(TensorArg g, TensorArg index, TensorArg weight, int64_t features,
                               int64_t group) {
  return run(kGroupSharedInputGrad, {g, index, weight},
             GroupAttrs{.group = group, .features = features});
}
Tensor group_shared_weight_grad(TensorArg g, TensorArg index, TensorArg x, int64_t group) {
  return run(kGroupSharedWeightGrad, {g, index, x}, GroupAttrs{.group = group});
}

void register_group_shared_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kGroupSharedLinear, &kGroupSharedInputGrad, &kGroupSharedWeightGrad});
}

}  // namespace cutaway
