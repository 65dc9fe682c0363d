#pragma once
#include <string>

#include <cutaway/core/io/npz.h>
#include <cutaway/datasets/dataset.h>

namespace cutaway::data {

// Files of named arrays as data sets. One array is the inputs, [N,…], one the targets, [N], [N,1]
// or [N,K]. Their names, in letters of any case, "_" left out:
//   inputs   x, input(s), image(s), feature(s), data, fea
//   targets  y, target(s), label(s), class(es), gnd, gt, truth
// A name with "train" or "test" (or "val") before or behind it is of that split, and such arrays
// come before those without; without splits every fifth example is for testing. One input array and
// one other may have any names when there are just two.
// Targets [N] become classes or values by make_targets(); rows with a single 1 among zeros become
// their class, other rows stay as f32 [N,K]. u8 inputs are pixels: [N,H,W] becomes [N,1,H,W],
// [N,H,W,C] with 1 or 3 channels last becomes [N,C,H,W]; all other inputs become f32.
struct NamedSet {
  // Whether the arrays are MATLAB's: examples may then be the last dimension of the inputs, and
  // targets have two dimensions.
  bool matlab = false;
};
// Raises IoError naming `name` and listing the arrays when these are not found or do not fit.
Dataset named_dataset(const std::string& name, const io::NamedArrays& arrays,
                      const std::string& split, NamedSet options = {});

// FILE.npz, and a folder of .npy files (plain or .gz), or one of its files: the names of the files,
// without the ending, are those of the arrays.
bool is_npz(const std::string& path);
Dataset npz_dataset(const std::string& path, const std::string& split);
bool is_npy_folder(const std::string& path);
Dataset npy_dataset(const std::string& path, const std::string& split);
// FILE.mat of MATLAB; arrays in cells and structs are named as load_mat() does.
bool is_mat(const std::string& path);
Dataset mat_dataset(const std::string& path, const std::string& split);

}  // namespace cutaway::data
