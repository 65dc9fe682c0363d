// Kernels of group-shared layers against the dense matrix they stand for, in f64, on sizes that are
// no multiples of any tile; the same bits on one and two threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/kernels/group_shared.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/rng.h>

namespace cutaway {
namespace {

struct Layer {
  int64_t batch = 0, features = 0, labels = 0, fan_in = 0, group = 1;
  bool block = false;
  DType type = DType::f32;  // of weights
  Tensor x = {}, index = {}, weight = {}, bias = {}, dz = {};

  void fill() {
    Generator random{.seed = 7};
    const int64_t groups = (labels + group - 1) / group;
    x = randn({features, batch}, {}, &random);
    const Opts i32{.dtype = DType::i32};
    index = block ? randint(0, features - fan_in + 1, {groups}, i32, &random)
                  : randint(0, features, {groups, fan_in}, i32, &random);
    weight = randn({labels, fan_in}, {}, &random).to(type);
    bias = randn({labels}, {}, &random);
    dz = randn({labels, batch}, {}, &random);
    if (index.numel() > 1 && fan_in > 1 && !block) {  // a duplicate
      index.data<int32_t>()[1] = index.data<int32_t>()[0];
    }
  }
  GroupSharedShape shape() const {
    return {.batch = batch,
            .features = features,
            .labels = labels,
            .fan_in = fan_in,
            .group = group,
            .block = block,
            .weight_type = type,
            .x_row = batch,
            .z_row = batch,
            .index = index.data<int32_t>()};
  }
  int64_t feature(int64_t label, int64_t j) const {
    const int64_t k = label / group;
    return block ? index.data<int32_t>()[k] + j : index.data<int32_t>()[k * fan_in + j];
  }
  Tensor forward() const {
    const Tensor z = full({labels, batch}, 99);
    GroupSharedForwardArgs a{shape()};
    a.x = x.raw(), a.weight = weight.raw(), a.bias = bias.raw(), a.z = z.raw();
    kernels::group_shared_forward(kCpu, DType::f32, a);
    return z;
  }
  Tensor input_grad(const Tensor& onto = {}) const {
    const Tensor dx = onto.defined() ? onto.clone() : full({features, batch}, 99);
    GroupSharedInputGradArgs a{shape()};
    a.accumulate = onto.defined();
    a.weight = weight.raw(), a.dz = dz.raw(), a.dx = dx.raw();
    kernels::group_shared_input_grad(kCpu, DType::f32, a);
    return dx;
  }
  Tensors weight_grad() const {
    const Tensor dweight = full({labels, fan_in}, 99), dbias = full({labels}, 99);
    GroupSharedWeightGradArgs a{shape()};
    a.x = x.raw(), a.dz = dz.raw(), a.dweight = dweight.raw(), a.dbias = dbias.raw();
    kernels::group_shared_weight_grad(kCpu, DType::f32, a);
    return {dweight, dbias};
  }
  // [labels, features] in f64.
  Tensor expanded() const {
    const Tensor d = zeros({labels, features}, {.dtype = DType::f64}), w = weight.to(DType::f64);
    for (int64_t l = 0; l < labels; ++l) {
      for (int64_t j = 0; j < fan_in; ++j) {
        d.data<double>()[l * features + feature(l, j)] += w.data<double>()[l * fan_in + j];
      }
    }
    return d;
  }
};

void expect_close(const Tensor& got, const Tensor& want, const std::string& what) {
  const auto a = got.to_vector(), b = want.to_vector();
  ASSERT_EQ(a.size(), b.size()) << what;
  double most = 1e-30, off = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(b[i]));
    off = std::max(off, std::abs(a[i] - b[i]));
  }
  EXPECT_LE(off / most, 1e-5) << what;
}

void check(Layer t) {
  t.fill();
  const std::string name = "G " + std::to_string(t.group) + ", F " + std::to_string(t.fan_in) +
                           ", B " + std::to_string(t.batch) + (t.block ? ", block" : "");
  const Tensor d = t.expanded(), x = t.x.to(DType::f64), g = t.dz.to(DType::f64);
  expect_close(t.forward(), matmul(d, x) + t.bias.to(DType::f64).unsqueeze(1), name + ": z");
  expect_close(t.input_grad(), matmul(d.t(), g), name + ": dx");
  expect_close(t.input_grad(t.x), matmul(d.t(), g) + x, name + ": dx onto x");
  const Tensor dense = matmul(g, x.t());  // [labels, features]
  const Tensor dweight = zeros({t.labels, t.fan_in}, {.dtype = DType::f64});
  for (int64_t l = 0; l < t.labels; ++l) {
    for (int64_t j = 0; j < t.fan_in; ++j) {
      dweight.data<double>()[l * t.fan_in + j] =
          dense.data<double>()[l * t.features + t.feature(l, j)];
    }
  }
  const Tensors got = t.weight_grad();
  expect_close(got[0], dweight, name + ": dW");
  expect_close(got[1], sum(g, {1}), name + ": db");
}

