#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cutaway::io {

// The wire format of Protocol Buffers, without descriptions of messages: callers name the numbers
// of fields. key = number · 8 + wire type; varint 0, eight bytes 1, length and bytes 2, four
// bytes 5.

// Appends fields to a text that holds one message.
class ProtoWriter {
 public:
  void integer(int field, int64_t value);
  void real32(int field, float value);
  void real64(int field, double value);
  void bytes(int field, std::string_view value);
  void message(int field, const ProtoWriter& inner) { bytes(field, inner.text_); }
  void integers(int field, std::span<const int64_t> values);  // packed
  void reals32(int field, std::span<const float> values);     // packed
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Reads the fields of one message in their order. Lengths are treated as hostile: IoError names the
// file, the message and the byte; messages nest at most 64 deep.
//
//   for (ProtoReader r(name, "TensorProto", data); r.next();) {
//     switch (r.field()) { case 1: r.integers(dims); break; … }  // others are skipped
//   }
class ProtoReader {
 public:
  ProtoReader(std::string_view file, const char* message, std::span<const uint8_t> data);
  // Steps to the next field; false at the end.
  bool next();
  int field() const { return field_; }

  // The value of the field. Raises IoError when it has another wire type.
  int64_t integer() const;
  float real32() const;
  double real64() const;
  std::string text() const;  // raises IoError for zero bytes in it
  std::span<const uint8_t> bytes() const;
  ProtoReader message(const char* name) const;
  // Appends one value, or all of a packed field.
  void integers(std::vector<int64_t>& to) const;
  void reals32(std::vector<float>& to) const;
  void reals64(std::vector<double>& to) const;

  [[noreturn]] void fail(const std::string& rule) const;

 private:
  uint64_t varint();
  template <class T>
  void fixed(std::vector<T>& to, int wire) const;
  void need(int wire) const;

  std::string_view file_;
  const char* message_;
  std::span<const uint8_t> data_;
  size_t begin_ = 0, at_ = 0;  // begin_: of this message in the file
  int field_ = 0, wire_ = 0, depth_ = 0;
  uint64_t number_ = 0;
  std::span<const uint8_t> bytes_;
};

}  // namespace cutaway::io
