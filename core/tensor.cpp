#include <cutaway/core/tensor.h>

#include <cmath>
#include <cstring>
#include <new>

#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/pointwise.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/pointwise_args.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

void destroy_meta(AutogradMeta* meta) noexcept;  // autograd/meta.cpp

namespace detail {

void destroy_impl(TensorImpl* impl) noexcept {
  if (impl->storage) impl->storage->drop();
  if (impl->meta) destroy_meta(impl->meta);
  impl->~TensorImpl();
  pool_free(impl, sizeof(TensorImpl));
}

TensorImpl* new_impl(DType dtype, Device device, const Layout& layout, Storage* taken) {
  TensorImpl* impl = new (pool_allocate(sizeof(TensorImpl))) TensorImpl;
  impl->dtype = dtype;
  impl->device = device;
  impl->layout = layout;
  impl->numel = layout.sizes.numel();
  impl->storage = taken;
  return impl;
}

}  // namespace detail

namespace {

[[noreturn, gnu::cold]] void throw_bad_size(const Shape& sizes) {
  throw ShapeError("empty", "sizes must not be negative and their product must fit; got " + to_string(sizes));
}

int64_t checked_bytes(const Shape& sizes, DType dtype) {
  int64_t bytes = size_of(dtype);
  bool zero = false;
  for (int64_t n : sizes) {
    if (n < 0) throw_bad_size(sizes);
    zero = zero || n == 0;
  }
  if (zero) return 0;
  for (int64_t n : sizes) {
    if (__builtin_mul_overflow(bytes, n, &bytes)) throw_bad_size(sizes);
  }
  return bytes;
}

double load(const void* p, DType t, int64_t i) {
  switch (t) {
    case DType::f64: return static_cast<const double*>(p)[i];
    case DType::f32: return static_cast<const float*>(p)[i];
    case DType::bf16: return float(static_cast<const BFloat16*>(p)[i]);
    case DType::f16: return float(static_cast<const Float16*>(p)[i]);
    case DType::i64: return double(static_cast<const int64_t*>(p)[i]);
    case DType::i32: return static_cast<const int32_t*>(p)[i];
    case DType::u8: return static_cast<const uint8_t*>(p)[i];
    case DType::i8: return static_cast<const int8_t*>(p)[i];
    case DType::boolean: return static_cast<const uint8_t*>(p)[i] != 0;
  }
  return 0;
}

// Host copy of any tensor, row-major.
Tensor on_host(const Tensor& t) {
  if (t.is_meta()) {
    throw DeviceError("item", "meta tensors have sizes only, no values; got " + to_string(t.sizes()));
  }
  Tensor dense = contiguous_raw(t);
  if (t.device().kind == DeviceKind::cpu) return dense;
  Tensor host = empty(t.sizes(), {.dtype = t.dtype()});
  backend(t.device().kind)
      .copy_to_host(t.device().index, host.raw(), dense.raw(), t.numel() * size_of(t.dtype()));
  return host;
}

Tensor from_host(const Tensor& host, Opts opts) {
  if (opts.device.kind != DeviceKind::cpu && opts.device.kind != DeviceKind::meta) {
    Tensor out = empty(host.sizes(), {.dtype = host.dtype(), .device = opts.device});
    backend(opts.device.kind)
        .copy_from_host(opts.device.index, out.raw(), host.raw(), host.numel() * size_of(host.dtype()));
    return opts.requires_grad ? Tensor(out).set_requires_grad() : out;
  }
  return opts.requires_grad ? Tensor(host).set_requires_grad() : host;
}

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, BFloat16>) return DType::bf16;
  if constexpr (std::is_same_v<T, Float16>) return DType::f16;
  if constexpr (std::is_same_v<T, int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::u8;
  if constexpr (std::is_same_v<T, int8_t>) return DType::i8;
  return DType::boolean;
}

}  // namespace

void Tensor::throw_undefined() {
  throw ValueError("tensor", "an empty handle has no value", "was it moved from, or never assigned?");
}

int64_t Tensor::size(int64_t dim) const {
  const int d = normalize_dim("size", dim, this->dim());
  return this->dim() == 0 ? 1 : sizes()[d];
}

void* Tensor::raw() const {
  const TensorImpl* i = checked();
  if (!i->storage || !i->storage->data) return nullptr;
  return static_cast<char*>(i->storage->data) + i->layout.offset * size_of(i->dtype);
}

template <class T>
T* Tensor::data() const {
  constexpr DType want = dtype_of<T>();
  const bool byte_alias = want == DType::u8 && dtype() == DType::boolean;
  if (dtype() != want && !byte_alias) {
    throw DTypeError("data", std::string("asked for elements of ") + name_of(want) + "; the tensor is " +
                                 name_of(dtype()) + " " + cutaway::to_string(sizes()),
                     "convert with to(dtype)");
  }
  if (is_meta()) throw DeviceError("data", "meta tensors have sizes only, no values");
  return static_cast<T*>(raw());
}
template double* Tensor::data<double>() const;
template float* Tensor::data<float>() const;
template BFloat16* Tensor::data<BFloat16>() const;
template Float16* Tensor::data<Float16>() const;
template int64_t* Tensor::data<int64_t>() const;
template int32_t* Tensor::data<int32_t>() const;
template uint8_t* Tensor::data<uint8_t>() const;
template int8_t* Tensor::data<int8_t>() const;
template bool* Tensor::data<bool>() const;

