#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace cutaway::io {

using Bytes = std::vector<uint8_t>;

// The whole file. Raises IoError naming the path and the reason.
Bytes read_file(const std::string& path);
// The same, unpacked when it begins like gzip. Raises IoError for damaged or cut-off gzip data, and
// when the result would exceed `limit` bytes (0: unpack_limit()).
Bytes read_maybe_gzip(const std::string& path, int64_t limit = 0);
// What packed files may unpack to unless the caller says otherwise: a quarter of the memory.
int64_t unpack_limit();
// Unpacks gzip bytes; `name` stands in messages.
Bytes gunzip(std::span<const uint8_t> packed, const std::string& name, int64_t limit);

// Writes a file so that the old content stays until the new one is complete: temporary file in the
// same folder, flushed to disk, renamed. Follows a symbolic link to its target; keeps the mode of
// an existing file. On failure the temporary file is removed and IoError names path and reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  void write(const void* data, int64_t bytes);
  void write(const std::string& text) { write(text.data(), int64_t(text.size())); }
  // Makes the new content visible. Without it nothing changes.
  void commit();

 private:
  [[noreturn]] void fail(const char* what);
  std::string path_, temporary_;
  int fd_ = -1;
};
void write_file_atomic(const std::string& path, const std::string& content);

// Flushes a folder's entries to disk after renames in it.
void sync_folder(const std::string& folder);

}  // namespace cutaway::io
