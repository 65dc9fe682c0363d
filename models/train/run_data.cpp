#include <cutaway/models/train/run_data.h>

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/datasets/text/labelled.h>
#include <cutaway/datasets/text/text_files.h>

namespace cutaway::train {
namespace {

// The tokenizer of the run folder, or the one that the options name, made from texts if need be.
data::Tokenizer make_tokenizer(const TrainConfig& c, const std::string& run_folder,
                               const std::vector<std::string>& texts) {
  const std::string stored = run_folder + "/tokenizer.json";
  std::error_code ignored;
  if (!run_folder.empty() && std::filesystem::is_regular_file(stored, ignored)) {
    return data::Tokenizer::load(stored);
  }
  if (c.tokenizer == "byte") return data::Tokenizer::bytes();
  if (c.tokenizer == "wordpiece") return data::Tokenizer::train_wordpiece(texts);
  if (c.tokenizer != "char") return data::Tokenizer::load(c.tokenizer);
  std::string all;
  for (const std::string& text : texts) all += text;
  return data::Tokenizer::characters(all);
}

RunData open_language(const TrainConfig& c, const std::string& run_folder) {
  const data::Corpus corpus = data::open_corpus(c.data);
  std::vector<std::string> texts;
  for (const auto& [name, text] : corpus.files) texts.push_back(text);
  RunData d;
  d.tokenizer = make_tokenizer(c, run_folder, texts);
  const data::CorpusTokens tokens = data::corpus_tokens(corpus, *d.tokenizer);
  const int64_t vocabulary = d.tokenizer->vocabulary();
  d.train = data::token_windows(c.data, tokens.train, c.context, vocabulary);
  d.test = data::token_windows(c.data, tokens.validation, c.context, vocabulary);
  d.characters_per_token = double(tokens.validation_characters) / double(tokens.validation.numel());
  return d;
}

data::Dataset encoded(const data::LabelledTexts& t, const data::Tokenizer& tokenizer,
                      int64_t context) {
  data::Dataset d;
  d.name = t.name;
  d.inputs = tokenizer.encode_batch(t.texts, {.max_length = context}).ids;
  d.targets = index_tensor(t.labels);
  d.classes = t.classes;
  d.vocabulary = tokenizer.vocabulary();
  return d;
}

RunData open_texts(const TrainConfig& c, const std::string& run_folder) {
  const data::LabelledTexts train = data::open_labelled(c.data, "train");
  RunData d;
  d.tokenizer = make_tokenizer(c, run_folder, train.texts);
  if (d.tokenizer->pad() != 0) {
    throw ValueError("train",
                     fmt::format("{} takes token 0 for padding; the tokenizer \"{}\" has another "
                                 "one there",
                                 c.model, c.tokenizer),
                     "--tokenizer wordpiece, or a tokenizer whose token 0 is [PAD]");
  }
  d.train = encoded(train, *d.tokenizer, c.context);
  d.test = encoded(data::open_labelled(c.data, "test"), *d.tokenizer, c.context);
  return d;
}

data::Dataset without_targets(data::Dataset d) {
  d.targets = zeros({d.size()}, {.dtype = DType::i64});
  d.classes.clear();
  return d;
}

data::Dataset nodes_as_examples(const zoo::NodeTask& graph, const std::vector<int64_t>& nodes) {
  data::Dataset d;
  d.name = graph.name;
  d.inputs = index_tensor(nodes);
  d.targets = index_select(graph.labels, 0, d.inputs);
  d.classes = graph.classes;
  d.vocabulary = graph.edges.nodes;
  return d;
}

RunData open_graph(const TrainConfig& c) {
  if (c.data != "miles") {
    std::string known;
    for (const auto& [name, about] : known_data(zoo::Kind::graph)) {
      known += fmt::format("\n    {:<14} {}", name, about);
    }
    throw ValueError("train", fmt::format("{} reads graphs; got the data \"{}\"; known are:{}",
                                          c.model, c.data, known));
  }
  RunData d;
  d.graph = std::make_shared<const zoo::NodeTask>(zoo::miles_task());
  d.train = nodes_as_examples(*d.graph, d.graph->told);
  d.test = nodes_as_examples(*d.graph, d.graph->asked);
  return d;
}

}  // namespace

RunData open_run_data(const TrainConfig& c, const std::string& run_folder) {
  const zoo::Kind kind = zoo::kind_of(c.model);
  if (kind == zoo::Kind::language) return open_language(c, run_folder);
  if (kind == zoo::Kind::text) return open_texts(c, run_folder);
  if (kind == zoo::Kind::graph) return open_graph(c);
  const data::OpenOptions size = data::parse_resize(c.resize);
  RunData d;
  d.train = data::open(c.data, "train", size);
  d.test = data::open(c.data, "test", size);
  if (kind == zoo::Kind::pictures) {
    d.train = without_targets(std::move(d.train));
    d.test = without_targets(std::move(d.test));
  }
  return d;
}

std::vector<std::pair<std::string, std::string>> known_data(zoo::Kind kind) {
  switch (kind) {
    case zoo::Kind::language:
      return {{"austen", "two novels of Jane Austen, 0.9 M characters; ships with Cutaway"},
              {"FILE.txt", "a text, plain or .gz; the last tenth is for testing"},
              {"FOLDER", "of such texts"}};
    case zoo::Kind::text:
      return data::known_labelled();
    case zoo::Kind::graph:
      return {{"miles",
               "128 cities of North America joined by roads, classes: which quarter; 20 are told, "
               "108 asked, ships with Cutaway"}};
    default:
      return data::known_datasets();
  }
}

zoo::Task task_of(const TrainConfig& c, const RunData& d) {
  if (zoo::is_language_model(c.model)) return language_task(c, d.tokenizer->vocabulary());
  zoo::Task task = task_of(d.train);
  if (d.graph) {
    task.input = {d.graph->features.size(1)};
    task.vocabulary = 0;
    task.graph = d.graph;
  }
  return task;
}

zoo::Task language_task(const TrainConfig& c, int64_t vocabulary) {
  return {.input = {c.context},
          .classes = 0,
          .vocabulary = vocabulary,
          .size = {.layers = c.layers, .heads = c.heads, .width = c.width, .dropout = c.dropout}};
}

}  // namespace cutaway::train
