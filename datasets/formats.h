#pragma once
#include <span>
#include <string>

#include <cutaway/datasets/dataset.h>

// What data::open knows of each kind of file, and what the readers of data sets share.
namespace cutaway::data {

struct Format {
  const char* name;   // as in known_datasets()
  const char* about;  // one line
  // Whether a path is of this kind: by its ending, or by what a folder holds.
  bool (*fits)(const std::string& path);
  Dataset (*open)(const std::string& path, const std::string& split);
};
// In the order in which they are asked.
std::span<const Format> formats();

// Raises ValueError unless the split is "train" or "test".
void require_split(const std::string& split);
// Whether an example of a file without splits of its own belongs to the split: every fifth, the
// last of each five, is for testing.
inline bool in_split(int64_t example, const std::string& split) {
  return (example % 5 == 4) == (split == "test");
}
// The file, plain or gzipped; empty when neither is there.
std::string find_file(const std::string& path);
// Whether the path is a file with this ending, or with this ending and .gz; letters of any case.
bool has_ending(const std::string& path, std::string_view ending);

// IDX files PREFIX-images-idx3-ubyte[.gz] and PREFIX-labels-idx1-ubyte[.gz].
bool is_idx_prefix(const std::string& prefix);
Dataset idx_dataset(const std::string& name, const std::string& images, const std::string& labels);
// A table; the last column is the target.
Dataset csv_dataset(const std::string& path, const std::string& split);

}  // namespace cutaway::data
