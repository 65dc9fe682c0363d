#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Pictures in memory, without tensors.
namespace cutaway::data {

struct PictureInfo {
  int64_t height = 0, width = 0;
  int64_t channels = 0;  // 1: greys, 3: colours; an alpha channel does not count
};
// Pixels row by row, the channels of each side by side.
struct Pixels {
  PictureInfo info;
  std::vector<uint8_t> values;
};

// A picture of more pixels, or with a longer side, is refused before memory is taken for it.
inline constexpr int64_t kMostPixels = int64_t(1) << 26, kLongestSide = 65535;

// What the header says. Raises IoError naming `name` for anything but JPEG, PNG and BMP.
PictureInfo picture_info(const std::string& name, std::span<const uint8_t> bytes);
// The picture with so many channels, 1 or 3 (0: as it has): colours become greys by their
// brightness, 16 bits become 8, transparency is left out. Raises IoError naming `name` for a
// damaged or cut-off file: PNG's checksums, JPEG's end mark and BMP's length are checked.
Pixels decode_picture(const std::string& name, std::span<const uint8_t> bytes,
                      int64_t channels = 0);
// The middle of the picture with the shape of height × width, brought to that size: Mitchell's
// filter where it becomes smaller, Catmull and Rom's where it becomes larger.
Pixels resize_picture(const Pixels& from, int64_t height, int64_t width);

}  // namespace cutaway::data
