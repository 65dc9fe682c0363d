#include <cutaway/core/io/pack.h>

#include <fmt/format.h>
#include <zlib.h>
#include <algorithm>
#include <bit>

#include <cutaway/core/error.h>

namespace cutaway::io {
namespace {

constexpr uint32_t kFrame = 0x184D2204, kSkippable = 0x184D2A50;

uint32_t little(const uint8_t* p) {
  return uint32_t(p[3]) << 24 | uint32_t(p[2]) << 16 | uint32_t(p[1]) << 8 | p[0];
}

// The 32-bit hash XXH32 with seed 0 (Yann Collet's xxHash), which LZ4 frames use as a checksum.
uint32_t xxh32(const uint8_t* p, size_t n) {
  constexpr uint32_t k1 = 2654435761u, k2 = 2246822519u, k3 = 3266489917u, k4 = 668265263u,
                     k5 = 374761393u;
  const uint8_t* const end = p + n;
  uint32_t h = k5;
  if (n >= 16) {
    uint32_t lane[4] = {k1 + k2, k2, 0, 0 - k1};
    for (; end - p >= 16; p += 16) {
      for (int i = 0; i < 4; ++i) lane[i] = std::rotl(lane[i] + little(p + 4 * i) * k2, 13) * k1;
    }
    h = std::rotl(lane[0], 1) + std::rotl(lane[1], 7) + std::rotl(lane[2], 12) +
        std::rotl(lane[3], 18);
  }
  h += uint32_t(n);
  for (; end - p >= 4; p += 4) h = std::rotl(h + little(p) * k3, 17) * k4;
  for (; p < end; ++p) h = std::rotl(h + *p * k5, 11) * k1;
  h = (h ^ h >> 15) * k2;
  h = (h ^ h >> 13) * k3;
  return h ^ h >> 16;
}

class Lz4 {
 public:
  Lz4(std::span<const uint8_t> packed, const std::string& name, int64_t limit)
      : in_(packed), name_(name), limit_(size_t(limit)) {}

  Bytes unpack() {
    while (at_ < in_.size()) {
      const uint32_t magic = little(take(4));
      if ((magic & 0xFFFFFFF0u) == kSkippable) {
        take(little(take(4)));
      } else if (magic == kFrame) {
        frame();
      } else {
        fail("no LZ4 frame begins here");
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& rule) const {
    throw IoError("lz4", fmt::format("{} is damaged at byte {}: {}", name_, at_, rule));
  }
  const uint8_t* take(size_t n) {
    if (in_.size() - at_ < n) {
      throw IoError("lz4", fmt::format("{} is cut off: the LZ4 data ends too early", name_));
    }
    at_ += n;
    return in_.data() + at_ - n;
  }
  void room(size_t more) const {
    if (more > limit_ - out_.size()) {
      throw IoError("lz4", fmt::format("{} unpacks to more than {} bytes", name_, limit_),
                    "unpack it with lz4 -d first");
    }
  }

  void frame() {
    const size_t head = at_;
    const uint8_t flags = *take(1), size_code = *take(1);
    if (flags >> 6 != 1 || (flags & 2) || (size_code & 0x8F)) fail("unknown kind of frame");
    if (flags & 1) fail("the frame needs a dictionary");
    const int code = size_code >> 4;
    if (code < 4) fail("unknown block size");
    const size_t largest = size_t(1) << (2 * code + 8);
    uint64_t content = 0;
    if (flags & 8) {
      const uint8_t* p = take(8);
      content = uint64_t(little(p + 4)) << 32 | little(p);
    }
    const uint32_t sum = xxh32(in_.data() + head, at_ - head);
    if (*take(1) != uint8_t(sum >> 8)) fail("the checksum of the header is wrong");
    const size_t begin = out_.size();
    while (const uint32_t size = little(take(4))) {
      const size_t bytes = size & 0x7FFFFFFFu;
      if (bytes > largest) fail("a block is larger than the header allows");
      const uint8_t* block = take(bytes);
      if (flags & 16 && little(take(4)) != xxh32(block, bytes))
        fail("the checksum of a block is wrong");
      const size_t before = out_.size();
      if (size >> 31) {
        room(bytes);
        out_.insert(out_.end(), block, block + bytes);
      } else {
        blocks(block, bytes, flags & 32 ? before : begin, before + largest);
      }
    }
    if (flags & 4 && little(take(4)) != xxh32(out_.data() + begin, out_.size() - begin)) {
      fail("the checksum of the content is wrong");
    }
    if (flags & 8 && content != out_.size() - begin) fail("the size of the content is wrong");
  }

  // Sequences of literals and matches; matches reach back to `first`, output ends at `most`.
  void blocks(const uint8_t* p, size_t bytes, size_t first, size_t most) {
    const uint8_t* const end = p + bytes;
    const auto length = [&](size_t n) {
      if (n < 15) return n;
      for (uint8_t more = 255; more == 255; n += more) {
        if (p == end) fail("a length is cut off");
        more = *p++;
      }
      return n;
    };
    const auto grow = [&](size_t n) {
      if (n > most - out_.size()) fail("a block holds more than the header allows");
      room(n);
    };
    while (p < end) {
      const uint8_t token = *p++;
      const size_t literals = length(token >> 4);
      if (literals > size_t(end - p)) fail("literals are cut off");
      grow(literals);
      out_.insert(out_.end(), p, p + literals);
      p += literals;
      if (p == end) return;
      if (end - p < 2) fail("a distance is cut off");
      const size_t back = size_t(p[0]) | size_t(p[1]) << 8;
      p += 2;
      const size_t match = length(token & 15) + 4;
      if (back == 0 || back > out_.size() - first) fail("a match begins before the data");
      grow(match);
      const size_t from = out_.size() - back;
      out_.resize(out_.size() + match);
      // Byte by byte where source and target overlap: the copy repeats what it has just written.
      uint8_t* const data = out_.data();
      for (size_t i = 0; i < match; ++i) data[from + back + i] = data[from + i];
    }
    fail("a block ends in a match");
  }

  std::span<const uint8_t> in_;
  const std::string& name_;
  size_t limit_, at_ = 0;
  Bytes out_;
};

}  // namespace

Bytes unlz4(std::span<const uint8_t> packed, const std::string& name, int64_t limit) {
  return Lz4(packed, name, limit).unpack();
}

Bytes read_unpacked(const std::string& path, int64_t limit) {
  Bytes bytes = read_file(path);
  if (limit <= 0) limit = unpack_limit();
  if (bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) return gunzip(bytes, path, limit);
  const bool lz4 = bytes.size() >= 4 && (little(bytes.data()) == kFrame ||
                                         (little(bytes.data()) & 0xFFFFFFF0u) == kSkippable);
  return lz4 ? unlz4(bytes, path, limit) : bytes;
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
