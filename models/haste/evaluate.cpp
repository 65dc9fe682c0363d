#include <cutaway/models/haste/evaluate.h>

#include <algorithm>
#include <numeric>

#include <cutaway/autograd/autograd.h>

namespace cutaway::haste {

void visit_scores(Model& model, const Csr& features, const LabelOrder& order, const ScoreOptions& o,
                  const ScoreVisitor& visitor) {
  NoGradGuard off;
  const int64_t head = model.head_size(), labels = model.labels();
  for (int64_t first = 0; first < features.rows(); first += o.batch) {
    std::vector<int64_t> rows(size_t(std::min(o.batch, features.rows() - first)));
    std::iota(rows.begin(), rows.end(), first);
    const Model::Features x = model.features(make_batch(features, rows));
    visitor.begin(first, int64_t(rows.size()));
    for (int64_t at = 0; at < labels;) {
      const int64_t end = std::min(at + o.chunk, at < head ? head : labels);
      const Tensor z = model.scores(x, at, end - at);
      visitor.add(z.data<float>(), end - at, {order.label.data() + at, size_t(end - at)});
      at = end;
    }
    visitor.end();
  }
}

Metrics evaluate(Model& model, const XmcData& test, const Csr& filter, const LabelOrder& order,
                 const std::vector<int64_t>& frequency, int64_t train_samples,
                 const ScoreOptions& options, const EvaluateOptions& metrics) {
  Evaluator evaluator(test.labels, filter, frequency, train_samples, metrics);
  visit_scores(
      model, test.features, order, options,
      {.begin = [&](int64_t first, int64_t rows) { evaluator.begin(first, rows); },
       .add = [&](const float* scores, int64_t count,
                  std::span<const int32_t> labels) { evaluator.add(scores, count, labels); },
       .end = [&] { evaluator.end(); }});
  return evaluator.metrics();
}

TopK top_labels(Model& model, const Csr& features, const LabelOrder& order, int64_t k,
                const ScoreOptions& options) {
  TopK best(features.rows(), k);
  ScoreOptions all = options;
  all.batch = std::max<int64_t>(features.rows(), 1);
  visit_scores(model, features, order, all,
               {.begin = [](int64_t, int64_t) {},
                .add = [&](const float* scores, int64_t count,
                           std::span<const int32_t> labels) { best.add(scores, count, labels); },
                .end = [] {}});
  return best;
}

}  // namespace cutaway::haste
