#include <algorithm>
#include <cmath>

#include <cutaway/autograd/op.h>
#include <cutaway/core/math/philox.h>

namespace cutaway {
namespace {

constexpr uint64_t kSampleSeed = 0xC07A;

Tensor from_values(const std::vector<double>& v, const Shape& sizes, DType dtype) {
  return make_view(tensor(std::span<const double>(v), {.dtype = dtype}), Layout::contiguous(sizes));
}

// Uniform in [0, 1), number `i` of the sequence.
double uniform_at(uint64_t i) {
  const math::Philox4 words = math::philox4(kSampleSeed, 0, i);
  return double((uint64_t(words.word[0]) << 32 | words.word[1]) >> 11) * 0x1p-53;
}

}  // namespace

Tensor SampleList::uniform(const Shape& sizes, double lo, double hi) {
  std::vector<double> v(size_t(sizes.numel()));
  for (double& x : v) x = lo + (hi - lo) * uniform_at(offset_++);
  return from_values(v, sizes, DType::f64);
}

Tensor SampleList::randn(const Shape& sizes) {
  std::vector<double> v(size_t(sizes.numel()));
  for (double& x : v) {
    const double u = uniform_at(offset_++), w = uniform_at(offset_++);
    x = std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * M_PI * w);
  }
  return from_values(v, sizes, DType::f64);
}

Tensor SampleList::integers(const Shape& sizes, int64_t lo, int64_t hi) {
  std::vector<double> v(size_t(sizes.numel()));
  for (double& x : v) x = std::floor(double(lo) + double(hi - lo) * uniform_at(offset_++));
  return from_values(v, sizes, DType::i64);
}

Tensor SampleList::bools(const Shape& sizes) {
  std::vector<double> v(size_t(sizes.numel()));
  for (double& x : v) x = uniform_at(offset_++) < 0.5;
  return from_values(v, sizes, DType::boolean);
}

Tensor SampleList::distinct(const Shape& sizes) {
  std::vector<double> v(size_t(sizes.numel()));
  const double middle = double(v.size()) / 2;
  for (size_t i = 0; i < v.size(); ++i) v[i] = 0.1 * (double(i) - std::floor(middle)) + 0.05;
  for (size_t i = v.size(); i > 1; --i) {
    std::swap(v[i - 1], v[size_t(uniform_at(offset_++) * double(i))]);
  }
  return from_values(v, sizes, DType::f64);
}

Sample& SampleList::add(std::string label, Tensors inputs, OpFn call, OpFn reference) {
  samples.push_back({std::move(label), std::move(inputs), std::move(call), std::move(reference)});
  return samples.back();
}

void SampleList::error(std::string label, std::function<void()> call, std::string text) {
  errors.push_back({std::move(label), std::move(call), std::move(text)});
}

}  // namespace cutaway
