#include <cutaway/core/tensor.h>

#include <new>

#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/element.h>
#include <cutaway/core/error.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/record/hook.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

void destroy_meta(AutogradMeta* meta) noexcept;  // autograd/meta.cpp

namespace {

// -1 when the number of elements is beyond 64 bits.
int64_t numel_if_it_fits(const Shape& sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) {
    if (__builtin_mul_overflow(n, size, &n)) [[unlikely]] return sizes.contains(0) ? 0 : -1;
  }
  return n;
}

[[noreturn, gnu::cold]] void throw_too_large(const Shape& sizes) {
  throw ShapeError("tensor", "the number of elements must fit in 64 bits; got " + to_string(sizes));
}

}  // namespace

namespace detail {

void destroy_impl(TensorImpl* impl) noexcept {
  if (impl->storage) impl->storage->drop();
  if (impl->meta) destroy_meta(impl->meta);
  impl->~TensorImpl();
  pool_free(impl, sizeof(TensorImpl));
}

TensorImpl* new_impl(DType dtype, Device device, const Layout& layout, Storage* taken) {
  const auto count = numel_if_it_fits(layout.sizes);
  void* block = nullptr;
  try {
    if (count < 0) throw_too_large(layout.sizes);
    block = pool_allocate(sizeof(TensorImpl));
  } catch (...) {
    if (taken) taken->drop();
    throw;
  }
  TensorImpl* impl = new (block) TensorImpl;
  impl->dtype = dtype;
  impl->device = device;
  impl->layout.sizes.assign(layout.sizes);
  impl->layout.strides.assign(layout.strides);
  impl->layout.offset = layout.offset;
  impl->numel = count;
  impl->storage = taken;
  return impl;
}

}  // namespace detail

Tensor host_copy(const char* op, const Tensor& t) {
  if (t.is_meta()) {
    throw DeviceError(op, "meta tensors have sizes only, no values; got " + to_string(t.sizes()));
  }
  if (recording_somewhere()) [[unlikely]] recording::refuse(op, "reads values on the host");
  Tensor dense = contiguous_raw(t);
  if (t.device().kind == DeviceKind::cpu) return dense;
  Tensor host = empty(t.sizes(), {.dtype = t.dtype()});
  backend(t.device().kind)
      .copy_to_host(t.device().index, host.raw(), dense.raw(), t.numel() * size_of(t.dtype()));
  return host;
}

namespace {

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
  throw ValueError("tensor", "an empty handle has no value",
                   "was it moved from, or never assigned?");
}

int64_t Tensor::size(int64_t dim) const {
  const int d = normalize_dim("size", dim, this->dim());
  return this->dim() == 0 ? 1 : sizes()[d];
}

void* Tensor::raw() const {
  const TensorImpl* i = checked();
  if (!i->storage || !i->storage->data) return nullptr;
  if (recording_somewhere()) [[unlikely]] detail::record_used(i->storage);
  return static_cast<char*>(i->storage->data) + i->layout.offset * size_of(i->dtype);
}

template <class T>
T* Tensor::data() const {
  constexpr DType want = dtype_of<T>();
  const bool byte_alias = want == DType::u8 && dtype() == DType::boolean;
  if (dtype() != want && !byte_alias) {
    throw DTypeError("data",
                     std::string("asked for elements of ") + name_of(want) + "; the tensor is " +
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
  const Tensor host = host_copy("item", *this);
  if constexpr (std::is_same_v<T, int64_t>) {
    return element_as_int(host.raw(), dtype(), 0);
  } else {
    return T(element_as_double(host.raw(), dtype(), 0));
  }
}
template double Tensor::item<double>() const;
template float Tensor::item<float>() const;
template int64_t Tensor::item<int64_t>() const;
template bool Tensor::item<bool>() const;

std::vector<double> Tensor::to_vector() const {
  const Tensor host = host_copy("to_vector", *this);
  const void* p = host.raw();
  std::vector<double> v(static_cast<size_t>(numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = element_as_double(p, dtype(), int64_t(i));
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

}  // namespace cutaway
