#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/parallel.h>

namespace cutaway {
namespace {

using Values = std::vector<double>;
const Opts kF64{.dtype = DType::f64};

Tensor vec(std::initializer_list<double> v) { return tensor(v, kF64); }
Tensor iota(int64_t n) { return arange(0, n); }

// Gradient of f at x for the given upstream.
Values gradient(const Tensor& value, const Tensor& upstream,
                const std::function<Tensor(const Tensor&)>& f) {
  const Tensor x = value.detach().set_requires_grad();
  return grad(Tensors{f(x)}, Tensors{x}, {}, {upstream})[0].to_vector();
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no exception";
}

void expect_contains(const std::string& text, const char* part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Views, ShareStorageAndSeeWrites) {
  const Tensor x = zeros({2, 3});
  for (const Tensor& v : {view(x, {6}), transpose(x, 0, 1), select(x, 0, 1), slice(x, 1, 0, 3, 2),
                          unsqueeze(x, 0), diagonal(x), unfold(x, 1, 2, 1), split(x, 2, 1)[0]}) {
    EXPECT_EQ(v.storage(), x.storage());
    for (int64_t s : v.strides()) EXPECT_GE(s, 0);
  }
  Tensor row = select(x, 0, 1);
  row.fill_(7);
  EXPECT_EQ(x.to_vector(), (Values{0, 0, 0, 7, 7, 7}));
}

TEST(Views, MethodsAreTheOps) {
  const Tensor x = iota(6).reshape({2, 3});
  EXPECT_EQ(x.t().to_vector(), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(x.permute({1, 0}).flatten().to_vector(), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(x[1].to_vector(), (Values{3, 4, 5}));
  EXPECT_EQ(x.slice(1, 0, 3, 2).to_vector(), (Values{0, 2, 3, 5}));
  EXPECT_EQ(x.unsqueeze(1).squeeze().sizes(), (Shape{2, 3}));
  EXPECT_EQ(x.select(1, -1).expand({2, 2}).to_vector(), (Values{2, 5, 2, 5}));
  EXPECT_EQ(x.transpose(0, 1).view({3, 2}).sizes(), (Shape{3, 2}));
}

TEST(Views, ReshapeCopiesOnlyWhenItMust) {
  const Tensor x = zeros({2, 3, 4});
  EXPECT_EQ(reshape(x, {6, 4}).storage(), x.storage());
  EXPECT_EQ(reshape(transpose(x, 0, 1), {3, 2, 2, 2}).storage(), x.storage());
  EXPECT_NE(reshape(transpose(x, 0, 1), {6, 4}).storage(), x.storage());
}

TEST(FieldCases, FC_b7b2_slices_with_steps_and_negative_bounds) {
  const Tensor x = iota(5);
  EXPECT_EQ(slice(x, 0, 10).to_vector(), (Values{}));
  EXPECT_EQ(slice(x, 0, -2).to_vector(), (Values{3, 4}));
  EXPECT_EQ(slice(x, 0, 3, 1).to_vector(), (Values{}));
  EXPECT_EQ(slice(x, 0, -100, 2).to_vector(), (Values{0, 1}));
  EXPECT_EQ(slice(x, 0, 0, kEnd, 2).to_vector(), (Values{0, 2, 4}));
  EXPECT_EQ(slice(x, 0, 1, kEnd, 3).to_vector(), (Values{1, 4}));
  EXPECT_EQ(slice(x, 0, 0, kEnd, INT64_MAX).to_vector(), (Values{0}));
  expect_contains(message_of([&] { slice(x, 0, 4, 0, -1); }), "hint: flip");
  EXPECT_EQ(flip(x, {0}).to_vector(), (Values{4, 3, 2, 1, 0}));
  EXPECT_EQ(gradient(vec({0, 0, 0}), vec({1, 2, 3}), [](const Tensor& t) { return flip(t, {0}); }),
            (Values{3, 2, 1}));
}

TEST(FieldCases, FC_56dc_strided_slice_of_one_row) {
  const Tensor z = zeros({2, 3}, kF64).set_requires_grad();
  const Tensor loss = sum(slice(z, 0, 0, kEnd, 2) * vec({1, 2, 3})) +
                      sum(slice(z, 0, 1, kEnd, 2) * vec({100, 101, 102}));
  EXPECT_EQ(grad(loss, {z})[0].to_vector(), (Values{1, 2, 3, 100, 101, 102}));
}

TEST(FieldCases, FC_b7ed_minus_one_in_reshape_of_an_empty_tensor) {
  expect_contains(message_of([] { reshape(zeros({0, 3}), {0, -1}); }), "ambiguous");
  EXPECT_EQ(reshape(zeros({0, 3}), {-1, 3}).sizes(), (Shape{0, 3}));
  expect_contains(message_of([] { reshape(zeros({2, 0}), {-1, 0}); }), "ambiguous");
}

TEST(FieldCases, FC_dae4_overlapping_windows_add_their_gradients) {
  const int before = num_threads();
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    EXPECT_EQ(gradient(vec({1, 2, 3}), ones({2, 2}, kF64),
                       [](const Tensor& t) { return unfold(t, 0, 2, 1); }),
              (Values{1, 2, 1}));
    const Tensor image = ones({1, 1, 3, 3}, kF64);
    const Tensor back = fold2d(unfold2d(image, {.kernel = {2, 2}}), {3, 3}, {.kernel = {2, 2}});
    EXPECT_EQ(back.to_vector(), (Values{1, 2, 1, 2, 4, 2, 1, 2, 1}));
  }
  set_num_threads(before);
}

Values sizes_of(const Tensors& pieces) {
  Values out;
  for (const Tensor& t : pieces) out.push_back(double(t.numel()));
  return out;
}

TEST(FieldCases, FC_bf58_chunk_and_split_of_sizes_that_do_not_divide) {
  EXPECT_EQ(sizes_of(chunk(iota(5), 4)), (Values{2, 2, 1}));
  EXPECT_EQ(sizes_of(chunk(iota(6), 4)), (Values{2, 2, 2}));
  EXPECT_EQ(sizes_of(tensor_split(iota(5), 4)), (Values{2, 1, 1, 1}));
  EXPECT_EQ(sizes_of(split(iota(0), 2)), (Values{0}));
  EXPECT_EQ(roll(iota(5), {7}, {0}).to_vector(), (Values{3, 4, 0, 1, 2}));
  EXPECT_EQ(roll(iota(0), {3}, {0}).numel(), 0);
}

TEST(FieldCases, FC_5859_cat_of_empties) {
  const Tensor x = ones({2, 2});
  EXPECT_EQ(cat({zeros({0}), x}).sizes(), (Shape{2, 2}));
  EXPECT_EQ(cat({zeros({0, 2}), x}).sizes(), (Shape{2, 2}));
  expect_contains(message_of([&] { cat({zeros({0, 3}), x}); }), "got [0,3], [2,2]");
  expect_contains(message_of([] { cat({}); }), "needs at least one tensor");
  const Tensor mixed = cat({tensor({1}, {.dtype = DType::i64}), tensor({1.5})});
  EXPECT_EQ(mixed.dtype(), DType::f32);
  EXPECT_EQ(mixed.to_vector(), (Values{1, 1.5}));
}

TEST(FieldCases, FC_55a9_padding_modes) {
  const Tensor x = vec({1, 2, 3});
  const auto padded = [&](const Shape& pads, PadMode mode) {
    return pad(x, pads, {.mode = mode}).to_vector();
  };
  EXPECT_EQ(padded({2, 1}, PadMode::reflect), (Values{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(padded({2, 1}, PadMode::replicate), (Values{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(padded({2, 1}, PadMode::circular), (Values{2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(padded({-1, 2}, PadMode::constant), (Values{2, 3, 0, 0}));
  expect_contains(message_of([&] { padded({3, 0}, PadMode::reflect); }), "smaller than the size");
  EXPECT_EQ(gradient(x, ones({6}, kF64),
                     [](const Tensor& t) {
                       return pad(t, {2, 1}, {.mode = PadMode::reflect});
                     }),
            (Values{1, 3, 2}));
}

// A cat of many pieces, of strided ones, and of other types goes three ways to one result.
TEST(Join, AllPathsOfCatAgree) {
  const Tensor a = randn({40, 30}, kF64), b = randn({40, 70}, kF64);
  const Values plain = cat({a, b}, 1).to_vector();
  const Tensor strided = cat({a.t().contiguous().t(), b}, 1);
  EXPECT_EQ(strided.to_vector(), plain);
  EXPECT_EQ(cat({a.to(DType::f32), b.to(DType::f32)}, 1).to_vector(),
            cat({a.to(DType::f32).t().contiguous().t(), b.to(DType::f32)}, 1).to_vector());
}

TEST(Join, SplitGradientIsOneCat) {
  const Tensor x = randn({4, 6}, kF64).set_requires_grad();
  const Tensors parts = split(x, 2, 1);
  // The middle part takes no part: its gradient is zero.
  const Tensor g = grad(sum(parts[0] * 2.0) + sum(parts[2] * 3.0), {x})[0];
  EXPECT_EQ(g[0].to_vector(), (Values{2, 2, 0, 0, 3, 3}));
}

TEST(Join, TensorSplitAtBoundsLikeSlices) {
  const Tensors p = tensor_split_at(iota(4), std::vector<int64_t>{3, 1, 9});
  EXPECT_EQ(sizes_of(p), (Values{3, 0, 3, 0}));
}

TEST(Join, Meshgrid) {
  const Tensors ij = meshgrid({iota(2), iota(3)});
  EXPECT_EQ(ij[0].to_vector(), (Values{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(ij[1].to_vector(), (Values{0, 1, 2, 0, 1, 2}));
  const Tensors xy = meshgrid({iota(2), iota(3)}, {.xy = true});
  EXPECT_EQ(xy[0].sizes(), (Shape{3, 2}));
  EXPECT_EQ(xy[0].to_vector(), (Values{0, 1, 0, 1, 0, 1}));
}

// Sums of 16-bit values over many copies are rounded once.
TEST(Rearrange, RepeatGradientOfHalvesIsRoundedOnce) {
  const Tensor x = ones({1}, {.dtype = DType::bf16}).set_requires_grad();
  const Tensor g =
      grad(Tensors{repeat(x, {4096})}, Tensors{x}, {}, {ones({4096}, {.dtype = DType::bf16})})[0];
  EXPECT_EQ(g.to_vector(), (Values{4096}));
}

TEST(Rearrange, ErrorsLeaveTheSourceAlone) {
  const Tensor x = iota(3);
  expect_contains(message_of([&] { pad(x, {1, 1, 1, 1}); }), "[pad] pads come in pairs");
  expect_contains(message_of([&] { repeat(x, {INT64_MAX}); }), "[repeat]");
  EXPECT_EQ(x.to_vector(), (Values{0, 1, 2}));
}

}  // namespace
}  // namespace cutaway
