#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <cutaway/models/haste/data.h>

namespace cutaway::haste {

// How tail labels become groups.
//   semantic  greedy up to kGreedyMost tail labels, two_stage above
//   greedy    a random label not yet in a group and its G − 1 nearest such labels by cosine,
//             exactly; O(L² · dim / G): 15 000 labels in a second, 10^6 in hours
//   two_stage spherical mini-batch k-means with L/(16 G) clusters, then greedy inside each; what
//             does not fill a group is packed by greedy over the leftovers of all clusters;
//             O(L² · dim / (16 G)) for one assignment, with large matrix products: minutes for 10^6
//   random    dealt at random
//   freq      in order of frequency
enum class Grouping : uint8_t { semantic, greedy, two_stage, random, freq };
inline constexpr int64_t kGreedyMost = 32768;
// Raises ValueError with the names there are.
Grouping grouping_from(const std::string& name);
const char* grouping_name(Grouping grouping);

struct GroupingOptions {
  Grouping method = Grouping::semantic;
  int64_t group = 16;        // G
  double head_ratio = 0.05;  // r; 0: no head
  int64_t dim = 128;         // of the embeddings
  uint64_t seed = 1;
  int64_t restarts = 5;  // of k-means; the one with the highest mean cosine is taken
  int64_t batches = 24;  // mini-batches of each
};

// The new order of the labels: head by frequency, the groups of the tail one after the other, then
// labels without a training sample.
struct LabelOrder {
  std::vector<int32_t> label;  // [L]: old number of new label i
  std::vector<int32_t> place;  // [L]: new number of old label l
  int64_t head = 0;            // labels of the dense head
  int64_t seen = 0;            // labels with a training sample: head and grouped tail
  int64_t group = 0;           // G: new labels head + g·G … are group g; the last may be shorter
  int64_t tail() const { return int64_t(label.size()) - head; }
  int64_t groups() const { return group ? (tail() + group - 1) / group : 0; }
};

// Size of the head of `labels` labels: max(1, ⌊L r⌋), rounded up to a multiple of G when above
// G, at most L; 0 when r is 0. ValueError for r outside [0, 1) or G < 1.
int64_t head_size(int64_t labels, double ratio, int64_t group);

// Embeddings of labels by their positives [labels.size(), dim], rows of length 1: the sum of the
// tf-idf vectors of the samples with the label, times a random ±1 matrix that the seed fixes (so
// that cosines are kept up to 1/√dim), scaled to length 1. A label without samples has zeros.
// O(entries · dim).
std::vector<float> label_embeddings(const XmcData& train, const std::vector<int32_t>& labels,
                                    int64_t dim, uint64_t seed);

// The groups of rows of e [count, dim] (length 1): a permutation of 0 … count − 1, groups of G one
// after the other. frequency [count] is used by `freq` only. The same for every thread count.
std::vector<int32_t> form_groups(const std::vector<float>& e, int64_t count,
                                 const std::vector<int64_t>& frequency,
                                 const GroupingOptions& options);

// Head, groups and labels never seen, as the options ask. ValueError for options out of range.
LabelOrder order_labels(const XmcData& train, const GroupingOptions& options);

// Labels renumbered: entry (i, l) becomes (i, place[l]).
Csr reorder_labels(const Csr& labels, const LabelOrder& order);

// How alike the labels of groups are: cosines of embeddings to the mean of their group.
struct Cohesion {
  double mean = 0;            // over labels
  double to_first = 0;        // mean cosine of the others to the first label of the group
  std::vector<double> group;  // mean of each group
};
// e [order.size(), dim] belongs to the old numbering; order lists groups of G.
Cohesion cohesion(const std::vector<float>& e, int64_t dim, const std::vector<int32_t>& order,
                  int64_t group);

}  // namespace cutaway::haste
