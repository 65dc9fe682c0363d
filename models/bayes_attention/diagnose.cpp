#include <cutaway/models/bayes_attention/diagnose.h>

#include <fmt/format.h>
#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/datasets/dataset.h>

namespace cutaway::bayes {
namespace {

constexpr Opts kF64{.dtype = DType::f64};

[[noreturn]] void mismatch(const char* what, const Tensor& got, const std::string& need) {
  throw ShapeError("diagnose",
                   fmt::format("{} must be {}; got {}", what, need, to_string(got.sizes())));
}

void check(const HeadArrays& a) {
  if (a.keys.dim() != 2) mismatch("keys", a.keys, "[K,e]");
  if (a.keys.size(0) < 2) mismatch("keys", a.keys, "[K,e] with K ≥ 2");
  if (a.queries.dim() != 2 || a.queries.size(1) != a.keys.size(1)) {
    mismatch("queries", a.queries, fmt::format("[N,{}]", a.keys.size(1)));
  }
  if (a.bias.defined() && (a.bias.dim() != 1 || a.bias.size(0) != a.keys.size(0))) {
    mismatch("bias", a.bias, fmt::format("[{}]", a.keys.size(0)));
  }
  const int64_t n = a.queries.size(0);
  if (a.statistics.defined() && (a.statistics.dim() != 2 || a.statistics.size(0) != n)) {
    mismatch("statistics", a.statistics, fmt::format("[{},d]", n));
  }
  if (a.weights.defined() && a.weights.sizes() != Shape{n, a.keys.size(0)}) {
    mismatch("weights", a.weights, fmt::format("[{},{}]", n, a.keys.size(0)));
  }
}

double relative(double residual, const Tensor& y) {
  const Tensor c = y - mean(y, 0, {.keepdim = true});
  return residual / std::max(sum(c * c).item(), 1e-300);
}

}  // namespace

Diagnosis diagnose(const HeadArrays& a) {
  check(a);
  const Tensor keys = a.keys.to(DType::f64), queries = a.queries.to(DType::f64);
  Tensor scores = matmul(queries, keys.t());
  if (a.bias.defined()) scores = scores + a.bias.to(DType::f64);
  if (!all(isfinite(scores)).item<bool>()) {
    throw ValueError("diagnose", "scores q·k + b must be finite; some are NaN or infinite");
  }
  Diagnosis d;
  if (!a.statistics.defined()) return d;
  const Tensor t = a.statistics.to(DType::f64);
  const Tensor p = a.weights.defined() ? a.weights.to(DType::f64) : softmax(scores, 1);
  // Rows where a weight has underflowed have no logarithm.
  const Tensor good = nonzero(amin(p, 1) > 1e-290).squeeze(1);
  if (good.numel() > t.size(1) + 1) {
    d.log_linear = log_linear_residual(index_select(p, 0, good), index_select(t, 0, good));
  }
  const Tensor design = cat({ones({t.size(0), 1}, kF64), t}, 1);
  const Fit fit = least_squares(design, queries);
  d.query_fit = relative(fit.residual, queries);
  // q = Wᵀ T + w0, so the head compares T with the effective keys W κ.
  const Tensor effective = matmul(keys, fit.x.slice(0, 1, fit.x.size(0)).t());
  const Tensor mu = matmul(p.t(), t) / sum(p, 0).unsqueeze(1);
  const Defect defect = metric_defect(mu, effective);
  d.defect = defect.value;
  d.metric = defect.metric;
  d.eigenvalues = linalg::eigvalsh(defect.metric).to_vector();
  const Tensor free = least_squares(mu - mean(mu, 0), effective - mean(effective, 0)).x;
  d.asymmetry = norm(free - free.t()).item() / std::max(norm(free).item(), 1e-300);
  // A constructed atlas leaves an error ∝ H^(−2/d) (T5): cells that take the defect's root, the
  // relative error of the keys, to a tenth.
  const double root = std::sqrt(std::max(d.defect, 0.0));
  const double cells = std::pow(std::max(root / 0.1, 1.0), double(t.size(1)) / 2);
  d.cells = int64_t(std::ceil(std::min(cells, 1e6)));
  return d;
}

DigitsResult digits_head(const std::string& family) {
  const bool counts = family == "pois";
  if (!counts && family != "bern") {
    throw ValueError("exact", "--data digits is for --family pois or bern; got " + family);
  }
  const auto statistics = [&](const data::Dataset& d) {
    const Tensor x = d.inputs.to(DType::f64).flatten(1);
    return counts ? x : (x > 8).to(DType::f64);
  };
  const data::Dataset train = data::digits("train"), test = data::digits("test");
  const Tensor x = statistics(train), t = statistics(test);
  const Tensor n = segment_sum(ones({x.size(0), 1}, kF64), train.targets, 10);
  // One pseudo-observation at the middle keeps means inside of the domain.
  const Tensor mu = (segment_sum(x, train.targets, 10) + 0.5) / (n + 1);
  const Codebook c = make_codebook(Family::named(family, 64), mu, (n / sum(n)).squeeze(1));
  const auto accuracy = [&](const Tensor& p) {
    return mean((argmax(p, 1) == test.targets).to(DType::f64)).item();
  };
  return {accuracy(posterior(exact_head(c, 1), t)), accuracy(direct_bayes(c, t, 1)), t.size(0)};
}

}  // namespace cutaway::bayes