TEST(GroupShared, equals_the_expanded_dense_matrix) {
  for (const int64_t group : {16, 32, 64}) {
    for (const int64_t fan_in : {16, 64, 128}) {
      for (const int64_t batch : {7, 37, 128}) {
        check({.batch = batch, .features = 150, .labels = 203, .fan_in = fan_in, .group = group});
      }
    }
  }
}

TEST(GroupShared, takes_any_size) {
  check({.batch = 1, .features = 3, .labels = 5, .fan_in = 2, .group = 3});
  check({.batch = 65, .features = 40, .labels = 1, .fan_in = 1, .group = 5});
  check({.batch = 200, .features = 33, .labels = 67, .fan_in = 19, .group = 67});
  check({.batch = 130, .features = 300, .labels = 100, .fan_in = 257, .group = 11});
}

TEST(GroupShared, own_indices_equal_the_expanded_dense_matrix) {
  for (const int64_t batch : {5, 37, 128, 261}) {
    check({.batch = batch, .features = 90, .labels = 71, .fan_in = 35});
  }
}

TEST(GroupShared, reads_blocks_of_features) {
  check({.batch = 37, .features = 150, .labels = 90, .fan_in = 32, .group = 16, .block = true});
  check({.batch = 20, .features = 50, .labels = 9, .fan_in = 12, .group = 1, .block = true});
}

TEST(GroupShared, takes_weights_in_bf16) {
  for (const int64_t group : {1, 16}) {
    check({.batch = 37,
           .features = 90,
           .labels = 70,
           .fan_in = 32,
           .group = group,
           .type = DType::bf16});
  }
}

TEST(GroupShared, has_the_same_bits_on_any_number_of_threads) {
  const int before = num_threads();
  for (const int64_t group : {1, 32}) {
    Layer t{.batch = 150, .features = 200, .labels = 3001, .fan_in = 48, .group = group};
    t.fill();
    const auto all = [&](int threads) {
      set_num_threads(threads);
      Tensors r = t.weight_grad();
      r.push_back(t.forward());
      r.push_back(t.input_grad());
      return r;
    };
    const Tensors one = all(1);
    for (const int threads : {2, 3, 5}) {
      const Tensors more = all(threads);
      for (size_t i = 0; i < one.size(); ++i) {
        EXPECT_EQ(one[i].to_vector(), more[i].to_vector()) << "result " << i << ", " << threads;
      }
    }
  }
  set_num_threads(before);
}

// Large results are stored around the caches: the same bits as in pieces that are not.
TEST(GroupShared, a_large_result_equals_its_pieces) {
  Layer t{.batch = 64, .features = 100, .labels = 66000, .fan_in = 64, .group = 32};
  t.fill();
  const Tensor z = t.forward(), dweight = t.weight_grad()[0];
  ASSERT_GE(z.numel() * 4, int64_t(16) << 20);
  ASSERT_GE(dweight.numel() * 4, int64_t(16) << 20);
  for (int64_t first = 0; first < t.labels; first += 32768) {
    Layer part = t;
    const int64_t end = std::min(t.labels, first + 32768);
    part.labels = end - first;
    part.index = t.index.slice(0, first / 32, (end + 31) / 32).contiguous();
    part.weight = t.weight.slice(0, first, end).contiguous();
    part.bias = t.bias.slice(0, first, end).contiguous();
    part.dz = t.dz.slice(0, first, end).contiguous();
    EXPECT_TRUE(all(z.slice(0, first, end) == part.forward()).item() == 1) << first;
    EXPECT_TRUE(all(dweight.slice(0, first, end) == part.weight_grad()[0]).item() == 1) << first;
  }
}

TEST(GroupShared, a_batch_without_samples_has_gradients_of_zero) {
  Layer t{.batch = 0, .features = 5, .labels = 4, .fan_in = 3, .group = 2};
  t.fill();
  EXPECT_EQ(t.weight_grad()[0].to_vector(), std::vector<double>(12, 0.0));
  EXPECT_EQ(t.forward().numel(), 0);
}

TEST(GroupShared, layers_without_labels_or_features) {
  Layer none{.batch = 20, .features = 5, .labels = 0, .fan_in = 3, .group = 4};
  none.fill();
  EXPECT_EQ(none.input_grad().to_vector(), std::vector<double>(100, 0.0));
  Layer bare{.batch = 3, .features = 5, .labels = 4, .fan_in = 0, .group = 2};
  bare.fill();
  const std::vector<double> z = bare.forward().to_vector(), bias = bare.bias.to_vector();
  for (size_t i = 0; i < z.size(); ++i) EXPECT_EQ(z[i], bias[i / 3]);
}

}  // namespace
}  // namespace cutaway
