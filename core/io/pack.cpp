#include <cutaway/core/io/pack.h>

#include <fmt/format.h>
#include <lz4frame.h>
#include <zlib.h>
#include <algorithm>
#include <memory>

#include <cutaway/core/error.h>

namespace cutaway::io {
namespace {

constexpr uint32_t kFrame = 0x184D2204, kSkippable = 0x184D2A50;

bool begins_lz4(const Bytes& b) {
  if (b.size() < 4) return false;
  const uint32_t magic = uint32_t(b[3]) << 24 | uint32_t(b[2]) << 16 | uint32_t(b[1]) << 8 | b[0];
  return magic == kFrame || (magic & 0xFFFFFFF0u) == kSkippable;
}

}  // namespace

Bytes unlz4(std::span<const uint8_t> packed, const std::string& name, int64_t limit) {
  LZ4F_dctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) {
    throw IoError("lz4", "cannot start liblz4");
  }
  const std::unique_ptr<LZ4F_dctx, LZ4F_errorCode_t (*)(LZ4F_dctx*)> owner(
      context, LZ4F_freeDecompressionContext);
  constexpr size_t kPiece = size_t(1) << 20;
  Bytes out, piece(kPiece);
  size_t at = 0, wanted = 0;
  // A full piece may leave output behind that needs no further input.
  for (bool full = false; at < packed.size() || full;) {
    size_t got = kPiece, used = packed.size() - at;
    wanted = LZ4F_decompress(context, piece.data(), &got, packed.data() + at, &used, nullptr);
    if (LZ4F_isError(wanted)) {
      throw IoError("lz4", fmt::format("{} is damaged behind byte {}: {}", name, at,
                                       LZ4F_getErrorName(wanted)));
    }
    at += used;
    full = got == kPiece;
    if (got > size_t(limit) - out.size()) {
      throw IoError("lz4", fmt::format("{} unpacks to more than {} bytes", name, limit),
                    "unpack it with lz4 -d first");
    }
    out.insert(out.end(), piece.begin(), piece.begin() + int64_t(got));
    if (got == 0 && used == 0) break;
  }
  if (wanted != 0) {
    throw IoError("lz4", fmt::format("{} is cut off: the LZ4 data ends too early", name));
  }
  return out;
}

Bytes read_unpacked(const std::string& path, int64_t limit) {
  Bytes bytes = read_file(path);
  if (limit <= 0) limit = unpack_limit();
  if (bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) return gunzip(bytes, path, limit);
  return begins_lz4(bytes) ? unlz4(bytes, path, limit) : bytes;
}

uint32_t crc32(std::span<const uint8_t> bytes) {
  return uint32_t(::crc32_z(0, bytes.data(), bytes.size()));
}

Bytes gzip(std::span<const uint8_t> content) {
  z_stream z{};
  if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw IoError("gzip", "cannot start zlib");
  }
  struct End {
    z_stream& z;
    ~End() { deflateEnd(&z); }
  } end{z};
  Bytes out;
  size_t left = content.size(), used = 0;
  z.next_in = const_cast<Bytef*>(content.data());
  for (int status = Z_OK; status != Z_STREAM_END;) {
    if (z.avail_in == 0) {
      z.avail_in = uInt(std::min<size_t>(left, 1u << 30));
      left -= z.avail_in;
    }
    out.resize(used + (1u << 20));
    z.next_out = out.data() + used;
    z.avail_out = 1u << 20;
    status = deflate(&z, left == 0 ? Z_FINISH : Z_NO_FLUSH);
    used += (1u << 20) - z.avail_out;
  }
  out.resize(used);
  return out;
}

void write_text(const std::string& path, const std::string& text) {
  if (!path.ends_with(".gz")) return write_file_atomic(path, text);
  const Bytes packed = gzip({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  AtomicFile file(path);
  file.write(packed.data(), int64_t(packed.size()));
  file.commit();
}

}  // namespace cutaway::io
