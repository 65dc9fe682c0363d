#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <cutaway/models/haste/grouping.h>
#include <cutaway/models/haste/model.h>

namespace cutaway::haste {

// One group of the tail, for people.
struct GroupView {
  int64_t number = 0;              // g
  double cohesion = 0;             // mean cosine of its labels to their mean
  std::vector<int32_t> labels;     // old numbers, in the order of the group
  std::vector<int64_t> frequency;  // training samples of each
  struct Word {
    int32_t feature = 0;
    double gain = 0;     // m · ln(m / u): weight m in the mean of the group, u in that of the tail
    int64_t labels = 0;  // labels of the group with the word
  };
  std::vector<Word> words;  // those with the highest gain
};

// Groups of an order with the words that define them: those of the highest gain, where the means
// are over the normalised tf-idf sums of labels; so words that all labels share say little. Words
// of one label alone do not count in groups of three or more. `numbers` are groups; IndexError for
// one that is not there.
std::vector<GroupView> view_groups(const XmcData& train, const LabelOrder& order,
                                   const std::vector<int64_t>& numbers, int64_t words = 8);

// A feature of the encoder that a group reads: its slot's score and the words that raise it most.
struct SharedFeature {
  int32_t feature = 0;         // of the tail's features
  double score = 0;            // mean of |W| over the rows of the group
  std::vector<int32_t> words;  // by the feature's value for a text of this word alone
};
// The `count` features of highest score of each group in `numbers`, with `words` words each.
// ValueError unless the model has a group-shared tail; IndexError for groups that are not there.
std::vector<std::vector<SharedFeature>> shared_features(Model& model, int64_t words_known,
                                                        const std::vector<int64_t>& numbers,
                                                        int64_t count = 6, int64_t words = 3);

// Cohesion of the groups of an order, by the embeddings that the options give.
Cohesion order_cohesion(const XmcData& train, const LabelOrder& order,
                        const GroupingOptions& options);

}  // namespace cutaway::haste
