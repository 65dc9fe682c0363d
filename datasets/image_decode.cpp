#include <cutaway/datasets/image_decode.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include <cutaway/core/error.h>
#include <cutaway/core/io/pack.h>

namespace cutaway::data {
namespace {

// What the decoder may take at once on this thread: a small file cannot ask for much memory.
thread_local size_t t_most_bytes = 0;
void* limited_alloc(size_t bytes) {
  return bytes > t_most_bytes ? nullptr : std::calloc(1, std::max<size_t>(bytes, 1));
}
void* limited_realloc(void* old, size_t bytes) {
  return bytes > t_most_bytes ? nullptr : std::realloc(old, std::max<size_t>(bytes, 1));
}

}  // namespace
}  // namespace cutaway::data

#define STBI_MALLOC(bytes) cutaway::data::limited_alloc(bytes)
#define STBI_REALLOC(old, bytes) cutaway::data::limited_realloc(old, bytes)
#define STBI_FREE(old) std::free(old)
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_FAILURE_USERMSG
#define STBI_ASSERT(condition) ((void)0)
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBIR_ASSERT(condition) ((void)0)
#define STB_IMAGE_RESIZE_STATIC
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb_image.h>
#include <stb_image_resize.h>
#pragma GCC diagnostic pop

namespace cutaway::data {
namespace {

using Bytes = std::span<const uint8_t>;

[[noreturn]] void refuse_picture(const std::string& name, const std::string& rule) {
  throw IoError("image", name + ": " + rule);
}
uint32_t png_number(const uint8_t* p) {
  return uint32_t(p[0]) << 24 | uint32_t(p[1]) << 16 | uint32_t(p[2]) << 8 | p[3];
}
uint32_t bmp_number(const uint8_t* p) {
  return uint32_t(p[3]) << 24 | uint32_t(p[2]) << 16 | uint32_t(p[1]) << 8 | p[0];
}
bool begins(Bytes b, std::string_view magic) {
  return b.size() >= magic.size() && std::memcmp(b.data(), magic.data(), magic.size()) == 0;
}

// stb_image reads what is left of a damaged file; what these find is refused.
void check_png(const std::string& name, Bytes b) {
  bool data = false;
  for (size_t at = 8;;) {
    if (b.size() - at < 12) refuse_picture(name, "PNG is cut off");
    const size_t length = png_number(b.data() + at);
    if (length > b.size() - at - 12) refuse_picture(name, "PNG is cut off");
    const Bytes checked = b.subspan(at + 4, length + 4);
    if (io::crc32(checked) != png_number(b.data() + at + 8 + length)) {
      refuse_picture(
          name, fmt::format("PNG is damaged: the checksum of its part at byte {} is wrong", at));
    }
    if (begins(checked, "IEND")) return;
    if (begins(checked, "IDAT") && !data && length == 0) {
      refuse_picture(name, "PNG is damaged: its data begin with an empty part");
    }
    data = data || begins(checked, "IDAT");
    at += 12 + length;
  }
}

// The Huffman tables of a JPEG segment that begins with its length: stb_image writes tables of more
// than 256 codes beyond its arrays.
void check_codes(const std::string& name, Bytes segment) {
  if (segment.size() < 2) return;
  int64_t left = (segment[0] << 8 | segment[1]) - 2;
  for (Bytes b = segment.subspan(2); left > 0 && !b.empty();) {
    int64_t codes = 0;
    for (size_t i = 1; i <= 16 && i < b.size(); ++i) codes += b[i];
    if (codes > 256)
      refuse_picture(name, fmt::format("JPEG is damaged: a table of {} codes", codes));
    b = b.subspan(std::min<size_t>(b.size(), size_t(17 + codes)));
    left -= 17 + codes;
  }
}

// Segments up to the first scan; from there on, or where their order is lost, whatever looks like
// the begin of tables.
void check_jpeg_tables(const std::string& name, Bytes b) {
  const std::string_view text(reinterpret_cast<const char*>(b.data()), b.size());
  bool in_order = true, codes = false, steps = false;
  for (size_t at = 2; (at = text.find('\xFF', at)) != text.npos;) {
    at = text.find_first_not_of('\xFF', at);
    if (at == text.npos) return;
    const uint8_t mark = b[at++];
    if (mark == 0xC4) check_codes(name, b.subspan(at));
    codes = codes || mark == 0xC4;
    steps = steps || mark == 0xDB;
    if (mark == 0xDA && !(codes && steps))
      refuse_picture(name, "JPEG is damaged: it lacks its tables");
    in_order = in_order && mark >= 0xC0 && mark < 0xFF && mark != 0xDA && b.size() - at >= 2;
    if (in_order) at += size_t(std::max(b[at] << 8 | b[at + 1], 2));
  }
}

void check_jpeg_end(const std::string& name, Bytes b) {
  // In the data of a scan, FF is followed by 0 or by a restart mark.
  const std::string_view text(reinterpret_cast<const char*>(b.data()), b.size());
  const size_t scan = text.rfind("\xFF\xDA"), end = text.rfind("\xFF\xD9");
  if (scan == text.npos) refuse_picture(name, "JPEG is damaged: it has no scan");
  if (end == text.npos || end < scan) refuse_picture(name, "JPEG is cut off");
}

void check_bmp(const std::string& name, Bytes b, const PictureInfo& info) {
  if (b.size() < 30) refuse_picture(name, "BMP is cut off");
  const int64_t header = bmp_number(b.data() + 14);
  const uint8_t* at = b.data() + (header == 12 ? 24 : 28);
  const int64_t bits = at[0] | at[1] << 8, begin = bmp_number(b.data() + 10);
  const int64_t need = begin + (info.width * bits + 31) / 32 * 4 * info.height;
  if (int64_t(b.size()) < need) {
    refuse_picture(name, fmt::format("BMP is cut off: {} of {} bytes", b.size(), need));
  }
}

}  // namespace

PictureInfo picture_info(const std::string& name, Bytes bytes) {
  const bool known =
      begins(bytes, "\x89PNG\r\n\x1A\n") || begins(bytes, "\xFF\xD8") || begins(bytes, "BM");
  if (!known) refuse_picture(name, "is no JPEG, PNG or BMP file");
  if (bytes.size() > (size_t(1) << 30)) refuse_picture(name, "is larger than 1 GiB");
  if (begins(bytes, "\xFF\xD8")) check_jpeg_tables(name, bytes);
  t_most_bytes = size_t(1) << 20;
  int width = 0, height = 0, channels = 0;
  if (!stbi_info_from_memory(bytes.data(), int(bytes.size()), &width, &height, &channels)) {
    refuse_picture(name,
                   fmt::format("is damaged or of an unknown kind: {}", stbi_failure_reason()));
  }
  if (begins(bytes, "BM") && height > INT32_MIN) height = std::abs(height);  // rows from above
  if (width < 1 || height < 1 || std::max(width, height) > kLongestSide ||
      int64_t(width) * height > kMostPixels) {
    refuse_picture(name, fmt::format("{}×{} pixels; need at most {} and sides of 1 to {}", width,
                                     height, kMostPixels, kLongestSide));
  }
  return {height, width, channels < 3 ? 1 : 3};
}

Pixels decode_picture(const std::string& name, Bytes bytes, int64_t channels) {
  Pixels out{picture_info(name, bytes), {}};
  if (begins(bytes, "\x89PNG")) check_png(name, bytes);
  if (begins(bytes, "\xFF\xD8")) check_jpeg_end(name, bytes);
  if (begins(bytes, "BM")) check_bmp(name, bytes, out.info);
  if (channels > 0) out.info.channels = channels;
  // Eight bytes a pixel unpacked, twice while a buffer grows, and sides rounded up to blocks.
  const int64_t pixels = out.info.width * out.info.height;
  t_most_bytes = size_t(32 * pixels) + 2 * bytes.size() + (size_t(1) << 20);
  int width = 0, height = 0, in_file = 0;
  uint8_t* const made = stbi_load_from_memory(bytes.data(), int(bytes.size()), &width, &height,
                                              &in_file, int(out.info.channels));
  if (made == nullptr) refuse_picture(name, fmt::format("is damaged: {}", stbi_failure_reason()));
  const std::unique_ptr<uint8_t, decltype(&std::free)> owner(made, std::free);
  if (width != out.info.width || height != out.info.height) {
    refuse_picture(name, fmt::format("{}×{} pixels, its header says {}×{}", width, height,
                                     out.info.width, out.info.height));
  }
  out.values.assign(made, made + pixels * out.info.channels);
  return out;
}

Pixels resize_picture(const Pixels& from, int64_t height, int64_t width) {
  const auto [h, w, channels] = from.info;
  if (h == height && w == width) return from;  // filters would smooth it
  // The largest part of the shape asked for.
  const int64_t part_w = std::clamp<int64_t>((h * width + height / 2) / height, 1, w);
  const int64_t part_h = std::clamp<int64_t>((w * height + width / 2) / width, 1, h);
  const int64_t x = (w - part_w) / 2, y = (h - part_h) / 2;
  Pixels out{{height, width, channels}, std::vector<uint8_t>(size_t(height * width * channels))};
  if (!stbir_resize_uint8(from.values.data() + (y * w + x) * channels, int(part_w), int(part_h),
                          int(w * channels), out.values.data(), int(width), int(height), 0,
                          int(channels))) {
    throw MemoryError("image",
                      fmt::format("cannot bring {}×{} pixels to {}×{}", w, h, width, height));
  }
  return out;
}

}  // namespace cutaway::data
