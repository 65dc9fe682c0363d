#include <algorithm>
#include <cstdint>

#include <cutaway/core/cpu/reduce_loop.h>
#include <cutaway/core/kernels/sort.h>

// Elements become unsigned keys of the same order, with NaN as the largest one, so that one radix
// sort serves all types and no comparison ever meets a NaN.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

[[gnu::always_inline]] inline uint32_t key_of(float x) {
  if (x != x) return UINT32_MAX;
  const uint32_t bits = x == 0 ? 0 : math::detail::bits(x);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
[[gnu::always_inline]] inline uint64_t key_of(double x) {
  if (x != x) return UINT64_MAX;
  const uint64_t bits = x == 0 ? 0 : math::detail::bits(x);
  return bits >> 63 ? ~bits : bits | 0x8000000000000000u;
}
[[gnu::always_inline]] inline uint32_t key_of(BFloat16 x) { return key_of(float(x)); }
[[gnu::always_inline]] inline uint32_t key_of(Float16 x) { return key_of(float(x)); }
[[gnu::always_inline]] inline uint64_t key_of(int64_t x) {
  return uint64_t(x) ^ 0x8000000000000000u;
}
[[gnu::always_inline]] inline uint32_t key_of(int32_t x) { return uint32_t(x) ^ 0x80000000u; }
[[gnu::always_inline]] inline uint32_t key_of(int8_t x) { return key_of(int32_t(x)); }
[[gnu::always_inline]] inline uint32_t key_of(uint8_t x) { return x; }

template <class T>
using KeyOf = decltype(key_of(T()));

template <class K>
struct Entry {
  K key;
  uint32_t at;
  friend bool operator<(Entry a, Entry b) { return a.key != b.key ? a.key < b.key : a.at < b.at; }
};

constexpr int kDigitBits = 11;
constexpr int64_t kDigits = 1 << kDigitBits;
constexpr int64_t kRadixFrom = 512;  // shorter lines are sorted by comparisons

// Least significant digit first; digits that are the same everywhere are skipped. The result is in
// the returned one of the two buffers.
template <class K>
Entry<K>* radix_sort(Entry<K>* from, Entry<K>* to, int64_t n) {
  constexpr int kPasses = (int(sizeof(K)) * 8 + kDigitBits - 1) / kDigitBits;
  Scratch<uint32_t> counts(kPasses * kDigits);
  for (int64_t i = 0; i < kPasses * kDigits; ++i) counts[i] = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int p = 0; p < kPasses; ++p) {
      ++counts[p * kDigits + int64_t(from[i].key >> (p * kDigitBits) & (kDigits - 1))];
    }
  }
  for (int p = 0; p < kPasses; ++p) {
    uint32_t* count = counts.get() + p * kDigits;
    const auto digit = [p](const Entry<K>& e) {
      return int64_t(e.key >> (p * kDigitBits) & (kDigits - 1));
    };
    if (int64_t(count[digit(from[0])]) == n) continue;
    uint32_t begin = 0;
    for (int64_t d = 0; d < kDigits; ++d) {
      const uint32_t here = count[d];
      count[d] = begin;
      begin += here;
    }
    for (int64_t i = 0; i < n; ++i) to[count[digit(from[i])]++] = from[i];
    Entry<K>* const swap = from;
    from = to;
    to = swap;
  }
  return from;
}

// The first k entries in order.
template <class K>
Entry<K>* order_line(Entry<K>* line, Entry<K>* spare, int64_t n, int64_t k) {
  if (k < n && k <= n / 16) {
    std::partial_sort(line, line + k, line + n);
    return line;
  }
  if (n >= kRadixFrom) return radix_sort(line, spare, n);
  std::sort(line, line + n);
  return line;
}

// One task sorts a block of lines.
template <class T>
void sort(const SortArgs& a) {
  using K = KeyOf<T>;
  const auto* in = static_cast<const T*>(a.in);
  auto* values = static_cast<T*>(a.values);
  const int64_t work = std::max<int64_t>(1, a.n * 16);
  parallel_for(a.outer * a.inner, std::max<int64_t>(1, kGrain / work),
               [&](int64_t from, int64_t to) {
                 Scratch<Entry<K>> buffer(2 * a.n);
                 for (int64_t line = from; line < to; ++line) {
                   const int64_t o = line / a.inner, i = line % a.inner;
                   const T* x = in + o * a.n * a.inner + i;
                   for (int64_t j = 0; j < a.n; ++j) {
                     const K key = key_of(x[j * a.inner]);
                     buffer[j] = {a.descending ? K(~key) : key, uint32_t(j)};
                   }
                   const Entry<K>* sorted = order_line(buffer.get(), buffer.get() + a.n, a.n, a.k);
                   const int64_t out = o * a.k * a.inner + i;
                   for (int64_t j = 0; j < a.k; ++j) {
                     if (values) values[out + j * a.inner] = x[int64_t(sorted[j].at) * a.inner];
                     if (a.indices) a.indices[out + j * a.inner] = sorted[j].at;
                   }
                 }
               });
}

template <class T>
void unique(const UniqueArgs& a) {
  const auto* sorted = static_cast<const T*>(a.sorted);
  auto* values = static_cast<T*>(a.values);
  int64_t g = -1;
  for (int64_t i = 0; i < a.n; ++i) {
    if (i == 0 || compute(sorted[i]) != compute(sorted[i - 1])) {
      values[++g] = sorted[i];
      a.counts[g] = 0;
    }
    ++a.counts[g];
    a.inverse[a.order[i]] = g;
  }
  *a.groups = g + 1;
}

template <class T>
void search_sorted(const SearchArgs& a) {
  const auto* sorted = static_cast<const T*>(a.sorted);
  const auto* values = static_cast<const T*>(a.values);
  parallel_for(a.rows * a.m, kGrain / 32, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const T* row = sorted + (a.shared ? 0 : i / a.m * a.n);
      const auto key = key_of(values[i]);
      int64_t low = 0, high = a.n;
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const auto here = key_of(row[middle]);
        if (here < key || (a.right && here == key)) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      a.out[i] = low;
    }
  });
}

template <class T>
void set_all(DType t) {
  kernels::sort.set(DeviceKind::cpu, t, sort<T>);
  kernels::unique.set(DeviceKind::cpu, t, unique<T>);
  kernels::search_sorted.set(DeviceKind::cpu, t, search_sorted<T>);
}

}  // namespace

void register_sort_kernels() {
  set_all<double>(DType::f64);
  set_all<float>(DType::f32);
  set_all<BFloat16>(DType::bf16);
  set_all<Float16>(DType::f16);
  set_all<int64_t>(DType::i64);
  set_all<int32_t>(DType::i32);
  set_all<uint8_t>(DType::u8);
  set_all<int8_t>(DType::i8);
  set_all<uint8_t>(DType::boolean);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