template <class T>
T Tensor::item() const {
  if (numel() != 1) {
    throw ShapeError("item", "needs exactly one element; got " + cutaway::to_string(sizes()),
                     "select one, or use to_vector()");
  }
  const Tensor host = on_host(*this);
  if constexpr (std::is_same_v<T, int64_t>) {
    if (dtype() == DType::i64) return *host.data<int64_t>();
  }
  return T(load(host.raw(), dtype(), 0));
}
template double Tensor::item<double>() const;
template float Tensor::item<float>() const;
template int64_t Tensor::item<int64_t>() const;
template bool Tensor::item<bool>() const;

std::vector<double> Tensor::to_vector() const {
  const Tensor host = on_host(*this);
  std::vector<double> v(static_cast<size_t>(numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = load(host.raw(), dtype(), int64_t(i));
  return v;
}

Tensor make_view(const Tensor& base, const Layout& layout) {
  const TensorImpl* from = base.impl();
  if (from->storage) from->storage->retain();
  TensorImpl* impl = detail::new_impl(from->dtype, from->device, layout, from->storage);
  impl->contiguous = layout.is_contiguous();
  impl->is_view = true;
  return Tensor::take(impl);
}

Tensor empty(const Shape& sizes, Opts opts) {
  Storage* storage = make_storage(opts.device, checked_bytes(sizes, opts.dtype));
  Tensor t = Tensor::take(detail::new_impl(opts.dtype, opts.device, Layout::contiguous(sizes), storage));
  if (opts.requires_grad) t.set_requires_grad();
  return t;
}

Tensor full(const Shape& sizes, Scalar value, Opts opts) {
  Tensor t = empty(sizes, opts);
  if (t.is_meta() || t.numel() == 0) return t;
  PointwiseArgs a = pointwise_args(t, {});
  a.scalar[0] = value.f;
  a.integer[0] = value.floating ? int64_t(std::isfinite(value.f) ? value.f : 0) : value.i;
  kernels::fill(t.device(), t.dtype(), a);
  return t;
}

Tensor zeros(const Shape& sizes, Opts opts) {
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
  Tensor f64 = empty({int64_t(values.size())}, {.dtype = DType::f64});
  if (!values.empty()) std::memcpy(f64.raw(), values.data(), values.size_bytes());
  if (opts.device.kind == DeviceKind::meta) return empty(f64.sizes(), opts);
  return from_host(cast_raw(f64, opts.dtype), opts);
}
Tensor tensor(std::initializer_list<double> values, Opts opts) {
  return tensor(std::span<const double>(values.begin(), values.size()), opts);
}
Tensor tensor(std::initializer_list<double> values, const Shape& sizes, Opts opts) {
  if (int64_t(values.size()) != sizes.numel()) {
    throw ShapeError("tensor", "got " + std::to_string(values.size()) + " values for sizes " +
                                   cutaway::to_string(sizes));
  }
  Tensor flat = tensor(values, {.dtype = opts.dtype, .device = opts.device});
  Tensor t = make_view(flat, Layout::contiguous(sizes));
  return opts.requires_grad ? t.set_requires_grad() : t;
}

Tensor index_tensor(std::span<const int64_t> values) {
  Tensor t = empty({int64_t(values.size())}, {.dtype = DType::i64});
  if (!values.empty()) std::memcpy(t.raw(), values.data(), values.size_bytes());
  return t;
}

Tensor scalar_tensor(Scalar value, Opts opts) { return full({}, value, opts); }

Tensor arange(Scalar begin, Scalar end, Scalar step, Opts opts) {
  if (step.f == 0 || !std::isfinite((end.f - begin.f) / step.f)) {
    throw ValueError("arange", "needs finite bounds and a step that is not 0");
  }
  const bool whole = !begin.floating && !end.floating && !step.floating;
  int64_t n = int64_t(std::ceil((end.f - begin.f) / step.f));
  if (whole) n = step.i > 0 ? (end.i - begin.i + step.i - 1) / step.i : (begin.i - end.i - step.i - 1) / -step.i;
  if (n < 0) n = 0;
  Tensor t = empty({n}, {.dtype = whole ? DType::i64 : DType::f64});
  for (int64_t i = 0; i < n; ++i) {
    if (whole) {
      t.data<int64_t>()[i] = begin.i + i * step.i;
    } else {
      t.data<double>()[i] = begin.f + double(i) * step.f;
    }
  }
  return from_host(cast_raw(t, opts.dtype), opts);
}

Tensor linspace(double begin, double end, int64_t n, Opts opts) {
  if (n < 0) throw ValueError("linspace", "needs n ≥ 0; got " + std::to_string(n));
  Tensor t = empty({n}, {.dtype = DType::f64});
  for (int64_t i = 0; i < n; ++i) {
    const double w = n > 1 ? double(i) / double(n - 1) : 0;
    t.data<double>()[i] = w < 0.5 ? begin + (end - begin) * w : end - (end - begin) * (1 - w);
  }
  return from_host(cast_raw(t, opts.dtype), opts);
}

Tensor eye(int64_t n, int64_t m, Opts opts) {
  Tensor t = zeros({n, m}, {.dtype = DType::f64});
  for (int64_t i = 0; i < n && i < m; ++i) t.data<double>()[i * m + i] = 1;
  return from_host(cast_raw(t, opts.dtype), opts);
}
Tensor eye(int64_t n, Opts opts) { return eye(n, n, opts); }

Tensor from_blob(void* data, const Shape& sizes, Opts opts) {
  const int64_t bytes = checked_bytes(sizes, opts.dtype);
  static char tag;
  Storage* s = wrap_storage(opts.device, data, bytes, &tag, [](Storage* gone) noexcept {
    gone->~Storage();
    pool_free(gone, sizeof(Storage));
  });
  Tensor t = Tensor::take(detail::new_impl(opts.dtype, opts.device, Layout::contiguous(sizes), s));
  return opts.requires_grad ? t.set_requires_grad() : t;
}

}  // namespace cutaway
