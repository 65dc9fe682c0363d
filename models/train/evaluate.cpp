#include <cutaway/models/train/evaluate.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/datasets/loader.h>
#include <cutaway/models/zoo/pictures.h>

namespace cutaway::train {
namespace {

// Whether targets are the tokens that follow.
bool tells_next(const data::Dataset& d) { return d.vocabulary > 0 && d.targets.dim() == 2; }

// Mean loss and accuracy per token.
Evaluation evaluate_tokens(nn::Module& model, const data::Dataset& dataset, Device device) {
  constexpr int64_t kMostLogits = 1 << 22;  // at a time
  const int64_t row = dataset.inputs.size(1) * dataset.vocabulary;
  data::Loader loader(dataset, {.batch = std::clamp<int64_t>(kMostLogits / row, 1, 256)});
  double loss_sum = 0;
  int64_t correct = 0;
  for (const auto& [x, y] : loader) {
    const Tensor logits = reshape(model(x.to(device)), {y.numel(), dataset.vocabulary});
    loss_sum +=
        cross_entropy(logits, reshape(y, {y.numel()}).to(device)).item() * double(y.numel());
    correct += count_correct(logits, y);
  }
  const double n = double(dataset.targets.numel());
  return {.loss = loss_sum / n, .accuracy = double(correct) / n, .confusion = {}, .predicted = {}};
}

Evaluation evaluate_pictures(zoo::PictureModel& model, const data::Dataset& dataset, int64_t batch,
                             Device device) {
  const OwnDraws draws(kTestDraws);
  double loss_sum = 0;
  data::Loader loader(dataset, {.batch = batch});
  for (const auto& [x, y] : loader) loss_sum += model.loss(x.to(device)).item() * double(x.size(0));
  const double n = double(std::max<int64_t>(dataset.size(), 1));
  return {.loss = loss_sum / n, .accuracy = std::nan(""), .confusion = {}, .predicted = {}};
}

Evaluation evaluate_classes(nn::Module& model, const data::Dataset& dataset, int64_t batch,
                            Device device) {
  Evaluation e;
  const int64_t classes = task_of(dataset).classes;
  e.confusion.assign(size_t(classes), std::vector<int64_t>(size_t(classes), 0));
  data::Loader loader(dataset, {.batch = batch});
  const bool padded = is_padded_text(dataset);
  double loss_sum = 0;
  int64_t correct = 0;
  for (const auto& [x, y] : loader) {
    const Tensor logits = model((padded ? without_padding(x) : x).to(device));
    loss_sum += cross_entropy(logits, y.to(device)).item() * double(x.size(0));
    const Tensor best = argmax(logits, 1).to(kCpu);
    for (int64_t i = 0; i < y.numel(); ++i) {
      const int64_t truth = y.data<int64_t>()[i], guess = best.data<int64_t>()[i];
      if (guess < classes) ++e.confusion[size_t(truth)][size_t(guess)];
      e.predicted.push_back(guess);
      correct += truth == guess;
    }
  }
  const double n = double(std::max<int64_t>(dataset.size(), 1));
  e.loss = loss_sum / n;
  e.accuracy = double(correct) / n;
  return e;
}

}  // namespace

zoo::Task task_of(const data::Dataset& d) {
  const Shape input = d.inputs.dim() > 1 ? d.inputs.sizes().slice(1, d.inputs.dim()) : Shape{1};
  if (tells_next(d)) return {input, 0, d.vocabulary};
  if (d.targets.dtype() != DType::i64) {
    throw ValueError("train", fmt::format("{} has no class numbers as targets; got {}", d.name,
                                          name_of(d.targets.dtype())));
  }
  constexpr int64_t kMostClasses = 10000;
  int64_t most = -1;
  const int64_t* y = d.targets.data<int64_t>();
  for (int64_t i = 0; i < d.targets.numel(); ++i) {
    if (y[i] < 0 || y[i] >= kMostClasses) {
      throw ValueError("train", fmt::format("{}: example {} has the class number {}; need 0 to {}",
                                            d.name, i, y[i], kMostClasses - 1));
    }
    most = std::max(most, y[i]);
  }
  return {input, std::max<int64_t>(most + 1, int64_t(d.classes.size())), d.vocabulary};
}

Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, int64_t batch) {
  NoGradGuard no_grad;
  const bool was_training = model.training();
  model.eval();
  const nn::NamedTensors parameters = model.parameters();
  const Device device = parameters.empty() ? kCpu : parameters.front().value.device();
  auto* pictures = dynamic_cast<zoo::PictureModel*>(&model);
  const Evaluation e = pictures              ? evaluate_pictures(*pictures, dataset, batch, device)
                       : tells_next(dataset) ? evaluate_tokens(model, dataset, device)
                                             : evaluate_classes(model, dataset, batch, device);
  model.train(was_training);
  return e;
}

int64_t count_correct(const Tensor& logits, const Tensor& given) {
  const Tensor best = argmax(logits, -1).to(kCpu);
  const Tensor targets = given.dtype() == DType::i64 ? given : argmax(given, -1);  // mixed images
  const int64_t* a = best.data<int64_t>();
  const int64_t* b = targets.data<int64_t>();
  int64_t n = 0;
  for (int64_t i = 0; i < targets.numel(); ++i) n += a[i] == b[i];
  return n;
}

bool is_padded_text(const data::Dataset& d) {
  return d.vocabulary > 0 && d.inputs.dim() == 2 && d.targets.dim() == 1;
}

std::vector<int64_t> text_lengths(const Tensor& tokens) {
  const int64_t width = tokens.size(1);
  const int64_t* row = tokens.data<int64_t>();
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < tokens.size(0); ++i, row += width) {
    int64_t used = width;
    while (used > 1 && row[used - 1] == 0) --used;
    lengths.push_back(used);
  }
  return lengths;
}

Tensor without_padding(const Tensor& tokens) {
  const std::vector<int64_t> lengths = text_lengths(tokens);
  const int64_t used = (*std::max_element(lengths.begin(), lengths.end()) + 15) / 16 * 16;
  return tokens.slice(1, 0, std::min(tokens.size(1), used)).contiguous();
}

}  // namespace cutaway::train
