#include <cutaway/autograd/autocast.h>

#include <algorithm>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/op.h>
#include <cutaway/autograd/ops/cast.h>
#include <cutaway/core/storage.h>

namespace cutaway {
namespace detail {
namespace {

constinit thread_local ConvertedParameters* newest = nullptr;

// parameter, its values in another type → these with the history of a cast. Every use has a node of
// its own, so that gradients of the uses are added in the type of the parameter.
const OpRecord kConverted{
    .name = "cast",
    .signature = "cast(x, dtype) → y",
    .meaning = "A parameter in the low type of autocast.",
    .forward =
        [](Call& c) {
          c.outputs[0] = make_view(c.in(1), c.in(1).layout());
          c.outputs[0].impl()->is_view = false;
        },
    .backward = [](Backward& b) { b.set(0, cast(b.upstream(), b.input_dtype(0))); }};

}  // namespace

ConvertedParameters::ConvertedParameters() : before_(newest) { newest = this; }
ConvertedParameters::~ConvertedParameters() { newest = before_; }

const Tensor& ConvertedParameters::values(const Tensor& t, DType low) {
  const uint32_t version = t.storage()->version;
  auto e = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.source.is_same(t) && entry.low.dtype() == low;
  });
  if (e == entries_.end()) {
    e = entries_.insert(e, {t, {}, version});
  } else if (e->version == version && e->low.storage()) {
    return e->low;
  }
  NoGradGuard no_grad;
  e->low = cast(t, low);
  e->version = version;
  return e->low;
}

Tensor ConvertedParameters::convert(const Tensor& t, DType low) {
  const bool parameter = newest && t.requires_grad() && t.is_leaf() && t.storage();
  return parameter ? run(kConverted, {t, newest->values(t, low)}) : cast(t, low);
}

}  // namespace detail

AutocastGuard::AutocastGuard(DType low) : before_(context().autocast) {
  if (low != DType::bf16 && low != DType::f16 && low != DType::f32) {
    throw DTypeError("autocast", std::string("computes in bf16 or f16; got ") + name_of(low),
                     "f32 switches it off");
  }
  context().autocast = low == DType::f32 ? 0 : uint8_t(1 + int(low));
}
AutocastGuard::~AutocastGuard() { context().autocast = before_; }

}  // namespace cutaway
