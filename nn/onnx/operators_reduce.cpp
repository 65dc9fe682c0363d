#include <cmath>

#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/nn/onnx/node_call.h>

// Reductions, products and what runs along one dimension.
namespace cutaway::onnx {
namespace {

// Numbers before and after a sum: ReduceL2 squares and takes the root.
template <class F>
void reduce(NodeCall& c, int64_t opset_of_axes, F&& fn) {
  const Tensor& x = c.in(0);
  const bool keep = c.integer("keepdims", 1) != 0;
  const bool noop = c.integer("noop_with_empty_axes", 0) != 0;
  const auto axes = c.axes(opset_of_axes, x.dim());
  Shape dims;
  if (axes && !axes->empty()) {
    dims = shape_of(c, *axes);
  } else if (noop) {
    return c.give(x);
  } else {
    for (int d = 0; d < x.dim(); ++d) dims.push_back(d);
  }
  c.give(x.dim() == 0 ? x : fn(x, dims, keep).to(x.dtype()));
}

using Sum = Tensor (*)(TensorArg, const Shape&, ReduceOptions);
template <Sum fn>
void plain(NodeCall& c) {
  reduce(c, 18, [](const Tensor& x, const Shape& d, bool k) { return fn(x, d, {.keepdim = k}); });
}
void reduce_sum(NodeCall& c) {
  reduce(c, 13, [](const Tensor& x, const Shape& d, bool k) { return sum(x, d, {.keepdim = k}); });
}
void reduce_l1(NodeCall& c) {
  reduce(c, 18,
         [](const Tensor& x, const Shape& d, bool k) { return sum(abs(x), d, {.keepdim = k}); });
}
void reduce_l2(NodeCall& c) {
  reduce(c, 18, [](const Tensor& x, const Shape& d, bool k) {
    return sqrt(sum(square(x), d, {.keepdim = k}));
  });
}
void reduce_squares(NodeCall& c) {
  reduce(c, 18,
         [](const Tensor& x, const Shape& d, bool k) { return sum(square(x), d, {.keepdim = k}); });
}
void reduce_log_sum(NodeCall& c) {
  reduce(c, 18,
         [](const Tensor& x, const Shape& d, bool k) { return log(sum(x, d, {.keepdim = k})); });
}

using Arg = Tensor (*)(TensorArg, int64_t, ReduceOptions);
template <Arg fn>
void arg(NodeCall& c) {
  const int64_t axis = c.integer("axis", 0);
  const bool keep = c.integer("keepdims", 1) != 0, last = c.integer("select_last_index", 0) != 0;
  const Tensor& x = c.in(0);
  if (!last) return c.give(fn(x, axis, {.keepdim = keep}));
  const Tensor back = fn(flip(x, {axis}), axis, {.keepdim = keep});
  c.give(sub(x.size(axis) - 1, back));
}

// Before opset 13 dimensions from `axis` on count as one.
template <Tensor (*fn)(TensorArg, int64_t)>
void along(NodeCall& c) {
  const Tensor& x = c.in(0);
  const int64_t axis = c.integer("axis", c.opset < 13 ? 1 : -1);
  if (c.opset >= 13) return c.give(fn(x, axis));
  const int64_t from = axis == x.dim() ? axis : from_front(c, axis, std::max(x.dim(), 1));
  const Shape flat{x.sizes().slice(0, int(from)).numel(),
                   x.sizes().slice(int(from), x.dim()).numel()};
  c.give(reshape(fn(reshape(x, flat), 1), x.sizes()));
}

Tensor hardmax(TensorArg x, int64_t axis) {
  const Tensor best = argmax(x, axis, {.keepdim = true});
  return scatter(zeros_like(*x), axis, best, 1.0);
}

void running_sum(NodeCall& c) {
  const bool exclusive = c.integer("exclusive", 0), reverse = c.integer("reverse", 0);
  c.give(cumsum(c.in(0), int64_t(c.number_in(1)), {.reverse = reverse, .exclusive = exclusive})
             .to(c.in(0).dtype()));
}

void top_k(NodeCall& c) {
  const int64_t axis = c.integer("axis", -1), largest = c.integer("largest", 1);
  c.ignore("sorted");
  const int64_t k = c.opset < 10 ? c.integer("k", 0) : int64_t(c.number_in(1));
  const ValuesIndices r = topk(c.in(0), k, axis, {.largest = largest != 0});
  c.give(r.values);
  c.give(r.indices);
}

void product(NodeCall& c) { c.give(matmul(c.in(0), c.in(1))); }

void gemm(NodeCall& c) {
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  const bool ta = c.integer("transA", 0) != 0, tb = c.integer("transB", 0) != 0;
  c.ignore("broadcast");
  Tensor y = matmul(c.in(0), c.in(1), {.transpose_a = ta, .transpose_b = tb});
  if (alpha != 1) y = y * alpha;
  if (c.has(2)) y = y + (beta != 1 ? c.in(2) * beta : c.in(2));
  c.give(y);
}

void einsum_op(NodeCall& c) {
  std::string equation;
  for (const char letter : c.text("equation", "")) {
    if (letter != ' ') equation += letter;
  }
  Tensors operands;
  for (int i = 0; i < c.inputs(); ++i) operands.push_back(c.in(i));
  c.give(einsum(equation, operands));
}

void determinant(NodeCall& c) { c.give(linalg::det(c.in(0))); }

constexpr Operator kOperators[] = {{"ArgMax", arg<argmax>, "argmax"},
                                   {"ArgMin", arg<argmin>, "argmin"},
                                   {"CumSum", running_sum, "cumsum"},
                                   {"Det", determinant, "det"},
                                   {"Einsum", einsum_op, "einsum"},
                                   {"Gemm", gemm, "matmul, add"},
                                   {"Hardmax", along<hardmax>, "argmax, scatter"},
                                   {"LogSoftmax", along<log_softmax>, "log_softmax"},
                                   {"MatMul", product, "matmul"},
                                   {"ReduceL1", reduce_l1, "abs, sum"},
                                   {"ReduceL2", reduce_l2, "square, sum, sqrt"},
                                   {"ReduceLogSum", reduce_log_sum, "sum, log"},
                                   {"ReduceLogSumExp", plain<logsumexp>, "logsumexp"},
                                   {"ReduceMax", plain<amax>, "amax"},
                                   {"ReduceMean", plain<mean>, "mean"},
                                   {"ReduceMin", plain<amin>, "amin"},
                                   {"ReduceProd", plain<prod>, "prod"},
                                   {"ReduceSum", reduce_sum, "sum"},
                                   {"ReduceSumSquare", reduce_squares, "square, sum"},
                                   {"Softmax", along<softmax>, "softmax"},
                                   {"TopK", top_k, "topk"}};

}  // namespace

std::span<const Operator> reduce_operators() { return kOperators; }

}  // namespace cutaway::onnx
