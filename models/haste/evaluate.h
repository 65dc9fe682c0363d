#pragma once
#include <functional>

#include <cutaway/models/haste/grouping.h>
#include <cutaway/models/haste/metrics.h>
#include <cutaway/models/haste/model.h>

namespace cutaway::haste {

struct ScoreOptions {
  int64_t chunk = 2048;  // labels whose logits exist at a time
  int64_t batch = 256;   // rows
};
// Calls visit(first row, rows, logits [count,rows], labels of the data [count]) for every batch of
// rows and chunk of labels; `begin` and `end` stand around the chunks of a batch.
struct ScoreVisitor {
  std::function<void(int64_t first, int64_t rows)> begin;
  std::function<void(const float* scores, int64_t count, std::span<const int32_t> labels)> add;
  std::function<void()> end;
};
void visit_scores(Model& model, const Csr& features, const LabelOrder& order,
                  const ScoreOptions& options, const ScoreVisitor& visitor);

// P@k, PSP@k, bands and deciles of a test set (section 6, metrics). `filter` without rows: none.
Metrics evaluate(Model& model, const XmcData& test, const Csr& filter, const LabelOrder& order,
                 const std::vector<int64_t>& frequency, int64_t train_samples,
                 const ScoreOptions& options = {}, const EvaluateOptions& metrics = {});

// The k best labels of every row, best first, and their logits.
TopK top_labels(Model& model, const Csr& features, const LabelOrder& order, int64_t k,
                const ScoreOptions& options = {});

}  // namespace cutaway::haste
