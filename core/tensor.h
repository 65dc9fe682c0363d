#pragma once
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include <cutaway/core/device.h>
#include <cutaway/core/dtype.h>
#include <cutaway/core/layout.h>
#include <cutaway/core/storage.h>

namespace cutaway {

struct AutogradMeta;  // autograd/meta.h
class Tensor;
using Tensors = std::vector<Tensor>;

// What a tensor handle points to: type, place, layout, storage and, if any, gradient record.
struct TensorImpl {
  std::atomic<uint32_t> refs{1};
  DType dtype = DType::f32;
  Device device;
  bool is_view = false;
  bool viewed = false;     // a recorded view of it was made (see tensor_inplace.cpp)
  bool contiguous = true;  // row-major without gaps
  int64_t numel = 0;
  Layout layout;
  Storage* storage = nullptr;
  AutogradMeta* meta = nullptr;
};

namespace detail {
void destroy_impl(TensorImpl* impl) noexcept;
TensorImpl* new_impl(DType dtype, Device device, const Layout& layout, Storage* taken);
}  // namespace detail

// A number given where a tensor could stand. It keeps its category (bool, integer, float) and never
// widens the tensor's type within its category.
struct Scalar {
  double f = 0;
  int64_t i = 0;
  bool floating = false;
  Scalar(double v) : f(v), floating(true) {}
  Scalar(float v) : Scalar(double(v)) {}
  Scalar(int v) : f(v), i(v) {}
  Scalar(long v) : f(double(v)), i(v) {}
  Scalar(long long v) : f(double(v)), i(v) {}
};

// Options of factory functions.
struct Opts {
  DType dtype = DType::f32;
  Device device = {};
  bool requires_grad = false;
};

// An n-dimensional array. A handle: copies share values and gradient; clone() copies them.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& o) : impl_(o.impl_) {
    if (impl_) impl_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  Tensor(Tensor&& o) noexcept : impl_(o.impl_) { o.impl_ = nullptr; }
  Tensor& operator=(const Tensor& o) {
    Tensor copy(o);
    std::swap(impl_, copy.impl_);
    return *this;
  }
  Tensor& operator=(Tensor&& o) noexcept {
    std::swap(impl_, o.impl_);
    return *this;
  }
  ~Tensor() {
    if (impl_ && (impl_->refs.load(std::memory_order_acquire) == 1 ||
                  impl_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)) {
      detail::destroy_impl(impl_);
    }
  }
  // Takes over one reference to `impl`.
  static Tensor take(TensorImpl* impl) {
    Tensor t;
    t.impl_ = impl;
    return t;
  }

  bool defined() const { return impl_ != nullptr; }
  explicit operator bool() const = delete;
  TensorImpl* impl() const { return impl_; }
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }

  // ---- shape and type
  const Shape& sizes() const { return checked()->layout.sizes; }
  const Shape& strides() const { return checked()->layout.strides; }
  const Layout& layout() const { return checked()->layout; }
  int64_t size(int64_t dim) const;  // negative counts from the end
  int dim() const { return sizes().rank(); }
  int64_t numel() const { return checked()->numel; }
  DType dtype() const { return checked()->dtype; }
  Device device() const { return checked()->device; }
  bool is_contiguous() const { return checked()->contiguous; }
  bool is_floating() const { return cutaway::is_floating(dtype()); }
  bool is_meta() const { return device().kind == DeviceKind::meta; }
  Storage* storage() const { return checked()->storage; }

  // ---- values
  // Pointer to the first element; T must match dtype (raises DTypeError), only that bool may be
  // read as uint8_t too. Host memory only on cpu.
  template <class T>
  T* data() const;
  void* raw() const;  // untyped, offset applied
  // The value of a one-element tensor, converted to T (double, float, int64_t, bool). Raises
  // ShapeError for any other number of elements, DeviceError on meta.
  template <class T = double>
  T item() const;
  // All elements in row-major order, converted to double.
  std::vector<double> to_vector() const;
  // Nested lists and "sizes type device"; above 1000 elements the middle of long dimensions is left
  // out.
  std::string to_string() const;

  // ---- gradient
  bool requires_grad() const;
  Tensor& set_requires_grad(bool on = true);
  bool is_leaf() const;
  Tensor grad() const;  // undefined when there is none
  void set_grad(const Tensor& grad);
  void zero_grad();     // forgets the gradient
  void retain_grad();
  void backward() const;                        // for one-element results
  void backward(const Tensor& upstream) const;  // upstream has the shape of this tensor
  Tensor detach() const;  // shares values, has no history

  // ---- copies
  Tensor clone(std::source_location at = std::source_location::current()) const;
  Tensor contiguous(std::source_location at = std::source_location::current()) const;
  Tensor to(DType dtype, std::source_location at = std::source_location::current()) const;
  Tensor to(Device device, std::source_location at = std::source_location::current()) const;
  // Replaces values, layout and type in place, for all handles: used by Module::to and loaders.
  void set_data(const Tensor& value);

  // ---- in place (no history is kept: needs no-grad mode for tensors that require grad)
  Tensor& fill_(Scalar value);
  Tensor& zero_() { return fill_(0); }
  Tensor& copy_(const Tensor& from);  // broadcasts, converts
  Tensor& add_(const Tensor& other, double alpha = 1);
  Tensor& add_(Scalar value);
  Tensor& sub_(const Tensor& other, double alpha = 1) { return add_(other, -alpha); }
  Tensor& mul_(const Tensor& other);
  Tensor& mul_(Scalar value);
  Tensor& div_(const Tensor& other);

  // ---- shape (functions of the same names exist in autograd/ops/shape.h)
  using At = std::source_location;
  Tensor reshape(const Shape& sizes, At at = At::current()) const;
  Tensor view(const Shape& sizes, At at = At::current()) const;
  Tensor flatten(int64_t from = 0, int64_t to = -1, At at = At::current()) const;
  Tensor permute(const Shape& dims, At at = At::current()) const;
  Tensor transpose(int64_t a, int64_t b, At at = At::current()) const;
  Tensor t(At at = At::current()) const;  // 2-d transpose
  Tensor squeeze(At at = At::current()) const;
  Tensor squeeze(int64_t dim, At at = At::current()) const;
  Tensor unsqueeze(int64_t dim, At at = At::current()) const;
  Tensor expand(const Shape& sizes, At at = At::current()) const;
  Tensor select(int64_t dim, int64_t index, At at = At::current()) const;
  // Elements [begin, end) of dimension `dim` in steps; bounds are clamped as in Python.
  Tensor slice(int64_t dim, int64_t begin, int64_t end, int64_t step = 1,
               At at = At::current()) const;
  Tensor operator[](int64_t index) const { return select(0, index); }
  // ---- reductions
  Tensor sum(At at = At::current()) const;
  Tensor mean(At at = At::current()) const;

 private:
  TensorImpl* checked() const {
    if (!impl_) [[unlikely]] throw_undefined();
    return impl_;
  }
  [[noreturn]] static void throw_undefined();

  TensorImpl* impl_ = nullptr;
};
static_assert(sizeof(Tensor) == 8);

