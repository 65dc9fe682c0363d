#pragma once
#include <memory>
#include <string>
#include <vector>

#include <cutaway/core/rng.h>
#include <cutaway/core/tensor.h>

namespace cutaway::data {

// Examples with labels, in memory: inputs [N,…], targets [N] (class numbers, i64) or [N,…]
// (values).
struct Dataset {
  std::string name;
  Tensor inputs;
  Tensor targets;
  std::vector<std::string> classes;  // names, when targets are class numbers
  // > 0: inputs are numbers below it (i64) that stay as they are: token ids [N,T], with the tokens
  // that follow as targets [N,T], or with classes [N]; or numbers of things [N].
  int64_t vocabulary = 0;
  // Applied to each batch of inputs as f32: (x · scale − mean) / std.
  double scale = 1, mean = 0, std = 1;

  int64_t size() const { return inputs.defined() ? inputs.size(0) : 0; }
};

// Fashion-MNIST (Xiao et al. 2017), 28×28 greys in 10 classes; split "train" (60 000) or "test" (10
// 000). Read from the folder in CUTAWAY_DATA, from Debian's package dataset-fashion-mnist, or, when
// neither is there, the class-balanced extract of 5 000 + 1 000 that ships with Cutaway. inputs u8
// [N,1,28,28].
Dataset fashion_mnist(const std::string& split);
// 1 797 handwritten digits, 8×8, 10 classes (UCI optdigits test part); every fifth is "test".
// inputs f32 [N,1,8,8].
Dataset digits(const std::string& split);
// For data sets of pictures of several sizes: 0, as they are; else what all are brought to.
struct OpenOptions {
  int64_t height = 0, width = 0;
};
// "64x48", height and width, or "64" for both; "" is no size. Raises ValueError for anything else.
OpenOptions parse_resize(const std::string& text);
// A data set by name ("fashion-mnist", "digits") or by path; docs/data.md has the formats. Files
// without splits of their own: every fifth example is "test". Raises ValueError listing what is
// known, and for sizes given to other data than folders of pictures; IoError as the readers do.
Dataset open(const std::string& name_or_path, const std::string& split,
             const OpenOptions& options = {});
// Names that open() knows, each with one line about it.
std::vector<std::pair<std::string, std::string>> known_datasets();
// Folder of the samples that ship with Cutaway: CUTAWAY_SAMPLES, beside the program, or the source
// folder.
std::string samples_folder();

}  // namespace cutaway::data
