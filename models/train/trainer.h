#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <cutaway/models/train/evaluate.h>

namespace cutaway::train {

// Everything needed to run a training again; config.json holds exactly this and the version.
struct TrainConfig {
  std::string model = "convnet";
  std::string data = "fashion-mnist";
  int64_t epochs = 4;
  int64_t batch = 128;
  std::string optimizer = "adamw";  // sgd, adam, adamw, rmsprop, adagrad, lion, muon, lbfgs
  double lr = 2e-3;
  double weight_decay = 0.01;
  double momentum = 0.9;            // sgd
  std::string schedule = "cosine";  // over the steps of the run; see make_schedule()
  double clip = 0;                  // total gradient norm; 0: no clipping
  uint64_t seed = 1;
  int64_t checkpoint_every = 200;  // steps
  int64_t log_every = 50;          // steps between rows of metrics.csv
  std::string device = "cpu";      // cpu, cuda, cuda:N or emu
  std::string dtype = "f32";       // f32; bf16, f16: under autocast
  std::string augment;             // of training images, as parse_augmentation() reads it
  std::string resize;              // of folders of pictures, as data::parse_resize() reads it
  double label_smoothing = 0;
  double ema = 0;          // decay of the average of weights that is tested and kept; 0: none
  bool decay_all = true;   // false: no weight decay for norms and biases
  int64_t accumulate = 1;  // parts in which a batch goes through the model
  // Of text: char, byte, wordpiece, or a file as data::Tokenizer::load reads it; tokens in a row.
  std::string tokenizer = "char";
  int64_t context = 128;
  // Of language models; sizes that are 0: those of the model's name.
  int64_t layers = 0, heads = 0, width = 0;
  double dropout = 0;
  std::string init;  // file of weights to start from, as start_from() reads it; empty: none
};

// A beginning that the model was given, and how it went on.
struct TextSample {
  std::string prompt, text;
};
// How well text is told. Perplexity is exp of the mean loss per token.
struct LanguageResult {
  double perplexity = 0, nats_per_character = 0;
  std::vector<TextSample> samples;
};

struct TrainOutcome {
  bool finished = false;  // false: stopped by Ctrl-C or a limit, checkpoint saved
  int64_t step = 0;
  Evaluation test;  // of language models: loss and accuracy per token, the rest is empty
  std::vector<std::string> classes;  // names, where the data has them
  std::optional<LanguageResult> language;
  double seconds = 0;  // of this process
  double waited = 0;   // share of the time of training steps in which they waited for data
};

struct TrainSettings {
  bool quiet = false;
  int64_t stop_after = -1;  // steps; saves and stops as Ctrl-C does
  bool record = true;       // replay steps (autograd/record.h) where that holds; same bits
  int data_threads = 1;     // that prepare batches; the same batches for any number
};

// Trains into a run folder: config.json, metrics.csv, TensorBoard events, checkpoint/,
// best.safetensors (the weights with the best test result at the end of an epoch: the highest
// accuracy, or of models of pictures the lowest loss), plots/ and report.html. With `resume` the
// folder's own config is used and the run goes on from its newest checkpoint: the final checkpoint
// has the same bytes as that of a run never stopped (same machine, same threads). Ctrl-C saves and
// stops after the current step.
TrainOutcome train(const TrainConfig& config, const std::string& folder, bool resume,
                   const TrainSettings& settings = {});

// config.json of a run folder. Raises IoError when it is damaged.
TrainConfig read_config(const std::string& folder);

}  // namespace cutaway::train
