#include <cutaway/autograd/ops/index_tools.h>

#include <fmt/format.h>

#include <cutaway/autograd/ops/compare.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/index.h>
#include <cutaway/core/kernels/scan.h>
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
  throw IndexError(op,
                   fmt::format("index {} at [{}] is out of range for size {}; got index {}, need "
                               "0 … {}",
                               value_at(index, at), place, n, to_string(index.sizes()), n - 1));
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
  const int64_t found = first_outside(index, skip ? -1 : 0, n);
  if (found >= 0) fail_index(op, index, found, n);
}

int64_t first_outside(const Tensor& dense, int64_t low, int64_t high,
                      std::optional<int64_t> ignored) {
  BoundsArgs a;
  a.index = dense.data<int64_t>();
  a.n = dense.numel();
  a.low = low;
  a.high = high;
  a.ignored = ignored.value_or(0);
  a.has_ignored = ignored.has_value();
  int64_t found = -1;
  a.found = &found;
  if (a.n > 0) kernels::index_bounds(dense.device(), DType::i64, a);
  return found;
}

int64_t value_at(const Tensor& dense, int64_t at) {
  return make_view(dense, {{}, {}, dense.layout().offset + at}).item<int64_t>();
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
  const Opts integers{.dtype = DType::i64, .device = dense.device()};
  if (n == 0) return empty({0}, integers);
  // Numbers of the blocks, then where each begins and, last, the total.
  const Tensor counts = zeros({blocks + 1}, integers), begins = empty({blocks + 1}, integers);
  NonzeroArgs a;
  a.in = dense.raw();
  a.n = n;
  a.counts = counts.data<int64_t>();
  kernels::nonzero(dense.device(), dense.dtype(), a);
  kernels::cumsum(dense.device(), DType::i64,
                  {.in = counts.raw(), .out = begins.raw(), .n = blocks + 1, .exclusive = true});
  const int64_t total = value_at(begins, blocks);
  Tensor out = empty({total}, integers);
  if (total == 0) return out;
  a.counts = begins.data<int64_t>();
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
