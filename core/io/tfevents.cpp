#include <cutaway/core/io/tfevents.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <cutaway/core/error.h>

namespace cutaway::io {
namespace {

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = c & 1 ? 0x82F63B78u ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}();

// The format stores a rotated checksum, so that checksums of checksums stay meaningful.
uint32_t masked_crc(const void* data, size_t bytes) {
  const uint32_t crc = crc32c(data, bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

double wall_time() {
  return double(std::chrono::system_clock::now().time_since_epoch() /
                std::chrono::microseconds(1)) *
         1e-6;
}

// Protobuf: key = field number · 8 + wire type (0 varint, 1 eight bytes, 2 length-prefixed, 5 four
// bytes).
void put_varint(std::string& s, uint64_t v) {
  for (; v >= 128; v >>= 7) s += char(v | 128);
  s += char(v);
}
template <class T>
void put_fixed(std::string& s, int field, T v) {
  put_varint(s, uint64_t(field) << 3 | (sizeof(T) == 8 ? 1 : 5));
  s.append(reinterpret_cast<const char*>(&v), sizeof v);
}
void put_bytes(std::string& s, int field, const std::string& v) {
  put_varint(s, uint64_t(field) << 3 | 2);
  put_varint(s, v.size());
  s += v;
}

}  // namespace

uint32_t crc32c(const void* data, size_t bytes) {
  const auto* p = static_cast<const uint8_t*>(data);
  uint32_t c = ~0u;
  for (size_t i = 0; i < bytes; ++i) c = kCrcTable[(c ^ p[i]) & 255] ^ (c >> 8);
  return ~c;
}

EventWriter::EventWriter(const std::string& folder) {
  path_ = fmt::format("{}/events.out.tfevents.{:.6f}.cutaway", folder, wall_time());
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0)
    throw IoError("events", fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
  std::string event;
  put_fixed(event, 1, wall_time());      // Event.wall_time
  put_bytes(event, 3, "brain.Event:2");  // Event.file_version
  record(event);
}

EventWriter::~EventWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void EventWriter::scalar(const std::string& tag, int64_t step, double value) {
  std::string v, summary, event;
  put_bytes(v, 1, tag);           // Summary.Value.tag
  put_fixed(v, 2, float(value));  // Summary.Value.simple_value
  put_bytes(summary, 1, v);       // Summary.value
  put_fixed(event, 1, wall_time());
  put_varint(event, 2 << 3);  // Event.step
  put_varint(event, uint64_t(step));
  put_bytes(event, 5, summary);  // Event.summary
  record(event);
}

void EventWriter::record(const std::string& message) {
  const uint64_t length = message.size();
  const uint32_t length_crc = masked_crc(&length, 8),
                 message_crc = masked_crc(message.data(), message.size());
  std::string bytes(reinterpret_cast<const char*>(&length), 8);
  bytes.append(reinterpret_cast<const char*>(&length_crc), 4);
  bytes += message;
  bytes.append(reinterpret_cast<const char*>(&message_crc), 4);
  if (::write(fd_, bytes.data(), bytes.size()) != ssize_t(bytes.size())) {
    throw IoError("events", fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
  }
}

}  // namespace cutaway::io
