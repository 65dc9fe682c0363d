#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <cutaway/core/element.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/pointwise.h>
#include <cutaway/core/pointwise_args.h>
#include <cutaway/core/record/hook.h>
#include <cutaway/core/tensor.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {
namespace {

int64_t checked_bytes(const char* op, const Shape& sizes, DType dtype) {
  int64_t bytes = size_of(dtype);
  bool fits = true, negative = false;
  for (int64_t n : sizes) {
    negative = negative || n < 0;
    fits = fits && !__builtin_mul_overflow(bytes, n, &bytes);
  }
  if (negative) [[unlikely]] {
    throw ShapeError(op, "sizes must not be negative; got " + to_string(sizes));
  }
  if (fits) return bytes;
  if (sizes.contains(0)) return 0;
  throw ShapeError(op, "the number of bytes must fit in 64 bits; got " + to_string(sizes) + " of " +
                           name_of(dtype));
}

// A tensor made on the host, moved where the options say; frees nothing, keeps no history.
Tensor place(const Tensor& host, Opts opts) {
  if (recording_somewhere()) [[unlikely]] recording::constant(host);
  Tensor out = cast_raw(host, opts.dtype);
  if (opts.device.kind != DeviceKind::cpu) {
    const Tensor dense = out;
    out = empty(host.sizes(), {.dtype = opts.dtype, .device = opts.device});
    if (!out.is_meta() && dense.numel()) {
      backend(opts.device.kind)
          .copy_from_host(opts.device.index, out.raw(), dense.raw(),
                          dense.numel() * size_of(opts.dtype));
    }
  }
  return opts.requires_grad ? out.set_requires_grad() : out;
}

template <class T>
bool holds(int64_t v) {
  return v >= int64_t(std::numeric_limits<T>::min()) && v <= int64_t(std::numeric_limits<T>::max());
}

// The whole number that stands for `value` in an integer type; raises ValueError if there is none.
int64_t whole_value(Scalar value, DType dtype) {
  const int64_t v = value.floating ? saturated_int(value.f) : value.i;
  bool fits = !value.floating || (value.f >= -0x1p63 && value.f < 0x1p63);
  if (dtype == DType::i32) fits = fits && holds<int32_t>(v);
  if (dtype == DType::u8) fits = fits && holds<uint8_t>(v);
  if (dtype == DType::i8) fits = fits && holds<int8_t>(v);
  if (!fits) {
    throw ValueError(
        "full", "the value must fit the type; got " +
                    (value.floating ? std::to_string(value.f) : std::to_string(value.i)) + " for " +
                    name_of(dtype));
  }
  return v;
}

// ceil((end - begin) / step), 0 when the walk leads away from end.
int64_t arange_length(Scalar begin, Scalar end, Scalar step) {
  constexpr int64_t kMost = int64_t(1) << 46;
  double n = std::ceil((end.f - begin.f) / step.f);
  if (!begin.floating && !end.floating && !step.floating && step.i != 0) {
    const __int128 span = __int128(end.i) - begin.i, s = step.i;
    const __int128 whole = s > 0 ? (span + s - 1) / s : (span + s + 1) / s;
    n = double(whole);
  }
  if (step.f == 0 || !(n < double(kMost))) {
    throw ValueError("arange",
                     "needs finite bounds, a step that is not 0 and fewer than 2^46 values; got " +
                         std::to_string(begin.f) + " … " + std::to_string(end.f) + " by " +
                         std::to_string(step.f));
  }
  return n > 0 ? int64_t(n) : 0;
}

}  // namespace

Tensor empty(const Shape& sizes, Opts opts) {
  Storage* storage = make_storage(opts.device, checked_bytes("empty", sizes, opts.dtype));
  Tensor t =
      Tensor::take(detail::new_impl(opts.dtype, opts.device, Layout::contiguous(sizes), storage));
  if (opts.requires_grad) t.set_requires_grad();
  return t;
}

Tensor full(const Shape& sizes, Scalar value, Opts opts) {
  const int64_t whole = is_integer(opts.dtype) ? whole_value(value, opts.dtype) : value.f != 0;
  Tensor t = empty(sizes, opts);
  if (t.is_meta() || t.numel() == 0) return t;
  PointwiseArgs a = pointwise_args(t, {});
  a.scalar[0] = value.f;
  a.integer[0] = whole;
  kernels::fill(t.device(), t.dtype(), a);
  return t;
}

Tensor zeros(const Shape& sizes, Opts opts) {
  if (recording_somewhere()) [[unlikely]] return full(sizes, 0, opts);  // a kernel is recorded
  Tensor t = empty(sizes, opts);
  if (t.device().kind != DeviceKind::cpu) return t.is_meta() ? t : full(sizes, 0, opts);
  if (t.numel()) std::memset(t.raw(), 0, size_t(t.numel() * size_of(opts.dtype)));
  return t;
}

