#pragma once
#include <string>
#include <vector>

namespace cutaway::tools {

// Cost of a training step as one size of a model grows and the others stay.
struct ScalingSeries {
  std::string model, axis;  // "gpt", "length"
  std::vector<double> sizes, ms, bytes;
  double time_exponent = 0, memory_exponent = 0;  // fitted: cost ∝ size^exponent
};
struct ScalingOptions {
  std::vector<std::string> models = {"mlp", "gpt", "resnet"};
  int threads = 1;
  bool quick = false;  // fewer and smaller sizes
};
// Batch, width and depth for all models, length for gpt. Raises ValueError for an unknown model.
std::vector<ScalingSeries> measure_scaling(const ScalingOptions& options);
// Slope of the least-squares line through (log x, log y); of the points with positive values.
double fitted_exponent(const std::vector<double>& x, const std::vector<double>& y);
std::string scaling_text(const std::vector<ScalingSeries>& series);
std::string scaling_json(const std::vector<ScalingSeries>& series);
// Times (or, with `memory`, peaks) relative to the smallest size, both axes logarithmic.
std::string scaling_svg(const std::vector<ScalingSeries>& series, bool memory);

}  // namespace cutaway::tools
