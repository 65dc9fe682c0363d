#pragma once
#include <concepts>
#include <cstdint>
#include <source_location>
#include <type_traits>

#include <cutaway/cuda/emu/shadow.h>

// Pointers of emulated kernels: they know their buffer, and every access is checked and counted.
namespace cutaway::cuda::emu {

enum class Space : uint8_t { global, shared };

// A buffer of the device, or an array shared by a block.
struct Region {
  char* begin = nullptr;
  int64_t bytes = 0;
  Space space = Space::global;
  Shadow* shadow = nullptr;
};

namespace detail {
extern thread_local bool watch;  // accesses go through watched_access()
// Raises the fault that fits: beyond the region, or misaligned.
[[noreturn]] void bad_access(const Region* region, const void* address, int bytes, AccessKind kind,
                             const std::source_location& at);
void watched_access(const Region* region, const void* address, int bytes, AccessKind kind,
                    const std::source_location& at);
}  // namespace detail

// Called before every access of `bytes` (a power of two) bytes.
inline void touch(const Region* region, const void* address, int bytes, AccessKind kind,
                  const std::source_location& at) {
  const auto offset =
      reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(region->begin);
  const auto room = static_cast<uint64_t>(region->bytes);
  if (offset >= room || room - offset < static_cast<uint64_t>(bytes) ||
      (reinterpret_cast<uintptr_t>(address) & static_cast<uintptr_t>(bytes - 1)) != 0) [[unlikely]]
    detail::bad_access(region, address, bytes, kind, at);
  if (detail::watch) detail::watched_access(region, address, bytes, kind, at);
}

// An index with the line of the kernel that wrote it.
struct Index {
  int64_t value;
  std::source_location at;
  template <std::integral I>
  Index(I i, std::source_location where = std::source_location::current())
      : value(static_cast<int64_t>(i)), at(where) {}
};

// An element: reading and writing it are accesses.
template <class T>
class Ref {
 public:
  using Value = std::remove_const_t<T>;

  Ref(T* address, const Region* region, const std::source_location& at)
      : address_(address), region_(region), at_(at) {}

  Value get() const {
    touch(region_, address_, sizeof(T), AccessKind::read, at_);
    return *address_;
  }
  void set(const Value& v) const {
    touch(region_, address_, sizeof(T), AccessKind::write, at_);
    *address_ = v;
  }
  operator Value() const { return get(); }
  template <class U>
  requires(!std::same_as<U, Value> && std::constructible_from<U, Value>) explicit operator U()
      const {
    return static_cast<U>(get());
  }
  const Ref& operator=(const Value& v) const {
    set(v);
    return *this;
  }
  const Ref& operator=(const Ref& other) const {
    set(other.get());
    return *this;
  }
  Ref(const Ref&) = default;
  const Ref& operator+=(const Value& v) const { return *this = static_cast<Value>(get() + v); }
  const Ref& operator-=(const Value& v) const { return *this = static_cast<Value>(get() - v); }
  const Ref& operator*=(const Value& v) const { return *this = static_cast<Value>(get() * v); }

 private:
  T* address_;
  const Region* region_;
  std::source_location at_;
};

inline constexpr Region kNowhere{};

template <class T>
class Pointer {
 public:
  Pointer() = default;
  Pointer(T* address, const Region* region) : address_(address), region_(region) {}
  // To const.
  template <class U>
  requires(std::same_as<const U, T> && !std::same_as<U, T>) Pointer(const Pointer<U>& p)
      : address_(p.raw()), region_(p.region()) {}

  Ref<T> operator[](Index i) const { return Ref<T>(address_ + i.value, region_, i.at); }
  explicit operator bool() const { return address_ != nullptr; }
  Pointer operator+(int64_t n) const { return Pointer(address_ + n, region_); }
  Pointer& operator+=(int64_t n) {
    address_ += n;
    return *this;
  }
  T* raw() const { return address_; }
  const Region* region() const { return region_; }

 private:
  T* address_ = nullptr;
  const Region* region_ = &kNowhere;
};

}  // namespace cutaway::cuda::emu