Tensor ones(const Shape& sizes, Opts opts) { return full(sizes, 1, opts); }
Tensor empty_like(const Tensor& t) { return empty(t.sizes(), {t.dtype(), t.device()}); }
Tensor zeros_like(const Tensor& t) { return zeros(t.sizes(), {t.dtype(), t.device()}); }
Tensor ones_like(const Tensor& t) { return full(t.sizes(), 1, {t.dtype(), t.device()}); }
Tensor full_like(const Tensor& t, Scalar v) { return full(t.sizes(), v, {t.dtype(), t.device()}); }

Tensor tensor(std::span<const double> values, Opts opts) {
  Tensor host = empty({int64_t(values.size())}, {.dtype = DType::f64});
  std::copy(values.begin(), values.end(), host.data<double>());
  return place(host, opts);
}
Tensor tensor(std::initializer_list<double> values, Opts opts) {
  return tensor(std::span<const double>(values.begin(), values.size()), opts);
}
Tensor tensor(std::initializer_list<double> values, const Shape& sizes, Opts opts) {
  const int64_t bytes = checked_bytes("tensor", sizes, DType::f64);
  if (int64_t(values.size() * sizeof(double)) != bytes) {
    throw ShapeError("tensor", "needs one value for each element; got " +
                                   std::to_string(values.size()) + " for sizes " +
                                   to_string(sizes));
  }
  Tensor host = empty(sizes, {.dtype = DType::f64});
  std::copy(values.begin(), values.end(), host.data<double>());
  return place(host, opts);
}

Tensor index_tensor(std::span<const int64_t> values) {
  Tensor t = empty({int64_t(values.size())}, {.dtype = DType::i64});
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  if (recording_somewhere()) [[unlikely]] recording::constant(t);
  return t;
}

Tensor scalar_tensor(Scalar value, Opts opts) { return full({}, value, opts); }

Tensor arange(Scalar begin, Scalar end, Scalar step) {
  const bool whole = !begin.floating && !end.floating && !step.floating;
  return arange(begin, end, step, {.dtype = whole ? DType::i64 : DType::f32});
}
Tensor arange(Scalar begin, Scalar end, Scalar step, Opts opts) {
  const bool whole = !begin.floating && !end.floating && !step.floating;
  const int64_t n = arange_length(begin, end, step);
  Tensor t = empty({n}, {.dtype = whole ? DType::i64 : DType::f64});
  if (whole) {
    int64_t* v = t.data<int64_t>();
    uint64_t at = uint64_t(begin.i);  // every value fits, the step beyond the last one may not
    for (int64_t i = 0; i < n; ++i, at += uint64_t(step.i)) v[i] = int64_t(at);
  } else {
    double* v = t.data<double>();
    for (int64_t i = 0; i < n; ++i) v[i] = begin.f + double(i) * step.f;
  }
  return place(t, opts);
}

Tensor linspace(double begin, double end, int64_t n, Opts opts) {
  if (n < 0) throw ValueError("linspace", "needs n ≥ 0; got " + std::to_string(n));
  Tensor t = empty({n}, {.dtype = DType::f64});
  double* v = t.data<double>();
  for (int64_t i = 0; i < n; ++i) {
    const double w = n > 1 ? double(i) / double(n - 1) : 0;
    v[i] = w < 0.5 ? begin + (end - begin) * w : end - (end - begin) * (1 - w);
  }
  return place(t, opts);
}

Tensor eye(int64_t n, int64_t m, Opts opts) {
  Tensor t = zeros({n, m}, {.dtype = DType::f64});
  double* v = t.data<double>();
  for (int64_t i = 0; i < n && i < m; ++i) v[i * m + i] = 1;
  return place(t, opts);
}
Tensor eye(int64_t n, Opts opts) { return eye(n, n, opts); }

Tensor from_blob(void* data, const Shape& sizes, Opts opts) {
  const int64_t bytes = checked_bytes("from_blob", sizes, opts.dtype);
  const bool aligned = reinterpret_cast<uintptr_t>(data) % uintptr_t(size_of(opts.dtype)) == 0;
  if ((!data && bytes) || !aligned) {
    throw ValueError("from_blob",
                     std::string("needs a pointer aligned for ") + name_of(opts.dtype) + "; got " +
                         (data ? "a misaligned one" : "null") + " for " + to_string(sizes));
  }
  if (opts.device.kind == DeviceKind::meta) {
    throw DeviceError("from_blob", "meta tensors have sizes only, no values",
                      "use empty() on meta");
  }
  Storage* s = wrap_storage(opts.device, data, bytes);
  Tensor t = Tensor::take(detail::new_impl(opts.dtype, opts.device, Layout::contiguous(sizes), s));
  return opts.requires_grad ? t.set_requires_grad() : t;
}

}  // namespace cutaway
