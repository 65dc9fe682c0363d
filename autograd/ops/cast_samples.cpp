#include <cutaway/autograd/ops/pointwise_samples.h>

#include <cutaway/autograd/ops/cast.h>
#include <cutaway/autograd/reference.h>

namespace cutaway {
namespace {

Tensors same_values(const Tensors& in) { return {Ref(in[0]).tensor()}; }

}  // namespace

void cast_samples(SampleList& list) {
  // f64 → f32 → f64 would lose digits, so derivatives are taken between wide types.
  const OpFn wide = [](const Tensors& in) { return Tensors{cast(in[0], DType::f64)}; };
  for (const Shape& s : {Shape{}, Shape{0, 3}, Shape{17}, Shape{2, 3, 4}}) {
    list.add("to f64 " + to_string(s), {list.randn(s)}, wide, same_values);
  }
  list.add("integers to f64", {list.integers({3, 40}, -100, 100)}, wide, same_values);
  for (DType t : {DType::i64, DType::i32, DType::i8}) {
    Sample& s = list.add(
        std::string("whole numbers to ") + name_of(t), {list.integers({70}, -100, 100)},
        [t](const Tensors& in) { return Tensors{cast(in[0], t)}; }, same_values);
    s.all_dtypes = false;
  }
}

void clone_samples(SampleList& list) {
  const OpFn call = [](const Tensors& in) { return Tensors{clone(in[0])}; };
  for (const Shape& s : {Shape{}, Shape{0, 3}, Shape{17}, Shape{2, 3, 4}}) {
    list.add(to_string(s), {list.randn(s)}, call, same_values);
  }
  list.add("integers", {list.integers({3, 40}, -100, 100)}, call, same_values);
}

void to_device_samples(SampleList& list) {
  // Between two back ends only one of which may be in this build: the host to itself is x.
  const OpFn call = [](const Tensors& in) { return Tensors{to_device(in[0], in[0].device())}; };
  list.add("same device", {list.randn({2, 3})}, call, same_values);
  list.error(
      "values of a meta tensor", [] { to_device(zeros({2}, {.device = kMeta}), kCpu); },
      "[to_device] meta tensors have sizes only, no values to move; got [2]");
}

}  // namespace cutaway
