#include <cutaway/core/io/protobuf.h>

#include <fmt/format.h>
#include <cstring>

#include <cutaway/core/error.h>

namespace cutaway::io {
namespace {

enum Wire : int { kVarint = 0, kEight = 1, kBytes = 2, kFour = 5 };
constexpr int kMaxDepth = 64;

void put_varint(std::string& s, uint64_t v) {
  for (; v >= 128; v >>= 7) s += char(v | 128);
  s += char(v);
}
void put_key(std::string& s, int field, Wire wire) {
  put_varint(s, uint64_t(field) << 3 | uint64_t(wire));
}
template <class T>
void put_fixed(std::string& s, T v) {
  s.append(reinterpret_cast<const char*>(&v), sizeof v);
}

const char* wire_name(int wire) {
  switch (wire) {
    case kVarint:
      return "a number";
    case kEight:
      return "eight bytes";
    case kBytes:
      return "bytes";
    default:
      return "four bytes";
  }
}

}  // namespace

void ProtoWriter::integer(int field, int64_t value) {
  put_key(text_, field, kVarint);
  put_varint(text_, uint64_t(value));
}
void ProtoWriter::real32(int field, float value) {
  put_key(text_, field, kFour);
  put_fixed(text_, value);
}
void ProtoWriter::real64(int field, double value) {
  put_key(text_, field, kEight);
  put_fixed(text_, value);
}
void ProtoWriter::bytes(int field, std::string_view value) {
  put_key(text_, field, kBytes);
  put_varint(text_, value.size());
  text_ += value;
}
void ProtoWriter::integers(int field, std::span<const int64_t> values) {
  std::string packed;
  for (const int64_t v : values) put_varint(packed, uint64_t(v));
  bytes(field, packed);
}
void ProtoWriter::reals32(int field, std::span<const float> values) {
  bytes(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

ProtoReader::ProtoReader(std::string_view file, const char* message, std::span<const uint8_t> data)
    : file_(file), message_(message), data_(data) {}

void ProtoReader::fail(const std::string& rule) const {
  throw IoError("protobuf",
                fmt::format("{}: {}, byte {}: {}", file_, message_, begin_ + at_, rule));
}

uint64_t ProtoReader::varint() {
  uint64_t v = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ == data_.size()) fail("a number is cut off");
    const uint8_t b = data_[at_++];
    if (shift == 63 && b > 1) fail("a number has more than 64 bits");
    v |= uint64_t(b & 127) << shift;
    if (!(b & 128)) return v;
  }
  fail("a number has more than 64 bits");
}

bool ProtoReader::next() {
  if (at_ == data_.size()) return false;
  const uint64_t key = varint();
  if (key >> 3 == 0 || key >> 3 > 536'870'911) fail(fmt::format("no field {}", key >> 3));
  field_ = int(key >> 3);
  wire_ = int(key & 7);
  uint64_t size = 0;
  switch (wire_) {
    case kVarint:
      number_ = varint();
      return true;
    case kEight:
      size = 8;
      break;
    case kFour:
      size = 4;
      break;
    case kBytes:
      size = varint();
      break;
    default:
      fail(fmt::format("field {} has the unknown wire type {}", field_, wire_));
  }
  if (size > data_.size() - at_) {
    fail(fmt::format("field {} has {} bytes, {} are left", field_, size, data_.size() - at_));
  }
  bytes_ = data_.subspan(at_, size);
  at_ += size;
  return true;
}

void ProtoReader::need(int wire) const {
  if (wire_ != wire) {
    fail(fmt::format("field {} must be {}; got {}", field_, wire_name(wire), wire_name(wire_)));
  }
}

int64_t ProtoReader::integer() const {
  need(kVarint);
  return int64_t(number_);
}
float ProtoReader::real32() const {
  need(kFour);
  float v;
  std::memcpy(&v, bytes_.data(), sizeof v);
  return v;
}
double ProtoReader::real64() const {
  need(kEight);
  double v;
  std::memcpy(&v, bytes_.data(), sizeof v);
  return v;
}
std::span<const uint8_t> ProtoReader::bytes() const {
  need(kBytes);
  return bytes_;
}
std::string ProtoReader::text() const {
  need(kBytes);
  if (!bytes_.empty() && std::memchr(bytes_.data(), 0, bytes_.size())) {
    fail(fmt::format("field {} is a text with a zero byte", field_));
  }
  return {bytes_.begin(), bytes_.end()};
}

ProtoReader ProtoReader::message(const char* name) const {
  need(kBytes);
  if (depth_ + 1 > kMaxDepth) fail(fmt::format("messages nest deeper than {}", kMaxDepth));
  ProtoReader inner(file_, name, bytes_);
  inner.begin_ = begin_ + size_t(bytes_.data() - data_.data());
  inner.depth_ = depth_ + 1;
  return inner;
}

void ProtoReader::integers(std::vector<int64_t>& to) const {
  if (wire_ == kVarint) return to.push_back(int64_t(number_));
  need(kBytes);
  ProtoReader packed = message(message_);
  while (packed.at_ < packed.data_.size()) to.push_back(int64_t(packed.varint()));
}

template <class T>
void ProtoReader::fixed(std::vector<T>& to, int wire) const {
  if (wire_ != kBytes) need(wire);
  if (bytes_.size() % sizeof(T) != 0) fail(fmt::format("field {} is cut off", field_));
  const size_t before = to.size();
  to.resize(before + bytes_.size() / sizeof(T));
  if (!bytes_.empty()) std::memcpy(to.data() + before, bytes_.data(), bytes_.size());
}
void ProtoReader::reals32(std::vector<float>& to) const { fixed(to, kFour); }
void ProtoReader::reals64(std::vector<double>& to) const { fixed(to, kEight); }

}  // namespace cutaway::io
