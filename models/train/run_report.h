#pragma once
#include <cutaway/models/train/run_folder.h>
#include <cutaway/models/train/trainer.h>
#include <cutaway/models/zoo/pictures.h>

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
  std::string pictures;  // of models of pictures: inputs_and_results()
};
// Writes report.html and plots: what was run, the result, pictures, numbers. Plots are loss; of
// classes and language models accuracy; of classes confusion and predictions; of models of pictures
// pictures.
void write_report(const ReportInput& in);

// The first pictures of a data set above what the model makes of them, as SVG.
std::string inputs_and_results(zoo::PictureModel& model, const data::Dataset& set);

// The confusion matrix as lines of text.
std::string confusion_text(const std::vector<std::vector<int64_t>>& counts,
                           const std::vector<std::string>& classes);

}  // namespace cutaway::train
