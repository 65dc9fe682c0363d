#include <cutaway/autograd/ops/random.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include <cutaway/autograd/op.h>
#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/elementwise.h>
#include <cutaway/autograd/ops/pointwise_samples.h>
#include <cutaway/core/kernels/random.h>
#include <cutaway/core/math/philox.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {
namespace {

// The state at which a draw of n elements starts; the generator moves past it.
Generator take(Generator* generator, int64_t n) {
  if (!generator) return draw(n);
  Generator at = *generator;
  at.offset = generator->reserve(n);
  return at;
}

RandomArgs random_args(const Tensor& out, const Generator& g) {
  RandomArgs a;
  a.n = out.numel();
  a.out = out.raw();
  a.seed = g.seed;
  a.stream = g.stream;
  a.offset = g.offset;
  return a;
}

void require_floating(const char* op, DType t) {
  if (is_floating(t)) return;
  throw DTypeError(op,
                   fmt::format("makes floating numbers; got {}, need one of {}", name_of(t),
                               to_string(kFloating)),
                   "randint() makes whole numbers");
}

[[noreturn, gnu::cold]] void throw_probability(const char* op, double p) {
  throw ValueError(op, fmt::format("a probability must be in [0, 1]; got {}", p));
}

// A new tensor filled by a kernel with constants a, b.
Tensor random_tensor(const char* op, Kernel<RandomArgs>& kernel, const Shape& sizes, Opts opts,
                     Generator* generator, double a, double b) {
  require_floating(op, opts.dtype);
  Tensor out = empty(sizes, {.dtype = opts.dtype, .device = opts.device});
  const Generator g = take(generator, out.numel());
  if (!out.is_meta() && out.numel()) {
    RandomArgs args = random_args(out, g);
    args.a = a;
    args.b = b;
    kernel(out.device(), out.dtype(), args);
  }
  if (opts.requires_grad) out.set_requires_grad();
  return out;
}

Tensor& overwrite(const char* op, Kernel<RandomArgs>& kernel, Tensor& t, Generator* generator,
                  double a, double b) {
  require_floating(op, t.dtype());
  return t.copy_(random_tensor(op, kernel, t.sizes(), {.dtype = t.dtype(), .device = t.device()},
                               generator, a, b));
}

// ---- records

struct GeneratorAttrs {
  Generator generator;
};
const OpRecord kBernoulli{.name = "bernoulli",
                          .signature = "bernoulli(p) → y",
                          .meaning = "Random zeros and ones with given probabilities of one.",
                          .formula = "y = (u < p), u uniform in [0, 1)",
                          .shapes = "p [...]   y [...]",
                          .determinism = "depends on the generator's state only",
                          .forward =
                              [](Call& c) {
                                c.require_dtype(0);
                                const Tensor& p = c.in(0);
                                Tensor& out = c.out(0, p.sizes(), p.dtype());
                                if (c.meta() || p.numel() == 0) return;
                                const Tensor dense = contiguous_raw(p);
                                RandomArgs args =
                                    random_args(out, c.attrs<GeneratorAttrs>().generator);
                                args.in = dense.raw();
                                kernels::random_bernoulli(out.device(), out.dtype(), args);
                              },
                          .no_gradient = "a random choice is not a function of its probability",
                          .samples = bernoulli_samples};

struct DropoutAttrs {
  double p;
  Generator generator;
};
// Linear in x for a given state of the generator, so its own derivative.
Tensor dropout_at(TensorArg x, const DropoutAttrs& attrs);

const OpRecord kDropout{
    .name = "dropout",
    .signature = "dropout(x, p) → y",
    .meaning = "Sets elements to 0 with probability p and scales the others by 1 / (1 − p).",
    .formula = "y = (u < 1 − p) x / (1 − p), u uniform in [0, 1)",
    .shapes = kSameShape,
    .determinism = "depends on the generator's state only",
    .forward =
        [](Call& c) {
          c.require_dtype(0);
          const DropoutAttrs& a = c.attrs<DropoutAttrs>();
          const bool dense = c.in(0).is_contiguous();
          const Tensor copy = dense ? Tensor() : contiguous_raw(c.in(0));
          const void* x = dense ? c.in(0).raw() : copy.raw();  // before out takes the buffer
          Tensor& out = dense ? c.out_like(0, 0) : c.out(0, c.in(0).sizes(), c.in(0).dtype());
          if (c.meta() || out.numel() == 0) return;
          RandomArgs args = random_args(out, a.generator);
          args.in = x;
          args.a = 1 - a.p;
          args.b = a.p < 1 ? 1 / (1 - a.p) : 0;
          kernels::random_dropout(out.device(), out.dtype(), args);
        },
    .backward_text = "dx = the same choice and factor applied to g",
    .backward = [](Backward& b) { b.set(0, dropout_at(b.upstream(), b.attrs<DropoutAttrs>())); },
    .samples = dropout_samples};

Tensor dropout_at(TensorArg x, const DropoutAttrs& attrs) { return run(kDropout, {x}, attrs); }

// ---- multinomial

[[noreturn, gnu::cold]] void throw_weights(const std::string& rule) {
  throw ValueError("multinomial", rule);
}

double checked_sum(const double* w, int64_t classes) {
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) {
    if (!(w[c] >= 0) || std::isinf(w[c])) {
      throw_weights(fmt::format("weights must be finite and not negative; got {}", w[c]));
    }
    sum += w[c];
  }
  if (!(sum > 0)) throw_weights("the weights must have a positive sum; got 0");
  return sum;
}

