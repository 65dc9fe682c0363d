#pragma once
#include <cutaway/models/train/run_folder.h>
#include <cutaway/models/train/trainer.h>

namespace cutaway::train {

struct ReportInput {
  TrainConfig config;
  std::string folder;
  std::string model_type;
  int64_t parameters;
  const data::Dataset* train_set;
  const data::Dataset* test_set;
  const std::vector<MetricRow>* rows;
  const TrainOutcome* outcome;
};
// Writes plots/{loss,accuracy,confusion,predictions}.svg and report.html: what was run, the result,
// pictures, numbers.
void write_report(const ReportInput& in);

// The confusion matrix as lines of text.
std::string confusion_text(const std::vector<std::vector<int64_t>>& counts,
                           const std::vector<std::string>& classes);

}  // namespace cutaway::train
