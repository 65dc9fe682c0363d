#include <cutaway/nn/optim/muon.h>

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <cutaway/autograd/autograd.h>
#include <cutaway/core/error.h>

namespace cutaway::optim {
namespace {

using Matrix = std::vector<std::vector<double>>;

std::vector<double> wave(int64_t n, double seed) {
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(std::sin(seed + 0.7 * double(i * i % 17)));
  return v;
}
Tensor f64(const std::vector<double>& v, const Shape& sizes) {
  return tensor(std::span<const double>(v), {.dtype = DType::f64}).reshape(sizes);
}
Matrix rows_of(const std::vector<double>& v, size_t rows) {
  Matrix m(rows);
  for (size_t i = 0; i < v.size(); ++i) m[i / (v.size() / rows)].push_back(v[i]);
  return m;
}

// The iteration in plain loops, on X itself whatever its shape: X Xᵀ X is the same either way.
Matrix times(const Matrix& a, const Matrix& b, bool transpose_b) {
  const size_t n = transpose_b ? b.size() : b[0].size();
  Matrix c(a.size(), std::vector<double>(n, 0.0));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t k = 0; k < a[0].size(); ++k) {
        c[i][j] += a[i][k] * (transpose_b ? b[j][k] : b[k][j]);
      }
    }
  }
  return c;
}
Matrix iterate(Matrix x, int steps) {
  double square = 0;
  for (const auto& r : x) {
    for (const double v : r) square += v * v;
  }
  for (auto& r : x) {
    for (double& v : r) v /= std::sqrt(square) + 1e-7;
  }
  for (int s = 0; s < steps; ++s) {
    const Matrix a = times(x, x, true), ax = times(a, x, false), aax = times(a, ax, false);
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < x[0].size(); ++j) {
        x[i][j] = 3.4445 * x[i][j] - 4.775 * ax[i][j] + 2.0315 * aax[i][j];
      }
    }
  }
  return x;
}

TEST(Muon, FollowsItsFormula) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{3, 5}, {6, 2}}) {
    for (const bool nesterov : {true, false}) {
      const int64_t n = rows * columns;
      Tensor x = f64(wave(n, 1), {rows, columns}).set_requires_grad();
      std::vector<double> want = wave(n, 1), buffer(size_t(n), 0.0);
      Muon muon({{"x", x}},
                {.lr = 0.1, .momentum = 0.8, .weight_decay = 0.3, .nesterov = nesterov});
      for (int t = 1; t <= 10; ++t) {
        const std::vector<double> g = wave(n, 2 + t);
        x.set_grad(f64(g, {rows, columns}));
        muon.step();
        std::vector<double> u(size_t(n), 0.0);
        for (size_t i = 0; i < u.size(); ++i) {
          buffer[i] = 0.8 * buffer[i] + 0.2 * g[i];
          u[i] = nesterov ? 0.2 * g[i] + 0.8 * buffer[i] : buffer[i];
        }
        const Matrix o = iterate(rows_of(u, size_t(rows)), 5);
        const double scale = std::sqrt(std::max(1.0, double(rows) / double(columns)));
        const std::vector<double> got = x.to_vector();
        for (size_t i = 0; i < want.size(); ++i) {
          const double move = o[i / size_t(columns)][i % size_t(columns)] * scale;
          want[i] = (1 - 0.1 * 0.3) * want[i] - 0.1 * move;
          EXPECT_NEAR(got[i], want[i], 1e-10) << i << " in step " << t;
        }
      }
    }
  }
}

// Singular values of 2 × n: from trace and determinant of X Xᵀ.
TEST(Muon, OrthogonalizedHasSingularValuesNearOne) {
  const Tensor x = f64({30, 1, 0, 2, 0.1, 3, 0, -1}, {2, 4});
  const Matrix y = rows_of(orthogonalized(x).to_vector(), 2), a = times(y, y, true);
  const double mean = (a[0][0] + a[1][1]) / 2;
  const double spread = std::sqrt(mean * mean - (a[0][0] * a[1][1] - a[0][1] * a[1][0]));
  EXPECT_GT(std::sqrt(mean - spread), 0.65);
  EXPECT_LT(std::sqrt(mean + spread), 1.25);
  EXPECT_THROW(orthogonalized(f64({1}, {1})), ShapeError);
  EXPECT_THROW(orthogonalized(x, -1), ValueError);
  EXPECT_EQ(orthogonalized(zeros({0, 3})).sizes(), (Shape{0, 3}));
}

TEST(Muon, OthersGoByAdamW) {
  Tensor b = f64(wave(4, 1), {4}).set_requires_grad();
  Tensor e = f64(wave(6, 2), {2, 3}).set_requires_grad();
  Tensor b2 = b.detach().clone().set_requires_grad(), e2 = e.detach().clone().set_requires_grad();
  Tensor w = f64(wave(6, 3), {3, 2}).set_requires_grad();
  Muon muon({{"b", b}, {"w", w}, {"tokens.weight", e}},
            {.lr = 0.2, .weight_decay = 0.1, .adam_names = {"tokens.*"}, .adam_lr_factor = 0.5});
  AdamW adam({{"b", b2}, {"e", e2}}, {.lr = 0.1, .beta2 = 0.95, .weight_decay = 0.1});
  for (int t = 0; t < 4; ++t) {
    for (Tensor* p : {&b, &b2}) p->set_grad(f64(wave(4, t), {4}));
    for (Tensor* p : {&e, &e2}) p->set_grad(f64(wave(6, t), {2, 3}));
    w.set_grad(f64(wave(6, t), {3, 2}));
    muon.step();
    adam.step();
    EXPECT_EQ(b.to_vector(), b2.to_vector());
    EXPECT_EQ(e.to_vector(), e2.to_vector());
  }
}

TEST(Muon, StateGoesRound) {
  const auto make = [](const Tensor& w, const Tensor& b) {
    return Muon({{"w", w}, {"b", b}}, {.weight_decay = 0.1});
  };
  const auto step = [](Muon& o, Tensor w, Tensor b, int t) {
    w.set_grad(f64(wave(6, t), {3, 2}));
    b.set_grad(f64(wave(2, t), {2}));
    o.step();
  };
  Tensor w = f64(wave(6, 1), {3, 2}).set_requires_grad();
  Tensor b = f64(wave(2, 2), {2}).set_requires_grad();
  Muon first = make(w, b);
  for (int t = 0; t < 3; ++t) step(first, w, b, t);
  Tensor v = w.detach().clone().set_requires_grad(), c = b.detach().clone().set_requires_grad();
  Muon second = make(v, c);
  second.load_state_dict(first.state_dict());
  for (int t = 3; t < 6; ++t) {
    step(first, w, b, t);
    step(second, v, c, t);
  }
  EXPECT_EQ(w.to_vector(), v.to_vector());
  EXPECT_EQ(b.to_vector(), c.to_vector());
}

TEST(Muon, RejectsWhatCannotBe) {
  const NamedTensors p{{"x", zeros({2, 2}).set_requires_grad()}};
  EXPECT_THROW(Muon(p, {.momentum = 1}), ValueError);
  EXPECT_THROW(Muon(p, {.weight_decay = -1}), ValueError);
  EXPECT_THROW(Muon(p, {.steps = 0}), ValueError);
  EXPECT_THROW(Muon(p, {.adam_lr_factor = NAN}), ValueError);
  EXPECT_THROW(Muon(p, {.beta2 = 1}), ValueError);
  Muon muon(p, {});
  EXPECT_THROW(muon.set_capturable(true), ValueError);
}

}  // namespace
}  // namespace cutaway::optim
