#pragma once
#include <span>
#include <string>
#include <vector>

#include <cutaway/core/tensor.h>
#include <cutaway/datasets/dataset.h>

namespace cutaway::data {

// Targets of a data set, from the numbers of both splits together: what is a class, and its number,
// must not depend on the split.
struct Targets {
  Tensor values;
  std::vector<std::string> classes;  // names
};
struct TargetOptions {
  // Whether classes are numbered anew when the smallest is not 0: from 0 in ascending order, with
  // the numbers as names. Else they stay as they are, and negative ones make all numbers values.
  bool renumber = true;
};
// Whole numbers are classes, i64 [N]. Other numbers are values, f32 [N].
Targets make_targets(std::span<const double> numbers, TargetOptions options = {});

// The examples with these numbers, in this order, in memory of their own.
Dataset take_examples(const Dataset& set, const std::vector<int64_t>& examples);
// A set without splits of its own: the examples that in_split() gives.
Dataset take_split(const Dataset& set, const std::string& split);

}  // namespace cutaway::data
