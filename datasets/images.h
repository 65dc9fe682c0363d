#pragma once
#include <span>
#include <string>

#include <cutaway/datasets/dataset.h>

namespace cutaway::data {

struct PictureOptions {
  // 0: as it is; else the middle of the picture that has this shape, brought to this size.
  int64_t height = 0, width = 0;
  int64_t channels = 0;  // 1 or 3; 0: as it is
};
// A picture, JPEG, PNG or BMP, as u8 [C,H,W]. Raises IoError as decode_picture() does, ValueError
// for options out of range.
Tensor load_image(const std::string& path, const PictureOptions& options = {});
Tensor parse_image(const std::string& name, std::span<const uint8_t> bytes,
                   const PictureOptions& options = {});

// A folder of pictures: its sub-folders are the classes, in the order of their names, with the
// pictures of each; or it has sub-folders "train" and "test" (also "val", "valid") of that kind.
// Without these, every fifth picture of each class, by name, is for testing. Files with other
// endings than .jpg, .jpeg, .png and .bmp and hidden files are left out.
bool is_image_folder(const std::string& folder);
// inputs u8 [N,C,H,W], three channels unless all pictures of the split are grey (or as asked).
// Raises IoError naming the file when a picture cannot be read, has another size than the first
// (without `height` and `width`), when all together exceed io::unpack_limit(), and when a test
// folder has a class that the training folder lacks.
Dataset image_folder(const std::string& folder, const std::string& split,
                     const PictureOptions& options = {});

}  // namespace cutaway::data
