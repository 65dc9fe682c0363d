#pragma once
#include <cstdint>
#include <string>

namespace cutaway::io {

// Writes scalars to a TensorBoard event file (records of length, CRC32C and a protobuf message).
// Every record is flushed, so the file is readable after a crash.
class EventWriter {
 public:
  // Creates folder/events.out.tfevents.<time>.cutaway; raises IoError.
  explicit EventWriter(const std::string& folder);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  void scalar(const std::string& tag, int64_t step, double value);

 private:
  void record(const std::string& message);
  int fd_ = -1;
  std::string path_;
};

// CRC-32C (Castagnoli) of a byte string.
uint32_t crc32c(const void* data, size_t bytes);

}  // namespace cutaway::io
