#pragma once
#include <cstdint>
#include <span>
#include <string>

#include <cutaway/datasets/dataset.h>

namespace cutaway::data {

// The binary files of CIFAR-10 and CIFAR-100 (Krizhevsky 2009): records of one label byte (10) or
// a coarse and a fine one (100), then 3×32×32 bytes, planes of red, green and blue.
enum class Cifar : uint8_t { ten, hundred };
struct CifarBatch {
  Tensor images;  // u8 [N,3,32,32]
  Tensor labels;  // i64 [N], below 10 or 100
  Tensor coarse;  // i64 [N], below 20; of CIFAR-100 only
};
// One file, plain or gzipped. Raises IoError naming file, record and value: a size that is no
// number of records, a label that is too large.
CifarBatch load_cifar(const std::string& path, Cifar kind);
CifarBatch parse_cifar(const std::string& name, std::span<const uint8_t> bytes, Cifar kind);

// Whether a folder holds such files: data_batch_1.bin … and test_batch.bin, or train.bin and
// test.bin, each plain or with .gz.
bool is_cifar(const std::string& folder);
// inputs u8 [N,3,32,32]; targets are the fine labels. Names of the classes are read from
// batches.meta.txt or fine_label_names.txt beside the files; without them those of CIFAR-10 are
// known. Raises IoError also when one of the batches 1 … 5 is missing below the last there is.
Dataset cifar(const std::string& folder, const std::string& split);

}  // namespace cutaway::data