// How ops take a tensor: by reference, with the place of the call for error messages, and whether
// the operand was a temporary whose buffer may be reused.
class TensorArg {
 public:
  TensorArg(const Tensor& t, std::source_location at = std::source_location::current())
      : bits_(reinterpret_cast<uintptr_t>(&t)), site(at) {}
  TensorArg(Tensor&& t, std::source_location at = std::source_location::current())
      : bits_(reinterpret_cast<uintptr_t>(&t) | 1), site(at) {}
  const Tensor& operator*() const {
    return *reinterpret_cast<const Tensor*>(bits_ & ~uintptr_t(1));
  }
  const Tensor* operator->() const { return &**this; }
  bool temporary() const { return bits_ & 1; }

 private:
  uintptr_t bits_;

 public:
  std::source_location site;
};

// ---- factories (no history). They raise ShapeError for negative sizes, MemoryError when there is
// no room, ValueError for a value that the integer type can't hold.
Tensor empty(const Shape& sizes, Opts opts = {});
Tensor zeros(const Shape& sizes, Opts opts = {});
Tensor ones(const Shape& sizes, Opts opts = {});
Tensor full(const Shape& sizes, Scalar value, Opts opts = {});
Tensor empty_like(const Tensor& t);
Tensor zeros_like(const Tensor& t);
Tensor ones_like(const Tensor& t);
Tensor full_like(const Tensor& t, Scalar value);
// 1-d tensors from a list; nested lists by reshape().
Tensor tensor(std::span<const double> values, Opts opts = {});
Tensor tensor(std::initializer_list<double> values, Opts opts = {});
Tensor tensor(std::initializer_list<double> values, const Shape& sizes, Opts opts = {});
// int64 [n].
Tensor index_tensor(std::span<const int64_t> values);
Tensor scalar_tensor(Scalar value, Opts opts = {});  // 0-d
// begin, begin+step, … below end; [ceil((end-begin)/step)]. i64 for whole numbers, else f32. Raises
// ValueError for a step of 0 and for bounds that are not finite.
Tensor arange(Scalar begin, Scalar end, Scalar step = 1);
Tensor arange(Scalar begin, Scalar end, Scalar step, Opts opts);
Tensor linspace(double begin, double end, int64_t n, Opts opts = {});
Tensor eye(int64_t n, Opts opts = {});
Tensor eye(int64_t n, int64_t m, Opts opts = {});
// Wraps host memory of the caller, who keeps it alive; row-major. Raises ValueError for a null or
// misaligned pointer.
Tensor from_blob(void* data, const Shape& sizes, Opts opts = {});

// ---- raw copies used below autograd: no history, no shape rule beyond equal element counts
// Copies and converts src into dst element by element (equal sizes, any strides, same device).
void copy_elements(const Tensor& dst, const Tensor& src);
// A new view on the storage of `base`, without history.
Tensor make_view(const Tensor& base, const Layout& layout);

}  // namespace cutaway
