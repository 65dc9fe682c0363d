#include <cutaway/autograd/ops/pointwise_samples.h>

#include <cutaway/autograd/ops/random.h>
#include <cutaway/autograd/reference.h>
#include <cutaway/core/math/philox.h>

namespace cutaway {
namespace {

constexpr Generator kState{.seed = 11, .stream = 3, .offset = 5};
const std::initializer_list<Shape> kShapes = {{}, {0, 3}, {1}, {17}, {2, 3, 4}};

double uniform_at(int64_t i) {
  return math::uniform_f32(
      math::random_u32(kState.seed, kState.stream, kState.offset, uint64_t(i)));
}

}  // namespace

void bernoulli_samples(SampleList& list) {
  const OpFn call = [](const Tensors& in) {
    Generator g = kState;
    return Tensors{bernoulli(in[0], &g)};
  };
  const OpFn reference = [](const Tensors& in) {
    Ref p(in[0]);
    for (size_t i = 0; i < p.v.size(); ++i) p.v[i] = uniform_at(int64_t(i)) < p.v[i];
    return Tensors{p.tensor()};
  };
  for (const Shape& s : kShapes) list.add(to_string(s), {list.uniform(s, 0, 1)}, call, reference);
  list.add("5000", {list.uniform({5000}, 0, 1)}, call, reference);
  list.error(
      "above 1", [] { bernoulli(full({2}, 1.5)); }, "[bernoulli] probabilities must be in [0, 1]");
  list.error(
      "NaN", [] { bernoulli(full({2}, __builtin_nan(""))); },
      "[bernoulli] probabilities must be in [0, 1]");
}

void dropout_samples(SampleList& list) {
  for (const double p : {0.0, 0.25, 1.0}) {
    const OpFn call = [p](const Tensors& in) {
      Generator g = kState;
      return Tensors{dropout(in[0], p, &g)};
    };
    const OpFn reference = [p](const Tensors& in) {
      Ref x(in[0]);
      for (size_t i = 0; i < x.v.size(); ++i) {
        x.v[i] = uniform_at(int64_t(i)) < 1 - p ? x.v[i] / (1 - p) : 0;
      }
      return Tensors{x.tensor()};
    };
    const std::string label = "p " + std::to_string(p) + " ";
    for (const Shape& s : kShapes) list.add(label + to_string(s), {list.randn(s)}, call, reference);
    list.add(label + "5000", {list.randn({5000})}, call, reference).grad = false;
  }
  list.error(
      "p above 1", [] { dropout(zeros({2}), 1.5); },
      "[dropout] a probability must be in [0, 1]; got 1.5");
}

}  // namespace cutaway
