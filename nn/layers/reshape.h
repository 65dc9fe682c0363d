#pragma once
#include <cutaway/nn/module.h>

namespace cutaway::nn {

struct FlattenOptions {
  int64_t start_dim = 1, end_dim = -1;
};
// Dimensions start_dim … end_dim (inclusive) joined into one; the batch stays.
class Flatten : public Module {
 public:
  explicit Flatten(const FlattenOptions& options = {}) : options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  FlattenOptions options_;
};

struct UnflattenOptions {
  int64_t dim = 1;
  Shape sizes;  // one may be -1
};
// Dimension dim cut into sizes.
class Unflatten : public Module {
 public:
  explicit Unflatten(const UnflattenOptions& options) : options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  UnflattenOptions options_;
};

}  // namespace cutaway::nn
