#pragma once
#include <string>
#include <vector>

#include <cutaway/autograd/op.h>

namespace cutaway {

// The outcome of one check of one sample of an op record.
struct CheckResult {
  std::string check;  // "value", "dtype bf16", "strided", "meta", "gradcheck", "gradgradcheck", …
  std::string sample;
  bool ok = true;
  double worst = 0;     // largest relative error seen, where there is one
  std::string message;  // why not
};

// Runs every check that the record's samples give: value against the f64 reference, all dtypes,
// strided inputs, shapes on meta, same bits for 1 and n threads, temporaries as operands,
// gradcheck, gradgradcheck, fast backward against the composite rule, and the error samples. A
// record without samples fails. On another device than cpu: values, types, strides, threads and
// gradients there against the same references, and operands of two devices.
std::vector<CheckResult> check_op(const OpRecord& op, Device device = kCpu);

// Of these records the names of those that check_op could not check: no samples, or none that has a
// reference, and no error sample either.
std::vector<std::string> records_without_samples(const std::vector<const OpRecord*>& records);

// Relative tolerance of a value in this type (Note: tolerances).
double value_tolerance(DType t);

}  // namespace cutaway
