#pragma once
#include <cstdint>
#include <span>
#include <string>

#include <cutaway/core/io/file.h>

namespace cutaway::io {

// The whole file, unpacked when it begins like gzip or like an LZ4 frame. Raises IoError as
// read_maybe_gzip does; `limit` 0 means unpack_limit().
Bytes read_unpacked(const std::string& path, int64_t limit = 0);

// Unpacks LZ4 frames, one after the other; checksums are verified, skippable frames skipped.
// IoError names `name` for damaged or cut-off data, frames that need a dictionary, and content
// above `limit` bytes.
Bytes unlz4(std::span<const uint8_t> packed, const std::string& name, int64_t limit);

// The checksum of zip, gzip and PNG.
uint32_t crc32(std::span<const uint8_t> bytes);

// The bytes packed as one gzip member without a time stamp: the same content gives the same file.
Bytes gzip(std::span<const uint8_t> content);
// Writes text as AtomicFile does, packed when the path ends in .gz.
void write_text(const std::string& path, const std::string& text);

}  // namespace cutaway::io
