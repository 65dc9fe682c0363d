#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cutaway/core/io/file.h>

namespace cutaway::io {

// Reads a zip archive in memory. Its central directory is the authority: members may be stored or
// deflated, zip64, or written to a pipe (sizes after the data). Sizes are treated as hostile.
class ZipReader {
 public:
  // Lists the members; the bytes must stay alive. Raises IoError naming the archive.
  ZipReader(std::string name, std::span<const uint8_t> bytes);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;

  struct Member {
    std::string name;  // opaque, never a path to write to
    uint64_t packed = 0, size = 0;
    uint64_t place = 0, number = 0;  // in the central directory
  };
  const std::vector<Member>& members() const { return members_; }
  // Unpacks a member and checks its CRC. Raises IoError naming archive and member, also when it
  // would have more than `limit` bytes.
  Bytes read(const Member& member, uint64_t limit) const;

 private:
  [[noreturn]] void fail(const std::string& member, const std::string& rule) const;
  void list();

  struct State;
  std::string name_;
  std::unique_ptr<State> state_;
  std::vector<Member> members_;
};

struct ZipOptions {
  bool compress = true;
};
// The bytes of a zip archive with these members, in this order; equal input gives equal bytes.
// Raises IoError for an empty or overlong name.
Bytes make_zip(const std::vector<std::pair<std::string, Bytes>>& members, ZipOptions options = {});

}  // namespace cutaway::io
