#pragma once
#include <cstdint>
#include <string>

#include <cutaway/models/haste/grouping.h>
#include <cutaway/models/haste/metrics.h>
#include <cutaway/models/haste/sets.h>

namespace cutaway::haste {

// Everything that makes a run; config.json of its folder holds exactly this.
struct RunOptions {
  // Data: what open_set() takes; a file of test samples; pairs "row label" that evaluation ignores.
  std::string data = "synth", test, filter;
  std::string split = "source";                               // debian-*: source or name
  int64_t limit = 0;                                          // debian-*: records, 0: all
  int64_t samples = 20000, labels = 8192, vocabulary = 8192;  // synth; its test part is a fifth
  int64_t min_positives = 2, min_words = 3;                   // of labels and words that are kept
  // Encoder: bag (tf-idf embedding bag, ReLU, residual linear) or transformer (over the words of
  // the largest weights).
  std::string encoder = "bag";
  int64_t hidden = 256, blocks = 2, heads = 4, words = 32;  // blocks, heads, words: transformer
  double embed_scale = 1;                                   // standard deviation of the embedding
  std::string features = "split";                           // what head and tail read of h
  double dropout = 0.1, head_dropout = 0.1;                 // of the tail's and the head's features
  // Output layers.
  std::string layer = "haste";  // haste ffi dense block bottleneck
  double head_ratio = 0.05;     // 0: no head
  int64_t group = 16, fan_in = 32;
  std::string grouping = "semantic";  // semantic two-stage random freq
  bool index_replace = false;         // indices of a group drawn with replacement
  std::string dtype = "fp32", bias_init = "prior", loss = "bce";
  int64_t chunk = 2048;  // labels whose logits exist at a time
  // Rewiring.
  std::string rewire_mode = "fraction";  // fraction threshold none
  std::string rewire_score = "mean", rewire_init = "zero";
  int64_t rewire_interval = 200;
  double rewire_fraction = 0.25;
  bool keep_momentum = false;
  // Auxiliary meta-labels of the Spartex baseline; weight 0: none.
  double aux_weight = 0;
  int64_t aux_groups = 0;  // 0: one for 16 labels
  // Optimisers.
  int64_t epochs = 15, batch = 256, warmup = 100, patience = 25;
  std::string best_by = "P@1";  // measure of the best epoch: P@1 P@3 P@5 PSP@1 PSP@3 PSP@5
  double lr_out = 0.05, momentum = 0.9, weight_decay = 1e-4;
  double lr_encoder = 1e-3, encoder_decay = 0.01;
  uint64_t seed = 1;
  double psp_a = 0.55, psp_b = 1.5;  // of the propensities in PSP@k
  int64_t log_every = 20;            // steps between loss values; others skip the logarithms
  int64_t checkpoint_every = 0;      // steps; 0: after every epoch
};

// config.json and back. Raise IoError.
void save_options(const RunOptions& options, const std::string& path);
RunOptions load_options(const std::string& path);

// Raises ValueError for options that do not fit together, naming the option and how to mend it.
void check_options(const RunOptions& options);

// Columns of h: what the tail and the head read (section 3, head/tail split).
struct Branches {
  int64_t tail_begin = 0, tail_width = 0, head_begin = 0, head_width = 0;
};
Branches branches_of(const RunOptions& options);
// The set that the options name; the generator has the seed of the run.
SetOptions set_of(const RunOptions& options);
// How labels are put in order; the dense layer has no head.
GroupingOptions grouping_of(const RunOptions& options);
EvaluateOptions metrics_of(const RunOptions& options);

}  // namespace cutaway::haste
