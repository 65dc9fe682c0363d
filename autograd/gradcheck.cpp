#include <cutaway/autograd/gradcheck.h>

#include <fmt/format.h>
#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

// A small generator of its own: checks must not disturb the library's random numbers.
struct SplitMix {
  uint64_t state;
  double symmetric() {  // uniform in [-1, 1), never near 0
    state += 0x9E3779B97F4A7C15ull;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    const double u = double(z >> 11) * 0x1p-53;
    return u < 0.5 ? -0.25 - 1.5 * u : 1.5 * u - 0.5;
  }
};

Tensor random_like(const Tensor& t, SplitMix& rng) {
  std::vector<double> v(size_t(t.numel()));
  for (double& x : v) x = rng.symmetric();
  return make_view(tensor(std::span<const double>(v), {t.dtype(), t.device()}),
                   Layout::contiguous(t.sizes()));
}

// Sets one element of a dense f64 tensor, unseen by version counters.
void write_element(const Tensor& t, int64_t element, double v) {
  backend(t.device().kind)
      .copy_from_host(t.device().index, t.data<double>() + element, &v, sizeof v);
}

// Fresh leaves: dense copies that share nothing with the caller.
Tensors make_leaves(const Tensors& inputs) {
  Tensors leaves;
  for (const Tensor& t : inputs) {
    if (!t.defined() || !t.requires_grad()) {
      leaves.push_back(t);
      continue;
    }
    if (t.dtype() != DType::f64) {
      throw DTypeError("gradcheck",
                       std::string("inputs that require grad must be f64; got ") +
                           name_of(t.dtype()) + " " + to_string(t.sizes()),
                       "finite differences need the precision: to(DType::f64)");
    }
    Tensor leaf = empty(t.sizes(), {DType::f64, t.device()});
    copy_elements(leaf, t);
    leaves.push_back(leaf.set_requires_grad());
  }
  return leaves;
}

Tensors floating_only(const Tensors& outputs) {
  Tensors kept;
  for (const Tensor& t : outputs) {
    if (t.defined() && t.is_floating()) kept.push_back(t);
  }
  return kept;
}

class Checker {
 public:
  Checker(const GradcheckFn& fn, const Tensors& inputs, const GradcheckOptions& options)
      : fn_(fn), options_(options), leaves_(make_leaves(inputs)), rng_{options.seed} {}

  GradcheckReport run() {
    Tensors outputs = floating_only(fn_(leaves_));
    int64_t out_count = 0, in_count = 0;
    for (const Tensor& t : outputs) out_count += t.numel();
    for (const Tensor& t : leaves_) in_count += t.defined() && t.requires_grad() ? t.numel() : 0;
    Tensors used;
    for (const Tensor& t : outputs) {
      if (t.requires_grad()) used.push_back(t);
    }
    if (used.empty()) {
      report_.ok = false;
      report_.message = "no output requires grad";
      return report_;
    }
    outputs = used;
    numeric_ = differences();
    for (int k = 0; k < 2; ++k) {
      Tensors up;
      for (const Tensor& t : outputs) up.push_back(random_like(t, rng_));
      compare(up, k == 0 ? "random upstream" : "second random upstream");
    }
    if (out_count * in_count <= options_.full_jacobian && out_count <= 64) {
      for (size_t o = 0; o < outputs.size(); ++o) {
        for (int64_t e = 0; e < outputs[o].numel(); ++e) compare_row(outputs, o, e);
      }
    }
    return report_;
  }

 private:
  // numeric_[column] = d outputs / d one input element, all outputs concatenated.
  std::vector<std::vector<double>> differences() {
    NoGradGuard no_grad;
    std::vector<std::vector<double>> columns;
    for (const Tensor& leaf : leaves_) {
      if (!leaf.defined() || !leaf.requires_grad()) continue;
      const std::vector<double> x = leaf.to_vector();
      for (int64_t e = 0; e < leaf.numel(); ++e) {
        const double at = x[size_t(e)], h = options_.step * std::max(1.0, std::fabs(at));
        const auto f1 = values(leaf, e, at + h), b1 = values(leaf, e, at - h);
        const auto f2 = values(leaf, e, at + 2 * h), b2 = values(leaf, e, at - 2 * h);
        write_element(leaf, e, at);
        std::vector<double> column(f1.size());
        for (size_t k = 0; k < f1.size(); ++k) {
          column[k] = (8 * (f1[k] - b1[k]) - (f2[k] - b2[k])) / (12 * h);
        }
        columns.push_back(std::move(column));
      }
    }
    return columns;
  }

