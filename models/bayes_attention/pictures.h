#pragma once
#include <string>
#include <vector>

#include <cutaway/models/bayes_attention/atlas.h>
#include <cutaway/models/bayes_attention/converse.h>

namespace cutaway::bayes {

struct AtlasCurve {
  std::string family;
  Cells cells;
  std::vector<AtlasError> errors;
};
// Largest score error against the number of heads, logarithmic.
std::string atlas_error_plot(const std::vector<AtlasCurve>& curves);
// Keys of a two-dimensional codebook, the Fisher unit ball (reduced) at each, the cells of a grid,
// and the ball of the one shared metric of least defect at the middle.
std::string atlas_plot(const Codebook& codebook, const Grid& grid);
// Unit balls of two metrics [2,2]: learned, and the noise precision.
std::string metric_plot(const Tensor& learned, const Tensor& precision);
struct ConverseCurve {
  std::string way;
  std::vector<ConversePoint> points;
};
std::string converse_plot(const std::vector<ConverseCurve>& curves);
// Excess loss against prompt length: one line for each name.
struct GapCurve {
  std::string name;
  std::vector<double> n, excess;
};
std::string gap_plot(const std::string& family, const std::vector<GapCurve>& curves);

}  // namespace cutaway::bayes
