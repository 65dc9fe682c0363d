#include <tests/golden/golden.h>

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>

// Attention and dense linear algebra against stored values of PyTorch: forward and gradients.
namespace cutaway::golden {
namespace {

using Named = std::map<std::string, Tensor>;

Tensor to_tensor(const Array& a, DType dtype) {
  const Tensor t = tensor(std::span<const double>(a.values), {.dtype = dtype});
  return t.reshape(Shape(std::span<const int64_t>(a.shape)));
}

Named inputs_of(const Case& c, DType dtype) {
  Named in;
  for (const std::string& name : c.names("input")) {
    const Array& a = c.at("input." + name);
    in[name] = to_tensor(a, a.dtype == "BOOL" ? DType::boolean : dtype);
    if (c.has("grad." + name)) in[name].set_requires_grad();
  }
  return in;
}

// Outputs and gradients within `tolerance`, relative to the largest entry.
void check(const Case& c, DType dtype, const Named& in, const Named& out, double tolerance) {
  SCOPED_TRACE(c.name() + " " + name_of(dtype));
  Tensors outputs, upstreams, wanted;
  std::vector<std::string> wanted_names;
  for (const std::string& name : c.names("output")) {
    ASSERT_TRUE(out.contains(name)) << name;
    const Tensor& y = out.at(name);
    EXPECT_LE(relative_error(y.to_vector(), c.at("output." + name)), tolerance) << name;
    if (!c.has("upstream." + name) || !y.requires_grad()) continue;
    outputs.push_back(y);
    upstreams.push_back(to_tensor(c.at("upstream." + name), dtype));
  }
  for (const auto& [name, t] : in) {
    if (!t.requires_grad()) continue;
    wanted.push_back(t);
    wanted_names.push_back(name);
  }
  const Tensors grads = grad(outputs, wanted, {}, upstreams);
  for (size_t i = 0; i < grads.size(); ++i) {
    EXPECT_LE(relative_error(grads[i].to_vector(), c.at("grad." + wanted_names[i])), tolerance)
        << "gradient of " << wanted_names[i];
  }
}

void check_all(const std::string& group, const std::string& op,
               const std::function<Named(const Case&, const Named&)>& call,
               double tolerance_f32 = 1e-5) {
  const auto cases = File::open(group).of_op(op);
  for (const Case* c : cases) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Named in = inputs_of(*c, dtype);
      check(*c, dtype, in, call(*c, in), dtype == DType::f64 ? 1e-10 : tolerance_f32);
    }
  }
}

TEST(GoldenOps, Attention) {
  check_all("attention", "scaled_dot_product_attention", [](const Case& c, const Named& in) {
    AttentionOptions options{.causal = c.flag("is_causal", false)};
    if (in.contains("mask")) options.mask = in.at("mask");
    if (c.has_option("scale")) options.scale = c.number("scale", 0);
    return Named{{"y", scaled_dot_product_attention(in.at("q"), in.at("k"), in.at("v"), options)}};
  });
}

TEST(GoldenOps, SolveFamily) {
  check_all("linalg", "cholesky", [](const Case& c, const Named& in) {
    const Tensor l = linalg::cholesky(in.at("a"));
    return Named{{"y", c.flag("upper", false) ? l.transpose(-2, -1) : l}};
  });
  check_all("linalg", "inv", [](const Case&, const Named& in) {
    return Named{{"y", linalg::inverse(in.at("a"))}};
  });
  check_all("linalg", "solve", [](const Case&, const Named& in) {
    return Named{{"y", linalg::solve(in.at("a"), in.at("b"))}};
  });
  check_all("linalg", "solve_triangular", [](const Case& c, const Named& in) {
    linalg::TriangularOptions o{.upper = c.flag("upper", false),
                                .unit = c.flag("unitriangular", false)};
    if (c.flag("left", true)) {
      return Named{{"y", linalg::solve_triangular(in.at("a"), in.at("b"), o)}};
    }
    o.transpose = true;  // x a = b is aᵀ xᵀ = bᵀ
    const Tensor x = linalg::solve_triangular(in.at("a"), in.at("b").transpose(-2, -1), o);
    return Named{{"y", x.transpose(-2, -1)}};
  });
}

TEST(GoldenOps, Determinants) {
  check_all("linalg", "det", [](const Case&, const Named& in) {
    return Named{{"y", linalg::det(in.at("a"))}};
  });
  check_all("linalg", "slogdet", [](const Case&, const Named& in) {
    const auto r = linalg::slogdet(in.at("a"));
    return Named{{"sign", r.sign}, {"logabsdet", r.logabsdet}};
  });
}

// The signs of vectors are free, so their squares are compared. f32 gradients divide by distances
// of values, hence the wider bound.
TEST(GoldenOps, Decompositions) {
  check_all(
      "linalg", "qr",
      [](const Case&, const Named& in) {
        const auto r = linalg::qr(in.at("a"));
        return Named{{"q", r.q}, {"r", r.r}};
      },
      1e-4);
  check_all(
      "linalg", "eigh",
      [](const Case&, const Named& in) {
        const auto r = linalg::eigh(in.at("a"));
        return Named{{"values", r.values}, {"vectors_squared", square(r.vectors)}};
      },
      1e-4);
  check_all(
      "linalg", "svd",
      [](const Case&, const Named& in) {
        const auto r = linalg::svd(in.at("a"));
        return Named{{"s", r.s}, {"u_squared", square(r.u)}, {"vh_squared", square(r.vh)}};
      },
      1e-4);
  check_all("linalg", "svdvals", [](const Case& c, const Named& in) {
    const Tensor s = linalg::svdvals(in.at("a"));
    return Named{{c.names("output")[0], s}};
  });
}

}  // namespace
}  // namespace cutaway::golden
