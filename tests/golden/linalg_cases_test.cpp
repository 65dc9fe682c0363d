// Dense linear algebra against stored values: forward and gradients.
#include <gtest/gtest.h>

#include <cutaway/autograd/ops.h>
#include <tests/golden/run.h>

namespace cutaway::golden {
namespace {

void cholesky_of(Run& r) {
  const Tensor l = linalg::cholesky(r.input("a"));
  r.finish({{"y", r.data().flag("upper", false) ? l.transpose(-2, -1) : l}});
}
void inverse_of(Run& r) { r.finish({{"y", linalg::inverse(r.input("a"))}}); }
void solve_of(Run& r) { r.finish({{"y", linalg::solve(r.input("a"), r.input("b"))}}); }
void solve_triangular_of(Run& r) {
  const Case& c = r.data();
  linalg::TriangularOptions o{.upper = c.flag("upper", false),
                              .unit = c.flag("unitriangular", false)};
  const Tensor a = r.input("a"), b = r.input("b");
  if (c.flag("left", true)) {
    r.finish({{"y", linalg::solve_triangular(a, b, o)}});
    return;
  }
  o.transpose = true;  // x a = b is aᵀ xᵀ = bᵀ
  const Tensor x = linalg::solve_triangular(a, b.transpose(-2, -1), o);
  r.finish({{"y", x.transpose(-2, -1)}});
}
void det_of(Run& r) { r.finish({{"y", linalg::det(r.input("a"))}}); }
void slogdet_of(Run& r) {
  const auto s = linalg::slogdet(r.input("a"));
  r.finish({{"sign", s.sign}, {"logabsdet", s.logabsdet}});
}

// The signs of vectors are free, so their squares are compared.
void qr_of(Run& r) {
  const auto f = linalg::qr(r.input("a"));
  r.finish({{"q", f.q}, {"r", f.r}});
}
void eigh_of(Run& r) {
  const auto f = linalg::eigh(r.input("a"));
  r.finish({{"values", f.values}, {"vectors_squared", square(f.vectors)}});
}
void svd_of(Run& r) {
  const auto f = linalg::svd(r.input("a"));
  r.finish({{"s", f.s}, {"u_squared", square(f.u)}, {"vh_squared", square(f.vh)}});
}
void svdvals_of(Run& r) { r.finish({{"y", linalg::svdvals(r.input("a"))}}); }

TEST(GoldenFile, linalg) {
  compare_file("linalg", {
                             {"cholesky", cholesky_of},
                             {"det", det_of},
                             {"eigh", eigh_of},
                             {"inv", inverse_of},
                             {"qr", qr_of},
                             {"slogdet", slogdet_of},
                             {"solve", solve_of},
                             {"solve_triangular", solve_triangular_of},
                             {"svd", svd_of},
                             {"svdvals", svdvals_of},
                         });
}

}  // namespace
}  // namespace cutaway::golden
