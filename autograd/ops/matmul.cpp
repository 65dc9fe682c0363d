#include <cutaway/autograd/ops/matmul.h>

#include <fmt/format.h>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/matmul_args.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: matmul_samples.cpp.
void matmul_samples(SampleList&);
void addmm_samples(SampleList&);
void baddbmm_samples(SampleList&);

namespace detail {
namespace {

[[noreturn, gnu::cold]] void throw_inner(const char* op, const Tensor& a, const Tensor& b,
                                         const MatmulOptions& o, int64_t k, int64_t b_columns) {
  const char* need = o.transpose_b ? "[…,n,{}]" : "[…,{},n]";
  const char* flat = o.transpose_b ? "[n,{}]" : "[{},n]";
  std::string hint;
  if (b_columns == k) {
    hint = o.transpose_b ? "b is read transposed, as [n,k]: leave transpose_b out"
                         : "b looks transposed: linear(x, w) takes w as [out,in], or use b.t()";
  }
  throw ShapeError(
      op,
      fmt::format("inner sizes must agree; got a {}, b {}; need b {}", to_string(a.sizes()),
                  to_string(b.sizes()), fmt::format(fmt::runtime(b.dim() > 2 ? need : flat), k)),
      hint);
}

[[noreturn, gnu::cold]] void throw_batch(const char* op, const Tensor& a, const Tensor& b) {
  throw ShapeError(op,
                   fmt::format("batch sizes must be equal or 1; got a {}, b {}",
                               to_string(a.sizes()), to_string(b.sizes())),
                   "all dimensions but the last two are batch; unsqueeze() inserts one of size 1");
}

[[noreturn, gnu::cold]] void throw_types(const char* op, const Tensor& a, const Tensor& b) {
  throw DTypeError(
      op,
      fmt::format("operands must have one type; got a {} {}, b {} {}", name_of(a.dtype()),
                  to_string(a.sizes()), name_of(b.dtype()), to_string(b.sizes())),
      fmt::format("convert one: to(DType::{})", name_of(promote(a.dtype(), b.dtype()))));
}

Shape batch_sizes(const char* op, const Tensor& a, const Tensor& b) {
  const Shape& longer = a.dim() >= b.dim() ? a.sizes() : b.sizes();
  const Shape& other = a.dim() >= b.dim() ? b.sizes() : a.sizes();
  Shape out = longer.slice(0, longer.rank() - 2);
  const int shift = longer.rank() - other.rank();
  for (int d = 0; d < other.rank() - 2; ++d) {
    int64_t& have = out[shift + d];
    if (have == other[d] || other[d] == 1) continue;
    if (have != 1) throw_batch(op, a, b);
    have = other[d];
  }
  return out;
}

void set_batch_strides(int64_t* strides, const Tensor& t, int rank) {
  const int own = t.dim() - 2;
  for (int d = 0; d < own; ++d) {
    strides[rank - own + d] = t.sizes()[d] == 1 ? 0 : t.strides()[d];
  }
}

// One product instead of many, where rows of A and C follow each other and B stays, or where the
// sum over the batch is a sum over a longer inner size.
void join_batch(MatmulArgs& x) {
  if (x.rank != 1) return;
  const int64_t a = x.strides[1][0], b = x.strides[2][0], c = x.strides[0][0], n = x.sizes[0];
  if (x.sum_batch) {
    const bool inner_a = x.k == 1 || a == x.k * x.a_column;
    const bool inner_b = x.k == 1 || b == x.k * x.b_row;
    if (!inner_a || !inner_b) return;
    if (x.k == 1) {
      x.a_column = a;
      x.b_row = b;
    }
    x.k *= n;
  } else {
    if (b != 0 || (x.m != 1 && (a != x.m * x.a_row || c != x.m * x.c_row))) return;
    if (x.m == 1) {
      x.a_row = a;
      x.c_row = c;
    }
    x.m *= n;
  }
  x.rank = 0;
  x.batch = 1;
}

}  // namespace

MatmulSizes check_matmul(const char* op, const Tensor& a, const Tensor& b,
                         const MatmulOptions& options) {
  if (a.device() != b.device()) {
    throw DeviceError(op,
                      "operands must be on one device; got a on " + to_string(a.device()) +
                          ", b on " + to_string(b.device()),
                      "move one of them with to(device)");
  }
  if (a.dtype() != b.dtype()) throw_types(op, a, b);
  const Shape &sa = a.sizes(), &sb = b.sizes();
  const int ra = sa.rank(), rb = sb.rank();
  MatmulSizes s;
  s.m = sa[options.transpose_a ? ra - 1 : ra - 2];
  s.k = sa[options.transpose_a ? ra - 2 : ra - 1];
  s.n = sb[options.transpose_b ? rb - 2 : rb - 1];
  const int64_t inner = sb[options.transpose_b ? rb - 1 : rb - 2];
  if (inner != s.k) throw_inner(op, a, b, options, s.k, s.n);
  s.batch = ra == 2 && rb == 2 ? Shape{} : batch_sizes(op, a, b);
  if (!options.sum_batch) s.out = s.batch;
  s.out.push_back(s.m);
  s.out.push_back(s.n);
  return s;
}

MatmulArgs matmul_args(const Tensor& c, const Tensor& a, const Tensor& b, const MatmulSizes& sizes,
                       const MatmulOptions& options) {
  MatmulArgs x;
  x.m = sizes.m;
  x.n = sizes.n;
  x.k = sizes.k;
  const Shape &ta = a.strides(), &tb = b.strides();
  const int ra = ta.rank(), rb = tb.rank();
  x.a_row = ta[options.transpose_a ? ra - 1 : ra - 2];
  x.a_column = ta[options.transpose_a ? ra - 2 : ra - 1];
  x.b_row = tb[options.transpose_b ? rb - 1 : rb - 2];
  x.b_column = tb[options.transpose_b ? rb - 2 : rb - 1];
  x.c_row = sizes.n > 0 ? sizes.n : 1;
  x.sum_batch = options.sum_batch;
  x.a = a.raw();
  x.b = b.raw();
  x.c = c.raw();
  const int rank = sizes.batch.rank();
  if (rank == 0) return x;
  x.batch = sizes.batch.numel();
  for (int d = rank - 1, step = 0; d >= 0; --d, ++step) {
    x.sizes[d] = sizes.batch[d];
    if (options.sum_batch) continue;
    x.strides[0][d] = step == 0 ? sizes.m * x.c_row
                                : x.strides[0][d + 1] * (x.sizes[d + 1] > 0 ? x.sizes[d + 1] : 1);
  }
  set_batch_strides(x.strides[1], a, rank);
  set_batch_strides(x.strides[2], b, rank);
  x.rank = collapse_dims(rank, x.sizes, x.strides, 3);
  if (x.batch > 0) join_batch(x);
  return x;
}

Tensor matmul_raw(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  const MatmulSizes sizes = check_matmul("matmul", a, b, options);
  Tensor c = empty(sizes.out, {.dtype = a.dtype(), .device = a.device()});
  if (c.is_meta() || c.numel() == 0) return c;
  kernels::matmul(a.device(), a.dtype(), matmul_args(c, a, b, sizes, options));
  return c;
}

}  // namespace detail

