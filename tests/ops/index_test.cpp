#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/parallel.h>

namespace cutaway {
namespace {

using Values = std::vector<double>;
const Opts kF64{.dtype = DType::f64};
const double kNan = std::nan("");
constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor vec(std::initializer_list<double> v) { return tensor(v, kF64); }
Tensor ids(std::initializer_list<double> v) { return tensor(v, {.dtype = DType::i64}); }

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

void expect_same(const Tensor& got, const Values& want) {
  const Values g = got.to_vector();
  ASSERT_EQ(g.size(), want.size());
  for (size_t i = 0; i < g.size(); ++i) {
    EXPECT_TRUE(g[i] == want[i] || (std::isnan(g[i]) && std::isnan(want[i])))
        << "element " << i << ": " << g[i] << ", need " << want[i];
  }
}

// The bytes of f() for 1 and for 4 threads.
void expect_thread_independent(const std::function<Tensor()>& f) {
  const int before = num_threads();
  set_num_threads(1);
  const Tensor one = f();
  set_num_threads(4);
  const Tensor four = f();
  set_num_threads(before);
  ASSERT_EQ(one.sizes(), four.sizes());
  EXPECT_EQ(std::memcmp(one.raw(), four.raw(), size_t(one.numel() * size_of(one.dtype()))), 0);
}

TEST(FieldCases, FC_8601_gather_and_embedding_add_up_for_repeated_rows) {
  EXPECT_EQ(gradient(vec({1, 2, 3}), vec({1, 10, 100}),
                     [](const Tensor& x) {
                       return gather(x, 0, ids({0, 0, 1}));
                     }),
            (Values{11, 100, 0}));
  EXPECT_EQ(gradient(zeros({3, 1}, kF64), reshape(vec({1, 10, 100}), {3, 1}),
                     [](const Tensor& x) {
                       return embedding(x, ids({2, 2, 0}));
                     }),
            (Values{100, 0, 11}));
  const Tensor table = reshape(vec({5, 7}), {2, 1});
  EXPECT_EQ(gradient(table, ones({3, 1}, kF64),
                     [](const Tensor& x) {
                       return embedding(x, ids({1, 0, 1}), {.padding_idx = 1});
                     }),
            (Values{1, 0}));
  EXPECT_EQ(embedding(table, ids({1, 0, 1}), {.padding_idx = 1}).to_vector(), (Values{7, 5, 7}));
}

TEST(FieldCases, FC_c6f7_assignment_with_duplicate_indices) {
  const Tensor at = ids({0, 0, 1}), values = vec({1, 2, 3}), none = zeros({2}, kF64);
  const int before = num_threads();
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    EXPECT_EQ(scatter(none, 0, at, values).to_vector(), (Values{2, 3}));
    EXPECT_EQ(index_copy(none, 0, at, values).to_vector(), (Values{2, 3}));
    EXPECT_EQ(scatter_add(none, 0, at, values).to_vector(), (Values{3, 3}));
    EXPECT_EQ(index_add(none, 0, at, values).to_vector(), (Values{3, 3}));
    for (auto* op :
         {static_cast<Tensor (*)(TensorArg, int64_t, TensorArg, TensorArg)>(scatter), index_copy}) {
      EXPECT_EQ(gradient(values, vec({5, 7}), [&](const Tensor& v) { return op(none, 0, at, v); }),
                (Values{0, 5, 7}));
    }
    EXPECT_EQ(
        gradient(values, vec({5, 7}), [&](const Tensor& v) { return scatter_add(none, 0, at, v); }),
        (Values{5, 5, 7}));
  }
  set_num_threads(before);
}

TEST(FieldCases, FC_a8cb_segment_and_scatter_reductions_with_empty_segments) {
  const Tensor none = zeros({3}, kF64), two = vec({2, 4}), apart = ids({0, 2});
  const ScatterReduceOptions amax{.mode = ScatterMode::amax, .include_self = false};
  const ScatterReduceOptions mean{.mode = ScatterMode::mean, .include_self = false};
  EXPECT_EQ(scatter_reduce(none, 0, apart, two, amax).to_vector(), (Values{2, 0, 4}));
  EXPECT_EQ(scatter_reduce(none, 0, apart, two, mean).to_vector(), (Values{2, 0, 4}));
  EXPECT_EQ(segment_max(two, apart, 3).to_vector(), (Values{2, 0, 4}));
  EXPECT_EQ(segment_mean(two, apart, 3).to_vector(), (Values{2, 0, 4}));
  const Tensor old = zeros({1}, kF64), same = ids({0, 0});
  EXPECT_EQ(scatter_reduce(old, 0, same, two, {.mode = ScatterMode::mean}).to_vector(),
            (Values{2}));
  EXPECT_EQ(scatter_reduce(old, 0, same, two, mean).to_vector(), (Values{3}));
  const Tensor ties = vec({4, 4, 1}), all = ids({0, 0, 0});
  EXPECT_EQ(gradient(ties, ones({1}, kF64),
                     [&](const Tensor& x) { return scatter_reduce(old, 0, all, x, amax); }),
            (Values{0.5, 0.5, 0}));
  EXPECT_EQ(
      gradient(ties, ones({1}, kF64), [&](const Tensor& x) { return segment_max(x, all, 1); }),
      (Values{0.5, 0.5, 0}));
}

TEST(FieldCases, FC_190a_unique_with_nan_and_signed_zero) {
  const UniqueResult r = unique(vec({kNan, 1, kNan}));
  expect_same(r.values, {1, kNan, kNan});
  EXPECT_EQ(r.inverse.to_vector(), (Values{1, 0, 2}));
  EXPECT_EQ(r.counts.to_vector(), (Values{1, 1, 1}));
  EXPECT_EQ(unique(vec({0, -0.0})).values.to_vector(), (Values{0}));
}

TEST(FieldCases, FC_231f_sort_with_nan) {
  for (double nan : {kNan, -kNan}) {
    const Tensor x = vec({3, nan, 1, kInf});
    const auto up = sort(x), down = sort(x, -1, {.descending = true});
    expect_same(up.values, {1, 3, kInf, kNan});
    EXPECT_EQ(up.indices.to_vector(), (Values{2, 0, 3, 1}));
    expect_same(down.values, {kNan, kInf, 3, 1});
    EXPECT_EQ(down.indices.to_vector(), (Values{1, 3, 0, 2}));
  }
  Values v(1000);
  for (size_t i = 0; i < v.size(); ++i) v[i] = i % 10 == 3 ? kNan : std::sin(double(i));
  for (DType t : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    const Tensor x = tensor(std::span<const double>(v), {.dtype = t});
    const auto r = sort(x);
    const Values got = r.values.to_vector();
    for (size_t i = 1; i < 900; ++i) EXPECT_LE(got[i - 1], got[i]);
    for (size_t i = 900; i < 1000; ++i) EXPECT_TRUE(std::isnan(got[i]));
    expect_same(gather(x, 0, r.indices), got);
  }
}

TEST(FieldCases, FC_29a8_topk_with_nan_in_any_position) {
  for (const Tensor& x : {vec({1, kNan, 3, 2}), vec({kNan, 1, 2, 3}), vec({1, 2, 3, kNan})}) {
    expect_same(topk(x, 2).values, {kNan, 3});
    expect_same(topk(x, 2, -1, {.largest = false}).values, {1, 2});
    EXPECT_EQ(topk(x, 0).values.numel(), 0);
    expect_contains(message_of([&] { topk(x, 5); }), "k must lie in 0 … 4");
  }
}

TEST(Index, BothIndexTypesAndNoOthers) {
  const Tensor x = vec({5, 6, 7});
  EXPECT_EQ(gather(x, 0, tensor({2, 0}, {.dtype = DType::i32})).to_vector(), (Values{7, 5}));
  expect_contains(message_of([&] { gather(x, 0, tensor({1}, {.dtype = DType::u8})); }),
                  "an index must be i64 or i32; got u8 [1]");
}

// A temporary may be written in place; an operand that is still held may not.
TEST(Index, OperandsStayAsTheyWere) {
  const Tensor x = vec({1, 2, 3});
  const Tensor y = index_add(x, 0, ids({0}), vec({10}));
  const Tensor z = scatter(x, 0, ids({1}), 9.0);
  EXPECT_EQ(x.to_vector(), (Values{1, 2, 3}));
  EXPECT_EQ(y.to_vector(), (Values{11, 2, 3}));
  EXPECT_EQ(z.to_vector(), (Values{1, 9, 3}));
  EXPECT_EQ(scatter_add(x * 2.0, 0, ids({2, 2}), vec({1, 1})).to_vector(), (Values{2, 4, 8}));
}

// An index that repeats along the other dimensions adds rows; the result is that of the full index.
TEST(Index, ExpandedIndexGivesTheBitsOfAFullOne) {
  const Tensor src = randn({70, 5}), x = randn({9, 5});
  std::vector<int64_t> at(70);
  for (size_t i = 0; i < at.size(); ++i) at[i] = int64_t(i * i % 9);
  const Tensor rows = reshape(index_tensor(at), {70, 1}).expand({70, 5});
  EXPECT_EQ(scatter_add(x, 0, rows, src).to_vector(),
            scatter_add(x, 0, rows.contiguous(), src).to_vector());
  const Tensor turned = transpose(rows, 0, 1), xt = transpose(x, 0, 1), st = transpose(src, 0, 1);
  EXPECT_EQ(scatter_add(xt, 1, turned, st).to_vector(),
            scatter_add(xt, 1, turned.contiguous(), st).to_vector());
  EXPECT_THROW(scatter_add(narrow(x, 0, 0, 7), 0, rows, src), IndexError);
}

TEST(Index, SameBitsForAnyNumberOfThreads) {
  const Tensor src = randn({200000}), rows = randn({3000, 64});
  std::vector<int64_t> at(200000), row(3000);
  for (size_t i = 0; i < at.size(); ++i) at[i] = int64_t(i * 7919 % 501);
  for (size_t i = 0; i < row.size(); ++i) row[i] = int64_t(i * 31 % 97);
  const Tensor index = index_tensor(at), row_index = index_tensor(row);
  expect_thread_independent([&] { return scatter_add(zeros({501}), 0, index, src); });
  expect_thread_independent([&] { return scatter(zeros({501}), 0, index, src); });
  expect_thread_independent(
      [&] { return scatter_reduce(zeros({501}), 0, index, src, {.mode = ScatterMode::mean}); });
  expect_thread_independent([&] { return index_add(zeros({97, 64}), 0, row_index, rows); });
  expect_thread_independent([&] { return segment_max(rows, row_index, 97); });
  expect_thread_independent([&] { return sort(rows, 0).indices; });
}

// Sums at one place are taken in f64 and rounded once.
TEST(Index, SumsOfHalvesAreRoundedOnce) {
  const Opts bf16{.dtype = DType::bf16};
  const Tensor many = ones({4096}, bf16), at = zeros({4096}, {.dtype = DType::i64});
  EXPECT_EQ(scatter_add(zeros({1}, bf16), 0, at, many).to_vector(), (Values{4096}));
  EXPECT_EQ(index_add(zeros({1}, bf16), 0, at, many).to_vector(), (Values{4096}));
  EXPECT_EQ(segment_mean(many, at, 1).to_vector(), (Values{1}));
}

// An infinite upstream gradient must not turn into NaN where nothing flows.
TEST(Index, InfiniteGradientsStayWhereTheyBelong) {
  EXPECT_EQ(gradient(vec({1, 2}), vec({kInf}),
                     [](const Tensor& x) {
                       return segment_max(x, ids({0, 0}), 1);
                     }),
            (Values{0, kInf}));
  EXPECT_EQ(gradient(vec({1, 2}), vec({kInf}),
                     [](const Tensor& x) {
                       return scatter(zeros({1}, kF64), 0, ids({0, 0}), x);
                     }),
            (Values{0, kInf}));
}

TEST(Index, EmbeddingBagWithOffsetsPaddingAndWeights) {
  const Tensor table = reshape(vec({1, 10, 100}), {3, 1});
  const Tensor list = ids({0, 1, 2, 2}), offsets = ids({0, 3, 3});
  EXPECT_EQ(embedding_bag(table, list, {.mode = BagMode::sum, .offsets = offsets}).to_vector(),
            (Values{111, 0, 100}));
  EXPECT_EQ(
      embedding_bag(table, list, {.mode = BagMode::mean, .padding_idx = 2, .offsets = offsets})
          .to_vector(),
      (Values{5.5, 0, 0}));
  EXPECT_EQ(embedding_bag(table, ids({0, 1}).reshape({1, 2}),
                          {.mode = BagMode::sum, .weights = reshape(vec({2, 3}), {1, 2})})
                .to_vector(),
            (Values{32}));
  expect_contains(message_of([&] {
                    embedding_bag(table, list, {.mode = BagMode::sum, .offsets = ids({1, 3})});
                  }),
                  "offsets must begin at 0");
}

TEST(Index, WhereGivesOneVectorForEachDimension) {
  const Tensors at = where(tensor({0, 1, 1, 0}, {2, 2}, {.dtype = DType::boolean}));
  ASSERT_EQ(at.size(), 2u);
  EXPECT_EQ(at[0].to_vector(), (Values{0, 1}));
  EXPECT_EQ(at[1].to_vector(), (Values{1, 0}));
}

TEST(Sort, IntegersAtTheirLimits) {
  const Tensor x = index_tensor(std::vector<int64_t>{0, INT64_MAX, INT64_MIN, -1});
  EXPECT_EQ(sort(x).indices.to_vector(), (Values{2, 3, 0, 1}));
  const Tensor small = tensor({-128, 127, 0}, {.dtype = DType::i8});
  EXPECT_EQ(sort(small).values.to_vector(), (Values{-128, 0, 127}));
  EXPECT_EQ(sort(tensor({200, 3}, {.dtype = DType::u8})).values.to_vector(), (Values{3, 200}));
  EXPECT_EQ(sort(tensor({1, 0}, {.dtype = DType::boolean})).values.to_vector(), (Values{0, 1}));
}

// The long, radix-sorted path and the short one keep the order of equal elements alike.
TEST(Sort, StableOnBothPaths) {
  for (int64_t n : {100, 5000}) {
    std::vector<int64_t> v(static_cast<size_t>(n));
    for (size_t i = 0; i < v.size(); ++i) v[i] = int64_t(i * 37 % 11);
    const Tensor x = index_tensor(v);
    for (bool descending : {false, true}) {
      const auto r = sort(x, 0, {.descending = descending});
      const Values value = r.values.to_vector(), at = r.indices.to_vector();
      for (size_t i = 1; i < v.size(); ++i) {
        EXPECT_TRUE(descending ? value[i - 1] >= value[i] : value[i - 1] <= value[i]);
        if (value[i - 1] == value[i]) {
          EXPECT_LT(at[i - 1], at[i]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace cutaway
