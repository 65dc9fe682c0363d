#include <cutaway/autograd/ops/index_tools.h>

#include <fmt/format.h>

#include <cutaway/autograd/ops/compare.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/index.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {
namespace {

[[noreturn, gnu::cold]] void fail_index(const char* op, const Tensor& index, int64_t at,
                                        int64_t n) {
  std::string place;
  int64_t rest = at;
  for (int d = index.dim() - 1; d >= 0; --d) {
    place = std::to_string(rest % index.sizes()[d]) + (place.empty() ? "" : ",") + place;
    rest /= index.sizes()[d];
  }
  throw IndexError(
      op, fmt::format("index {} at [{}] is out of range for size {}; got index {}, need "
                      "0 … {}",
                      index.data<int64_t>()[at], place, n, to_string(index.sizes()), n - 1));
}

}  // namespace

Tensor index_values(const char* op, const Tensor& index) {
  if (index.dtype() != DType::i64 && index.dtype() != DType::i32) {
    throw DTypeError(op,
                     fmt::format("an index must be i64 or i32; got {} {}", name_of(index.dtype()),
                                 to_string(index.sizes())),
                     "convert it with to(DType::i64)");
  }
  return cast_raw(index, DType::i64);
}

void check_index(const char* op, const Tensor& index, int64_t n, bool skip) {
  if (index.is_meta() || index.numel() == 0) return;
  BoundsArgs a;
  a.index = index.data<int64_t>();
  a.n = index.numel();
  a.low = skip ? -1 : 0;
  a.high = n;
  int64_t found = -1;
  a.found = &found;
  kernels::index_bounds(index.device(), DType::i64, a);
  if (found >= 0) fail_index(op, index, found, n);
}

void require_same_type(const char* op, const Tensor& x, const Tensor& src) {
  if (x.dtype() == src.dtype()) return;
  throw DTypeError(op,
                   fmt::format("src and x must have one type; got {} and {}", name_of(src.dtype()),
                               name_of(x.dtype())),
                   "convert one of them with to(dtype)");
}

void refuse_meta(const char* op, const Tensor& t) {
  if (!t.is_meta()) return;
  throw DeviceError(op,
                    "the size of the result depends on values, which meta tensors do not have; "
                    "got " +
                        to_string(t.sizes()));
}

Tensor zeros_like_sizes(const Shape& sizes, const Tensor& like) {
  return zeros(sizes, {.dtype = like.dtype(), .device = like.device()});
}

Tensor& copy_to_out(Call& c) {
  Tensor& out = c.out_like(0, 0);
  if (!c.meta() && out.storage() != c.in(0).storage()) copy_elements(out, c.in(0));
  return out;
}

Tensor nonzero_positions(const Tensor& dense) {
  const int64_t n = dense.numel(), blocks = (n + kNonzeroBlock - 1) / kNonzeroBlock;
  std::vector<int64_t> counts(size_t(blocks) + 1);
  NonzeroArgs a;
  a.in = dense.raw();
  a.n = n;
  a.counts = counts.data();
  if (n > 0) kernels::nonzero(dense.device(), dense.dtype(), a);
  int64_t total = 0;
  for (int64_t& count : counts) {
    const int64_t here = count;
    count = total;
    total += here;
  }
  Tensor out = empty({total}, {.dtype = DType::i64, .device = dense.device()});
  if (total == 0) return out;
  a.out = out.data<int64_t>();
  kernels::nonzero(dense.device(), dense.dtype(), a);
  return out;
}

Tensor same_or_nan(const Tensor& a, const Tensor& b) {
  const Tensor equal = eq(a, b);
  if (!a.is_floating()) return equal;
  return logical_or(equal, logical_and(isnan(a), isnan(b)));
}

}  // namespace cutaway
