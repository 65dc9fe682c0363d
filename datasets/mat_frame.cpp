#include <cutaway/datasets/mat_frame.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include <cutaway/core/error.h>

namespace cutaway::data {

void refuse_mat(const std::string& name, const std::string& rule) {
  throw IoError("matlab", name + ": " + rule);
}

namespace {

using Bytes = std::span<const uint8_t>;

uint32_t number_at(Bytes b, size_t at, bool swapped) {
  uint32_t v = 0;
  std::memcpy(&v, b.data() + at, 4);
  return swapped ? __builtin_bswap32(v) : v;
}

// A part of a variable of version 5; small ones have their data in the tag.
struct Element {
  uint32_t kind = 0;
  Bytes data;
};
// Takes the first element off; false when there is no whole one.
bool take(Bytes& b, bool swapped, Element& out) {
  if (b.size() < 8) return false;
  const uint32_t first = number_at(b, 0, swapped);
  const bool small = first >> 16 != 0;
  const size_t length = small ? first >> 16 : number_at(b, 4, swapped);
  const size_t begin = small ? 4 : 8;
  if (length > b.size() - begin || (small && length > 4)) return false;
  out = {first & (small ? 0xFFFFu : ~0u), b.subspan(begin, length)};
  b = b.subspan(small ? 8 : std::min(b.size(), begin + (length + 7) / 8 * 8));
  return true;
}

// The data of an array of numbers must be as long as its sizes say; libmatio would leave the rest
// to chance. What is odd otherwise, it refuses itself.
void check_array(const std::string& name, Bytes b, int64_t variable, bool swapped) {
  constexpr int64_t kWidths[] = {0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8};
  Element flags, sizes, title, data;
  if (!take(b, swapped, flags) || !take(b, swapped, sizes) || !take(b, swapped, title)) return;
  const uint32_t kind = flags.data.size() < 4 ? 0 : number_at(flags.data, 0, swapped) & 0xFF;
  if (kind < 6 || kind > 15 || !take(b, swapped, data)) return;
  int64_t count = 1;
  bool overflow = false;
  for (size_t at = 0; at + 4 <= sizes.data.size(); at += 4) {
    const auto size = int32_t(number_at(sizes.data, at, swapped));
    overflow = __builtin_mul_overflow(count, int64_t(size), &count) || overflow || size < 0;
  }
  const int64_t width = data.kind < std::size(kWidths) ? kWidths[data.kind] : 0;
  if (overflow || width == 0 || count > INT64_MAX / 8 ||
      int64_t(data.data.size()) != count * width) {
    refuse_mat(name, fmt::format("is damaged: variable {} has {} bytes of data for its sizes",
                                 variable, data.data.size()));
  }
}

// The variables of a file of version 5: libmatio takes one that is cut off for the end of the file.
int64_t count_variables_5(const std::string& name, Bytes b) {
  const bool swapped = b[126] == 'M';  // "MI": written on a big-endian machine
  int64_t count = 0;
  for (size_t at = 128; at < b.size(); ++count) {
    const bool whole = b.size() - at >= 8;
    const uint32_t type = whole ? number_at(b, at, swapped) : 0;
    const size_t length = whole ? number_at(b, at + 4, swapped) : 0;
    if (!whole || length > b.size() - at - 8) {
      refuse_mat(name, fmt::format("is cut off in variable {} at byte {}", count + 1, at));
    }
    if (type != 14 && type != 15) {  // an array, plain or packed
      refuse_mat(
          name, fmt::format("variable {} at byte {} has the unknown type {}", count + 1, at, type));
    }
    if (type == 14) check_array(name, b.subspan(at + 8, length), count + 1, swapped);
    at += 8 + length;
  }
  return count;
}

// The same of version 4: type, rows, columns, whether complex, length of the name.
int64_t count_variables_4(const std::string& name, Bytes b) {
  constexpr int64_t kWidths[] = {8, 4, 4, 2, 2, 1};
  int64_t count = 0;
  for (size_t at = 0; at < b.size(); ++count) {
    if (b.size() - at < 20) refuse_mat(name, fmt::format("is cut off in variable {}", count + 1));
    const bool swapped = number_at(b, at, false) > 4052;
    const uint32_t type = number_at(b, at, swapped);
    const int64_t rows = number_at(b, at + 4, swapped), cols = number_at(b, at + 8, swapped);
    const uint32_t parts = number_at(b, at + 12, swapped), letters = number_at(b, at + 16, swapped);
    if (type > 4052 || type / 10 % 10 > 5 || parts > 1 || letters < 1 || letters > 4096) {
      refuse_mat(name, fmt::format("is no MATLAB file: variable {} at byte {} has no sound header",
                                   count + 1, at));
    }
    int64_t bytes = 0;
    if (__builtin_mul_overflow(rows, cols, &bytes) ||
        __builtin_mul_overflow(bytes, kWidths[type / 10 % 10] * (1 + parts), &bytes) ||
        bytes > int64_t(b.size() - at) - 20 - int64_t(letters)) {
      refuse_mat(name, fmt::format("is cut off in variable {} at byte {}", count + 1, at));
    }
    at += 20 + letters + size_t(bytes);
  }
  return count;
}

}  // namespace

int64_t count_mat_variables(const std::string& name, Bytes b) {
  constexpr uint8_t kHdf5[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1A, '\n'};
  if (b.size() >= 128 &&
      (std::memcmp(&b[126], "IM", 2) == 0 || std::memcmp(&b[126], "MI", 2) == 0)) {
    const bool swapped = b[126] == 'M';
    const int version = b[swapped ? 124 : 125];
    if (version == 1) return count_variables_5(name, b);
    if (version == 2) {
      if (b.size() < 520 || std::memcmp(&b[512], kHdf5, sizeof kHdf5) != 0) {
        refuse_mat(name, "is of version 7.3, but holds no HDF5");
      }
      return -1;
    }
    refuse_mat(name, fmt::format("is of version {}.{}", version, b[swapped ? 125 : 124]));
  }
  if (b.size() < 20) refuse_mat(name, fmt::format("is no MATLAB file: {} bytes", b.size()));
  return count_variables_4(name, b);
}

}  // namespace cutaway::data