namespace {

using detail::check_matmul;
using detail::matmul_args;
using detail::MatmulSizes;

void matmul_forward(Call& c) {
  const auto& options = c.attrs<MatmulOptions>();
  c.require_dtype(0);
  const MatmulSizes sizes = check_matmul(c.op.name, c.in(0), c.in(1), options);
  Tensor& out = c.out(0, sizes.out, c.in(0).dtype());
  if (c.meta() || out.numel() == 0) return;
  kernels::matmul(out.device(), out.dtype(), matmul_args(out, c.in(0), c.in(1), sizes, options));
}

// The gradient of a summed product lacks the batch dimensions that only its operand has.
Tensor with_batch_of(const Tensor& grad, const Shape& like) {
  if (grad.sizes() == like) return grad;
  return grad.expand(broadcast("matmul", grad.sizes(), like));
}

// Gradients of C = op(A) op(B), again as products of the same record. An operand that is one matrix
// for a whole batch gets the sum over the batch from the product itself.
void matmul_gradients(Backward& b, const MatmulOptions& o, int first, const Tensor& g) {
  if (b.needs(first)) {
    const Tensor y = b.input(first + 1);
    const Shape& sizes = b.input_sizes(first);
    const bool sum = sizes.rank() == 2;
    const Tensor grad =
        o.transpose_a
            ? matmul(y, g, {.transpose_a = o.transpose_b, .transpose_b = true, .sum_batch = sum})
            : matmul(g, y, {.transpose_b = !o.transpose_b, .sum_batch = sum});
    b.set(first, o.sum_batch ? with_batch_of(grad, sizes) : grad);
  }
  if (b.needs(first + 1)) {
    const Tensor x = b.input(first);
    const Shape& sizes = b.input_sizes(first + 1);
    const bool sum = sizes.rank() == 2;
    const Tensor grad =
        o.transpose_b
            ? matmul(g, x, {.transpose_a = true, .transpose_b = o.transpose_a, .sum_batch = sum})
            : matmul(x, g, {.transpose_a = !o.transpose_a, .sum_batch = sum});
    b.set(first + 1, o.sum_batch ? with_batch_of(grad, sizes) : grad);
  }
}

void matmul_backward(Backward& b) {
  matmul_gradients(b, b.attrs<MatmulOptions>(), 0, b.upstream());
}

// ---- as nodes of ONNX

std::string onnx_transposed(OnnxCall& c, int i, bool wanted) {
  const int rank = c.in(i).dim();
  if (!wanted || rank < 2) return c.name(i);
  Shape order;
  for (int d = 0; d < rank; ++d) order.push_back(d);
  std::swap(order[rank - 1], order[rank - 2]);
  return c.node("Transpose", {c.name(i)}, {{"perm", order}});
}
void onnx_matmul(OnnxCall& c) {
  const auto& o = c.attrs<MatmulOptions>();
  if (o.sum_batch) c.refuse("has no equivalent in ONNX with sum_batch");
  c.result(c.node("MatMul",
                  {onnx_transposed(c, 0, o.transpose_a), onnx_transposed(c, 1, o.transpose_b)}));
}

const OpRecord kMatmul{
    .name = "matmul",
    .signature = "matmul(a, b, {transpose_a, transpose_b, sum_batch}) → y",
    .meaning = "Matrix product over the last two dimensions; batch dimensions broadcast.",
    .formula = "y_ij = Σ_p a_ip b_pj",
    .shapes = "a [..., m, k]   b [..., k, n]   y [..., m, n]",
    .dtypes = kNumbers,
    .compute = Compute::low,
    .save_inputs = 0b11,
    .cross = true,
    .forward = matmul_forward,
    .backward_text = "da = g bᵀ,  db = aᵀ g",
    .backward = matmul_backward,
    .samples = matmul_samples,
    .onnx = onnx_matmul,
};

[[noreturn, gnu::cold]] void throw_rank(const char* op, const char* rule, const Tensor& a,
                                        const Tensor& b, const char* hint) {
  throw ShapeError(
      op, fmt::format("{}; got a {}, b {}", rule, to_string(a.sizes()), to_string(b.sizes())),
      hint);
}

// ---- addmm and baddbmm

void addmm_forward(Call& c, int rank, const char* rule) {
  const auto& options = c.attrs<AddmmOptions>();
  const Tensor &add = c.in(0), &a = c.in(1), &b = c.in(2);
  for (int i = 0; i < 3; ++i) c.require_dtype(i);
  c.require_same_device();
  if (a.dim() != rank || b.dim() != rank) throw_rank(c.op.name, rule, a, b, "matmul() takes any");
  const MatmulSizes sizes = check_matmul(c.op.name, a, b, {});
  if (add.dtype() != a.dtype()) {
    throw DTypeError(c.op.name,
                     fmt::format("operands must have one type; got c {}, a {}",
                                 name_of(add.dtype()), name_of(a.dtype())),
                     "convert one with to()");
  }
  if (broadcast(c.op.name, add.sizes(), sizes.out) != sizes.out) {
    throw ShapeError(c.op.name, fmt::format("c must broadcast to the product; got c {}, need {}",
                                            to_string(add.sizes()), to_string(sizes.out)));
  }
  Tensor& out = c.out(0, sizes.out, a.dtype());
  if (c.meta() || out.numel() == 0) return;
  if (options.beta != 0) copy_elements(out, make_view(add, add.layout().expand(sizes.out)));
  MatmulArgs args = matmul_args(out, a, b, sizes, {});
  args.alpha = options.alpha;
  args.beta = options.beta;
  kernels::matmul(out.device(), out.dtype(), args);
}

void addmm_backward(Backward& b) {
  const auto& options = b.attrs<AddmmOptions>();
  if (b.needs(0) && options.beta != 0) {
    b.set(0, options.beta == 1 ? b.upstream() : b.upstream() * options.beta);
  }
  if (options.alpha == 0) return;
  matmul_gradients(b, {}, 1, options.alpha == 1 ? b.upstream() : b.upstream() * options.alpha);
}

const OpRecord kAddmm{
    .name = "addmm",
    .signature = "addmm(c, a, b, {beta = 1, alpha = 1}) → y",
    .meaning = "A matrix plus the product of two; c broadcasts.",
    .formula = "y = beta · c + alpha · a b",
    .shapes = "c [m, n]   a [m, k]   b [k, n]   y [m, n]",
    .dtypes = kFloating,
    .compute = Compute::low,
    .save_inputs = 0b110,
    .forward = [](Call& c) { addmm_forward(c, 2, "a and b must be matrices"); },
    .backward_text = "dc = beta · g,  da = alpha · g bᵀ,  db = alpha · aᵀ g",
    .backward = addmm_backward,
    .samples = addmm_samples,
    .onnx =
        [](OnnxCall& c) {
          const auto& o = c.attrs<AddmmOptions>();
          c.result(c.node("Gemm", {c.name(1), c.name(2), c.name(0)},
                          {{"alpha", o.alpha}, {"beta", o.beta}}));
        },
};

const OpRecord kBaddbmm{
    .name = "baddbmm",
    .signature = "baddbmm(c, a, b, {beta = 1, alpha = 1}) → y",
    .meaning = "For each batch index, a matrix plus the product of two; c broadcasts.",
    .formula = "y_b = beta · c_b + alpha · a_b b_b",
    .shapes = "c [B, m, n]   a [B, m, k]   b [B, k, n]   y [B, m, n]",
    .dtypes = kFloating,
    .compute = Compute::low,
    .save_inputs = 0b110,
    .forward = [](Call& c) { addmm_forward(c, 3, "a and b must have three dimensions"); },
    .backward_text = "dc = beta · g,  da = alpha · g bᵀ,  db = alpha · aᵀ g",
    .backward = addmm_backward,
    .samples = baddbmm_samples,
    .onnx =
        [](OnnxCall& c) {
          const auto& o = c.attrs<AddmmOptions>();
          const std::string y =
              c.node("Mul", {c.node("MatMul", {c.name(1), c.name(2)}), c.number(o.alpha)});
          c.result(c.node("Add", {y, c.node("Mul", {c.name(0), c.number(o.beta)})}));
        },
};

// A vector operand: as a row or a column, and out of the result again.
Tensor matmul_with_vector(const TensorArg& a, const TensorArg& b, MatmulOptions options) {
  if (a->dim() == 0 || b->dim() == 0) {
    throw_rank("matmul", "operands need at least one dimension", *a, *b, "use a * b for numbers");
  }
  const bool row = a->dim() == 1, column = b->dim() == 1;
  if (options.sum_batch || (row && options.transpose_a) || (column && options.transpose_b)) {
    throw_rank("matmul", "options need operands with at least two dimensions", *a, *b, "");
  }
  Tensor y = matmul(row ? a->unsqueeze(0) : *a, column ? b->unsqueeze(1) : *b, options);
  if (column) y = y.squeeze(-1);
  if (row) y = y.squeeze(column ? -1 : -2);
  return y;
}

}  // namespace

