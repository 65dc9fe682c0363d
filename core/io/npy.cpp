#include <cutaway/core/io/npy.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <string_view>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway::io {
namespace {

[[noreturn]] void fail(const std::string& file, const std::string& rule) {
  throw IoError("npy", file + ": " + rule);
}

// The header is a Python dict literal with three known keys; this reads exactly that, in any order.
class Header {
 public:
  Header(const std::string& file, std::string text) : file_(file), text_(std::move(text)) {
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        descr = quoted();
      } else if (key == "fortran_order") {
        fortran = boolean();
      } else if (key == "shape") {
        shape();
      } else {
        fail(file_, "unknown header key \"" + key + "\"");
      }
      seen_ += key + ";";
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    for (const char* key : {"descr;", "fortran_order;", "shape;"}) {
      const size_t at = seen_.find(key);
      if (at == std::string::npos) fail(file_, std::string("the header lacks ") + key);
      if (seen_.find(key, at + 1) != std::string::npos)
        fail(file_, std::string("the header repeats ") + key);
    }
    blanks();
    if (at_ != text_.size()) fail(file_, fmt::format("header: text after it, at byte {}", at_));
  }
  std::string descr;
  bool fortran = false;
  Shape sizes;

 private:
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
  }
  bool accept(char c) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(file_, fmt::format("header: need '{}' at byte {}", c, at_));
  }
  std::string quoted() {
    blanks();
    const char q = at_ < text_.size() ? text_[at_] : ' ';
    if (q != '\'' && q != '"')
      fail(file_,
           fmt::format("header: need a string at byte {} (structured types are not supported)",
                       at_));
    const size_t end = text_.find(q, at_ + 1);
    if (end == std::string::npos) fail(file_, "header: a string does not end");
    std::string s = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return s;
  }
  bool boolean() {
    blanks();
    for (const auto& [word, value] : {std::pair{"True", true}, {"False", false}}) {
      if (text_.compare(at_, std::strlen(word), word) == 0) {
        at_ += std::strlen(word);
        return value;
      }
    }
    fail(file_, "header: fortran_order must be True or False");
  }
  void shape() {
    expect('(');
    while (!accept(')')) {
      blanks();
      int64_t n = 0;
      const size_t first = at_;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        if (__builtin_mul_overflow(n, int64_t(10), &n) ||
            __builtin_add_overflow(n, text_[at_] - '0', &n)) {
          fail(file_, "header: a size is too large");
        }
      }
      if (at_ == first) fail(file_, fmt::format("header: need a size at byte {}", at_));
      if (sizes.rank() == kMaxRank) fail(file_, "more than 8 dimensions");
      sizes.push_back(n);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }

  const std::string& file_;
  std::string text_, seen_;
  size_t at_ = 0;
};

struct Type {
  DType dtype;
  int width;       // bytes on disk
  char widen = 0;  // 's' or 'u' with another width on disk than in memory
};

Type type_of(const std::string& file, const std::string& descr) {
  const std::string code = descr.size() > 1 ? descr.substr(1) : "";
  static const std::pair<const char*, Type> known[] = {
      {"f8", {DType::f64, 8}},      {"f4", {DType::f32, 4}},     {"f2", {DType::f16, 2}},
      {"i8", {DType::i64, 8}},      {"i4", {DType::i32, 4}},     {"i1", {DType::i8, 1}},
      {"u1", {DType::u8, 1}},       {"b1", {DType::boolean, 1}}, {"i2", {DType::i32, 2, 's'}},
      {"u2", {DType::i32, 2, 'u'}}, {"u4", {DType::i64, 4, 'u'}}};
  for (const auto& [name, type] : known) {
    if (code == name && std::string_view("<>=|").find(descr[0]) != std::string_view::npos)
      return type;
  }
  fail(file, "unsupported type '" + descr + "'; need f8 f4 f2 i8 i4 i2 i1 u1 u2 u4 b1");
}

void swap_bytes(uint8_t* p, int64_t n, int width) {
  for (int64_t i = 0; i < n; ++i) std::reverse(p + i * width, p + (i + 1) * width);
}

void widen(const uint8_t* from, Tensor& to, const Type& type) {
  for (int64_t i = 0; i < to.numel(); ++i) {
    if (type.width == 2) {
      uint16_t v;
      std::memcpy(&v, from + i * 2, 2);
      to.data<int32_t>()[i] = type.widen == 's' ? int32_t(int16_t(v)) : int32_t(v);
    } else {
      uint32_t v;
      std::memcpy(&v, from + i * 4, 4);
      to.data<int64_t>()[i] = v;
    }
  }
}