  std::vector<double> values(const Tensor& leaf, int64_t element, double v) {
    write_element(leaf, element, v);
    // A detached call: the function may look at requires_grad or record in its own graph (second
    // order).
    GradModeGuard grad_on(true);
    std::vector<double> all;
    for (const Tensor& t : floating_only(fn_(leaves_))) {
      if (!t.requires_grad()) continue;
      const std::vector<double> v_t = t.to_vector();
      all.insert(all.end(), v_t.begin(), v_t.end());
    }
    return all;
  }

  void compare(const Tensors& upstream, const char* what) {
    const Tensors outputs = used_outputs();
    Tensors wanted;
    for (const Tensor& t : leaves_) {
      if (t.defined() && t.requires_grad()) wanted.push_back(t);
    }
    const Tensors got = grad(outputs, wanted, {.allow_unused = true}, upstream);
    std::vector<double> u;
    for (const Tensor& t : upstream) {
      const auto v = t.to_vector();
      u.insert(u.end(), v.begin(), v.end());
    }
    size_t column = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const std::vector<double> analytic =
          got[i].defined() ? got[i].to_vector() : std::vector<double>(size_t(wanted[i].numel()));
      if (got[i].defined() && got[i].sizes() != wanted[i].sizes()) {
        report_.ok = false;
        report_.message = fmt::format("gradient of input {} has sizes {}, need {}", i,
                                      to_string(got[i].sizes()), to_string(wanted[i].sizes()));
        return;
      }
      for (size_t e = 0; e < analytic.size(); ++e, ++column) {
        double numeric = 0, scale = 0;
        for (size_t k = 0; k < u.size(); ++k) {
          if (u[k] == 0) continue;
          numeric += u[k] * numeric_[column][k];
          scale = std::max(scale, std::fabs(u[k] * numeric_[column][k]));
        }
        judge(what, i, e, analytic[e], numeric, scale);
      }
    }
  }

  Tensors used_outputs() {
    Tensors used;
    for (const Tensor& t : floating_only(fn_(leaves_))) {
      if (t.requires_grad()) used.push_back(t);
    }
    return used;
  }

  void compare_row(const Tensors& outputs, size_t o, int64_t e) {
    Tensors up;
    for (size_t k = 0; k < outputs.size(); ++k) {
      Tensor u = zeros(outputs[k].sizes(), {outputs[k].dtype(), outputs[k].device()});
      if (k == o) write_element(u, e, 1);
      up.push_back(u);
    }
    compare(up, "unit upstream");
  }

  void judge(const char* what, size_t input, size_t element, double analytic, double numeric,
             double scale) {
    const double size = std::max(std::fabs(numeric), scale);
    const double error = std::fabs(analytic - numeric);
    const double relative = error / (options_.atol / options_.rtol + size);
    const bool good = error <= options_.atol + options_.rtol * size;  // false for NaN
    if (good && relative <= report_.worst) return;
    if (good) {
      report_.worst = relative;
      return;
    }
    if (report_.ok || !(relative <= report_.worst)) {
      report_.worst = relative;
      report_.message = fmt::format("{}: input {} element {}: analytic {:.12g}, numeric {:.12g}",
                                    what, input, element, analytic, numeric);
    }
    report_.ok = false;
  }

  const GradcheckFn& fn_;
  GradcheckOptions options_;
  Tensors leaves_;
  SplitMix rng_;
  std::vector<std::vector<double>> numeric_;
  GradcheckReport report_;
};

}  // namespace

GradcheckReport gradcheck(const GradcheckFn& fn, const Tensors& inputs,
                          const GradcheckOptions& options) {
  return Checker(fn, inputs, options).run();
}

GradcheckReport gradgradcheck(const GradcheckFn& fn, const Tensors& inputs,
                              const GradcheckOptions& options) {
  SplitMix rng{options.seed + 17};
  Tensors all = inputs;
  const size_t n = inputs.size();
  {
    for (const Tensor& t : floating_only(fn(make_leaves(inputs)))) {
      if (t.requires_grad()) all.push_back(random_like(t, rng).set_requires_grad());
    }
  }
  const GradcheckFn gradient = [&fn, n](const Tensors& args) {
    const Tensors x(args.begin(), args.begin() + int64_t(n));
    const Tensors upstream(args.begin() + int64_t(n), args.end());
    Tensors outputs;
    for (const Tensor& t : floating_only(fn(x))) {
      if (t.requires_grad()) outputs.push_back(t);
    }
    Tensors wanted;
    for (const Tensor& t : x) {
      if (t.defined() && t.requires_grad()) wanted.push_back(t);
    }
    Tensors got = grad(outputs, wanted, {.create_graph = true, .allow_unused = true}, upstream);
    std::erase_if(got, [](const Tensor& t) { return !t.defined(); });
    return got;
  };
  return gradcheck(gradient, all, options);
}

}  // namespace cutaway