Tensor matmul(TensorArg a, TensorArg b, MatmulOptions options) {
  if (a->dim() >= 2 && b->dim() >= 2) return run(kMatmul, {a, b}, options);
  CallScope scope(a.site);
  return matmul_with_vector(a, b, options);
}

Tensor mm(TensorArg a, TensorArg b) {
  CallScope scope(a.site);
  if (a->dim() != 2 || b->dim() != 2) {
    throw_rank("mm", "a and b must be matrices", *a, *b, "matmul() takes any number of dimensions");
  }
  return run(kMatmul, {a, b}, MatmulOptions{});
}

Tensor bmm(TensorArg a, TensorArg b) {
  CallScope scope(a.site);
  if (a->dim() != 3 || b->dim() != 3) {
    throw_rank("bmm", "a and b must have three dimensions", *a, *b,
               "matmul() takes any number of dimensions");
  }
  return run(kMatmul, {a, b}, MatmulOptions{});
}

Tensor mv(TensorArg a, TensorArg x) {
  CallScope scope(a.site);
  if (a->dim() != 2 || x->dim() != 1) {
    throw_rank("mv", "a must be a matrix and b a vector", *a, *x, "matmul() takes other ranks");
  }
  return matmul(a, x);
}

Tensor dot(TensorArg a, TensorArg b) {
  CallScope scope(a.site);
  if (a->dim() != 1 || b->dim() != 1) {
    throw_rank("dot", "a and b must be vectors", *a, *b, "matmul() takes other ranks");
  }
  return matmul(a, b);
}

Tensor outer(TensorArg a, TensorArg b) {
  CallScope scope(a.site);
  if (a->dim() != 1 || b->dim() != 1) {
    throw_rank("outer", "a and b must be vectors", *a, *b, "flatten() them first");
  }
  return matmul(a->unsqueeze(1), b->unsqueeze(0));
}

Tensor addmm(TensorArg c, TensorArg a, TensorArg b, AddmmOptions options) {
  return run(kAddmm, {c, a, b}, options);
}

Tensor baddbmm(TensorArg c, TensorArg a, TensorArg b, AddmmOptions options) {
  return run(kBaddbmm, {c, a, b}, options);
}

void register_matmul_ops(std::vector<const OpRecord*>& list) {
  for (const OpRecord* op : {&kMatmul, &kAddmm, &kBaddbmm}) list.push_back(op);
}

}  // namespace cutaway
