#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <cutaway/datasets/csr.h>
#include <cutaway/datasets/dataset.h>

// Lines of text that name the features other than 0: "… index:value index:value". All are read
// plain, gzipped or as LZ4 frames. IoError names file, line and value: indices out of range or met
// twice, values that are not finite, anything that is not a number.
namespace cutaway::data {

struct MultiLabelRows {
  Csr features;  // [rows, features]
  Csr labels;    // [rows, labels], no values
  int64_t rows() const { return features.rows(); }
};

// The format of the Extreme Classification Repository: "N V L", then N lines
// "l1,l2,… f1:v1 f2:v2 …" with labels below L and features below V, both from 0; a line without
// labels begins with a blank. Counts that disagree are refused.
MultiLabelRows load_xmc(const std::string& path);
MultiLabelRows parse_xmc(const std::string& name, std::string_view text);
// Packed when the path ends in .gz. Values are written so that they read back exactly.
void save_xmc(const MultiLabelRows& rows, const std::string& path);

struct LibsvmOptions {
  // Of the first feature. `automatic`: 0 when a line has an index 0, else 1.
  enum class First : uint8_t { automatic, zero, one };
  First first = First::automatic;
  int64_t features = 0;  // how many there are; 0: as many as the largest index tells
};
struct LibsvmRows {
  Csr features;                  // [rows, features], columns from 0
  std::vector<double> targets;   // [rows]; empty when rows have sets of labels
  Csr labels;                    // [rows, labels], no values; no rows when rows have one target
  std::vector<int64_t> queries;  // the numbers of "qid:"; empty when no line has one

  int64_t rows() const { return features.rows(); }
  bool multi_label() const { return targets.empty() && rows() > 0; }
};
// Text of LIBSVM and SVMlight: lines "target [qid:number] index:value … [# note]"; blank lines and
// lines of a note alone are left out. The target is a finite number, or, when any line has several
// or begins with a blank (none), a list "l1,l2,…" of whole numbers. Either all lines have a qid or
// none. Raises IoError also for a file without rows.
LibsvmRows load_libsvm(const std::string& path, const LibsvmOptions& options = {});
LibsvmRows parse_libsvm(const std::string& name, std::string_view text,
                        const LibsvmOptions& options = {});

// As data sets. Features become dense, f32 [N,V]; one target a row becomes classes as
// class_numbers() says, or f32 [N]; sets of labels become f32 [N,L] of 0 and 1.
// FILE.svm, .libsvm or .svmlight; the test part is FILE.t (or FILE with "test" for "train" in its
// name) when that is there, else every fifth row.
bool is_libsvm(const std::string& path);
Dataset libsvm_dataset(const std::string& path, const std::string& split);
// A .txt or .xmc file that begins with three counts, or a folder with such files train.txt and
// test.txt. The test part of a file is found as for libsvm.
bool is_xmc(const std::string& path);
Dataset xmc_dataset(const std::string& path, const std::string& split);

}  // namespace cutaway::data