// Fortran order: the dimensions lie in memory in reverse order.
Tensor as_c_order(const Tensor& t, const Shape& sizes) {
  Shape reversed, order;
  for (int i = sizes.rank() - 1; i >= 0; --i) {
    reversed.push_back(sizes[i]);
    order.push_back(i);
  }
  return contiguous_raw(make_view(t, Layout::contiguous(reversed).permute(order)));
}

}  // namespace

Tensor parse_npy(const std::string& name, const uint8_t* data, int64_t bytes) {
  if (bytes < 10 || std::memcmp(data, "\x93NUMPY", 6) != 0)
    fail(name, "does not begin like a .npy file");
  const int version = data[6];
  if (version < 1 || version > 3)
    fail(name, fmt::format("version {} is unknown; need 1, 2 or 3", version));
  int64_t length = data[8] | data[9] << 8, at = 10;
  if (version >= 2) {
    if (bytes < 12) fail(name, "is cut off in the header");
    length |= int64_t(data[10]) << 16 | int64_t(data[11]) << 24;
    at = 12;
  }
  if (length > bytes - at) fail(name, fmt::format("header length {} exceeds the file", length));
  const Header header(name, std::string(reinterpret_cast<const char*>(data) + at, size_t(length)));
  const Type type = type_of(name, header.descr);
  int64_t need = type.width;
  for (int64_t n : header.sizes) {
    if (n && __builtin_mul_overflow(need, n, &need))  // zeros aside: no product may wrap
      fail(name, "sizes " + to_string(header.sizes) + " are too large");
  }
  if (header.sizes.contains(0)) need = 0;
  at += length;
  if (need > bytes - at) {
    fail(name, fmt::format("is cut off: {} {} needs {} data bytes, there are {}", header.descr,
                           to_string(header.sizes), need, bytes - at));
  }
  Bytes values(data + at, data + at + need);
  if (header.descr[0] == '>' && type.width > 1)
    swap_bytes(values.data(), need / type.width, type.width);
  Tensor t = empty(header.sizes, {.dtype = type.dtype});
  if (type.widen) {
    widen(values.data(), t, type);
  } else if (need) {
    std::memcpy(t.raw(), values.data(), size_t(need));
  }
  if (type.dtype == DType::boolean) {
    for (int64_t i = 0; i < t.numel(); ++i) t.data<uint8_t>()[i] = t.data<uint8_t>()[i] != 0;
  }
  return header.fortran && header.sizes.rank() > 1 ? as_c_order(t, header.sizes) : t;
}

Tensor load_npy(const std::string& path) {
  const Bytes bytes = read_maybe_gzip(path);
  return parse_npy(path, bytes.data(), int64_t(bytes.size()));
}

Bytes format_npy(const Tensor& tensor) {
  Tensor t = tensor.device() == kCpu ? tensor.detach() : tensor.to(kCpu).detach();
  t = t.dtype() == DType::bf16 ? cast_raw(t, DType::f32) : contiguous_raw(t);
  constexpr const char* kCodes[kNumDTypes] = {"<f8", "<f4", "",    "<f2", "<i8",
                                              "<i4", "|u1", "|i1", "|b1"};
  std::string sizes;
  for (int64_t n : t.sizes()) sizes += fmt::format("{}, ", n);
  if (t.dim() > 1) sizes.resize(sizes.size() - 2);
  if (t.dim() == 1) sizes.pop_back();
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   kCodes[static_cast<int>(t.dtype())], sizes);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  const char length[] = {char(header.size() & 255), char(header.size() >> 8)};
  const std::string begin = std::string("\x93NUMPY\x01\x00", 8) + std::string(length, 2) + header;
  Bytes out(begin.begin(), begin.end());
  if (t.numel()) {
    const auto* data = static_cast<const uint8_t*>(t.raw());
    out.insert(out.end(), data, data + t.numel() * size_of(t.dtype()));
  }
  return out;
}

void save_npy(const std::string& path, const Tensor& tensor) {
  const Bytes bytes = format_npy(tensor);
  AtomicFile out(path);
  out.write(bytes.data(), int64_t(bytes.size()));
  out.commit();
}

}  // namespace cutaway::io
