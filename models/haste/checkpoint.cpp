#include <cutaway/models/haste/checkpoint.h>

#include <fmt/format.h>
#include <charconv>

#include <cutaway/core/error.h>
#include <cutaway/core/io/safetensors.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway::haste {
namespace {

Tensor as_tensor(const std::vector<int32_t>& values) {
  Tensor t = empty({int64_t(values.size())}, {.dtype = DType::i32});
  std::copy(values.begin(), values.end(), t.data<int32_t>());
  return t;
}

std::string text_of(const io::TensorFile& file, const std::string& path, const char* name) {
  const auto found = file.metadata.find(name);
  if (found == file.metadata.end()) {
    throw IoError("checkpoint", fmt::format("{}: \"{}\" is missing", path, name));
  }
  return found->second;
}

template <class T>
T number_of(const io::TensorFile& file, const std::string& path, const char* name) {
  const std::string text = text_of(file, path, name);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw IoError("checkpoint", fmt::format("{}: \"{}\" is no number: {}", path, name, text));
  }
  return value;
}

void put_order(io::TensorFile& file, const LabelOrder& order) {
  file.tensors.emplace_back("labels.order", as_tensor(order.label));
  file.metadata["head"] = fmt::format("{}", order.head);
  file.metadata["seen"] = fmt::format("{}", order.seen);
  file.metadata["group"] = fmt::format("{}", order.group);
}

LabelOrder get_order(const io::TensorFile& file, const std::string& path) {
  const Tensor& t = file.at("labels.order");
  const int64_t labels = t.numel();
  LabelOrder order;
  order.head = number_of<int64_t>(file, path, "head");
  order.seen = number_of<int64_t>(file, path, "seen");
  order.group = number_of<int64_t>(file, path, "group");
  if (t.dtype() != DType::i32 || order.head < 0 || order.head > labels || order.group < 0) {
    throw IoError("checkpoint", path + ": the order of labels is damaged");
  }
  order.label.assign(t.data<int32_t>(), t.data<int32_t>() + labels);
  order.place.assign(size_t(labels), -1);
  for (int64_t i = 0; i < labels; ++i) {
    const int64_t label = order.label[size_t(i)];
    if (label < 0 || label >= labels || order.place[size_t(label)] >= 0) {
      throw IoError("checkpoint",
                    fmt::format("{}: the order of labels is no permutation at place {}", path, i));
    }
    order.place[size_t(label)] = int32_t(i);
  }
  return order;
}

nn::NamedTensors as_named(const io::TensorFile& file) {
  nn::NamedTensors list;
  for (const auto& [name, value] : file.tensors) {
    if (!name.starts_with("labels.")) list.push_back({name, value});
  }
  return list;
}

}  // namespace

void check_order(const std::string& path, const LabelOrder& saved, const LabelOrder& wanted) {
  if (saved.label == wanted.label && saved.head == wanted.head) return;
  size_t at = 0;
  while (at < saved.label.size() && at < wanted.label.size() &&
         saved.label[at] == wanted.label[at]) {
    ++at;
  }
  throw ValueError(
      "checkpoint",
      fmt::format("{} has another order of labels: {} labels, {} in the head, first difference at "
                  "place {}; the run has {} and {}",
                  path, saved.label.size(), saved.head, at, wanted.label.size(), wanted.head),
      "use the --data, --grouping, --head-ratio, --group and --seed it was made with");
}

void check_fits(const Weights& w, const XmcSet& set) {
  const int64_t words = set.test.num_features(), labels = set.test.num_labels();
  if (words == w.info.words && labels == int64_t(w.order.label.size())) return;
  throw ValueError("xmc",
                   fmt::format("{} has {} features and {} labels; the weights are for {} "
                               "and {}",
                               set.name, words, labels, w.info.words, w.order.label.size()),
                   "evaluate on the data of the run");
}

void save_training(const std::string& path, const Model& model, const LabelOrder& order,
                   const Progress& p) {
  io::TensorFile file;
  for (const nn::Named& t : model.training_state()) file.tensors.emplace_back(t.name, t.value);
  put_order(file, order);
  file.metadata["format"] = "1";
  file.metadata["random"] = fmt::format("{}", model.random().offset);
  const auto put = [&](const char* name, auto value) {
    file.metadata[name] = fmt::format("{}", value);
  };
  put("step", p.step), put("epoch", p.epoch), put("batch", p.batch);
  put("loss_sum", p.loss_sum), put("loss_count", p.loss_count), put("rewired", p.rewired);
  put("best", p.best), put("best_p5", p.best_p5), put("best_epoch", p.best_epoch);
  put("batch_rows", p.batch_rows);
  io::save_safetensors(path, file);
}

Progress load_training(const std::string& path, Model& model, const LabelOrder& order) {
  const io::TensorFile file = io::load_safetensors(path);
  if (text_of(file, path, "format") != "1") {
    throw IoError("checkpoint", path + ": was written by a newer version");
  }
  check_order(path, get_order(file, path), order);
  const auto whole = [&](const char* name) { return number_of<int64_t>(file, path, name); };
  const Progress p{.step = whole("step"),
                   .epoch = whole("epoch"),
                   .batch = whole("batch"),
                   .loss_sum = number_of<double>(file, path, "loss_sum"),
                   .loss_count = whole("loss_count"),
                   .rewired = whole("rewired"),
                   .best = number_of<double>(file, path, "best"),
                   .best_p5 = number_of<double>(file, path, "best_p5"),
                   .best_epoch = whole("best_epoch"),
                   .batch_rows = whole("batch_rows")};
  const auto offset = number_of<uint64_t>(file, path, "random");
  model.load(as_named(file), true);
  model.random().offset = offset;
  return p;
}

void save_weights(const std::string& path, const Model& model, const LabelOrder& order,
                  const WeightsInfo& info) {
  io::TensorFile file;
  for (const nn::Named& t : model.tensors()) file.tensors.emplace_back(t.name, t.value);
  put_order(file, order);
  file.metadata["format"] = "1";
  file.tensors.emplace_back("labels.frequency", index_tensor(info.frequency));
  file.metadata["words"] = fmt::format("{}", info.words);
  file.metadata["samples"] = fmt::format("{}", info.samples);
  file.metadata["epoch"] = fmt::format("{}", info.epoch);
  io::save_safetensors(path, file);
}

Weights load_weights(const std::string& path) {
  const io::TensorFile file = io::load_safetensors(path);
  if (text_of(file, path, "format") != "1") {
    throw IoError("checkpoint", path + ": was written by a newer version");
  }
  Weights w{.tensors = as_named(file), .order = get_order(file, path)};
  const auto labels = int64_t(w.order.label.size());
  const Tensor& n = file.at("labels.frequency");
  if (n.dtype() != DType::i64 || n.numel() != labels) {
    throw IoError("checkpoint", path + ": the frequencies of labels are damaged");
  }
  w.info.epoch = number_of<int64_t>(file, path, "epoch");
  w.info.words = number_of<int64_t>(file, path, "words");
  w.info.samples = number_of<int64_t>(file, path, "samples");
  w.info.frequency.assign(n.data<int64_t>(), n.data<int64_t>() + labels);
  return w;
}

std::unique_ptr<Model> model_of(const RunOptions& options, const Weights& w) {
  const auto labels = int64_t(w.order.label.size());
  auto model = std::make_unique<Model>(
      options, ModelSizes{.words = w.info.words,
                          .labels = labels,
                          .head = w.order.head,
                          .prior = std::vector<double>(size_t(labels), 0.5)});
  model->load(w.tensors, false);
  return model;
}

}  // namespace cutaway::haste