// n draws with replacement: the class whose interval of the running sum holds u · total. Intervals
// are open at the top, so an empty one is never met.
void draw_replacing(const double* w, int64_t classes, int64_t n, const Generator& g, int64_t first,
                    int64_t* out) {
  std::vector<double> running(static_cast<size_t>(classes));
  std::partial_sum(w, w + classes, running.begin());
  int64_t last = classes - 1;
  while (w[last] == 0) --last;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t word = math::random_u64(g.seed, g.stream, g.offset, uint64_t(first + i));
    const double at = math::uniform_f64(word) * running.back();
    const auto it = std::upper_bound(running.begin(), running.end(), at);
    out[i] = std::min<int64_t>(it - running.begin(), last);
  }
}

// n draws without replacement: the n smallest of exponential times −ln(u) / weight (Efraimidis and
// Spirakis 2006), in the order of the times.
void draw_keeping(const double* w, int64_t classes, int64_t n, const Generator& g, int64_t first,
                  int64_t* out) {
  std::vector<std::pair<double, int64_t>> times;
  for (int64_t c = 0; c < classes; ++c) {
    if (w[c] == 0) continue;
    const uint64_t word = math::random_u64(g.seed, g.stream, g.offset, uint64_t(first + c));
    // Logarithms of times: tiny weights must not overflow.
    const double u = math::uniform_f64(word) + 0x1p-54;
    times.emplace_back(std::log(-std::log(u)) - std::log(w[c]), c);
  }
  if (int64_t(times.size()) < n) {
    throw_weights(
        fmt::format("more draws without replacement than positive weights; got {} draws, "
                    "{} weights",
                    n, times.size()));
  }
  std::partial_sort(times.begin(), times.begin() + n, times.end());
  for (int64_t i = 0; i < n; ++i) out[i] = times[size_t(i)].second;
}

}  // namespace

Tensor rand(const Shape& sizes, Opts opts, Generator* generator) {
  return random_tensor("rand", kernels::random_uniform, sizes, opts, generator, 0, 1);
}
Tensor randn(const Shape& sizes, Opts opts, Generator* generator) {
  return random_tensor("randn", kernels::random_normal, sizes, opts, generator, 0, 1);
}

Tensor randint(int64_t low, int64_t high, const Shape& sizes, Opts opts, Generator* generator) {
  if (low >= high) {
    throw ValueError("randint", fmt::format("low must be below high; got {} and {}", low, high));
  }
  Tensor out = empty(sizes, {.dtype = DType::i64, .device = opts.device});
  const Generator g = take(generator, out.numel());
  if (!out.is_meta() && out.numel()) {
    RandomArgs args = random_args(out, g);
    args.low = low;
    args.range = uint64_t(high) - uint64_t(low);
    kernels::random_integers(out.device(), DType::i64, args);
  }
  return cast_raw(out, opts.dtype);
}

Tensor randperm(int64_t n, Opts opts, Generator* generator) {
  if (n < 0)
    throw ValueError("randperm", fmt::format("the length must not be negative; got {}", n));
  Generator at = take(generator, n);
  const Tensor order = index_tensor(permutation(n, at));
  if (opts.device.kind == DeviceKind::meta) return empty({n}, opts);
  return cast_raw(order, opts.dtype).to(opts.device);
}

Tensor bernoulli(TensorArg p, Generator* generator) {
  if (!p->is_meta() && any_equal(logical_and(ge(*p, 0), le(*p, 1)), 0)) {
    throw ValueError("bernoulli", "probabilities must be in [0, 1]; got one outside, or NaN",
                     "clamp them, or look for NaN with isnan()");
  }
  return run(kBernoulli, {p}, GeneratorAttrs{take(generator, p->numel())});
}

Tensor dropout(TensorArg x, double p, Generator* generator) {
  if (!(p >= 0 && p <= 1)) throw_probability("dropout", p);
  return dropout_at(x, {p, take(generator, x->numel())});
}

Tensor multinomial(const Tensor& weights, int64_t n, MultinomialOptions options,
                   Generator* generator) {
  const int rank = weights.dim();
  if (rank < 1 || rank > 2) {
    throw ShapeError("multinomial", fmt::format("weights must be [C] or [N,C]; got {}",
                                                to_string(weights.sizes())));
  }
  if (n < 0) throw_weights(fmt::format("the number of draws must not be negative; got {}", n));
  const int64_t rows = rank == 2 ? weights.sizes()[0] : 1, classes = weights.sizes().back();
  const std::vector<double> w = weights.to_vector();
  for (int64_t r = 0; r < rows; ++r) checked_sum(w.data() + r * classes, classes);
  const int64_t words = options.replacement ? n : classes;  // taken by each row
  const Generator g = take(generator, rows * words);
  std::vector<int64_t> out(static_cast<size_t>(rows * n));
  const auto draw_row = options.replacement ? draw_replacing : draw_keeping;
  for (int64_t r = 0; r < rows; ++r) {
    draw_row(w.data() + r * classes, classes, n, g, r * words, out.data() + r * n);
  }
  const Tensor flat = index_tensor(out);
  const Shape sizes = rank == 2 ? Shape{rows, n} : Shape{n};
  return make_view(flat, Layout::contiguous(sizes)).to(weights.device());
}

Tensor& random_uniform_(Tensor& t, double low, double high, Generator* generator) {
  if (!(low <= high)) {
    throw ValueError("random_uniform_",
                     fmt::format("low must not exceed high; got {} and {}", low, high));
  }
  return overwrite("random_uniform_", kernels::random_uniform, t, generator, low, high);
}
Tensor& random_normal_(Tensor& t, double mean, double deviation, Generator* generator) {
  if (!(deviation >= 0)) {
    throw ValueError("random_normal_",
                     fmt::format("the deviation must not be negative; got {}", deviation));
  }
  return overwrite("random_normal_", kernels::random_normal, t, generator, mean, deviation);
}

void register_random_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kBernoulli, &kDropout});
}

}  // namespace cutaway
