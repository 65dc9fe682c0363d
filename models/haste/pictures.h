#pragma once
#include <string>
#include <vector>

#include <cutaway/models/haste/train.h>

namespace cutaway::haste {

// Pictures as SVG.
std::string precision_plot(const std::vector<EpochRow>& rows);  // P@1, 3, 5 by epoch
std::string loss_plot(const std::vector<EpochRow>& rows);
std::string rewired_plot(const std::vector<EpochRow>& rows);  // slots by epoch
// P@k within deciles of label frequency.
std::string decile_plot(const Metrics& metrics);
// Bytes of every tensor.
std::string memory_plot(const std::vector<std::pair<std::string, int64_t>>& memory);

// Layers beside each other: a bar with its spread in words.
struct Compared {
  std::string name;
  std::vector<double> values;  // of every seed
};
std::string compare_plot(const std::vector<Compared>& layers, const std::string& title,
                         const std::string& axis);

}  // namespace cutaway::haste
