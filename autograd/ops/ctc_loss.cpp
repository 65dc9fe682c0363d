#include <fmt/format.h>
#include <algorithm>
#include <limits>

#include <cutaway/autograd/ops.h>
#include <cutaway/autograd/ops/margin_loss.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

void check_lengths(const char* which, const std::vector<int64_t>& lengths, int64_t batch,
                   int64_t largest) {
  if (int64_t(lengths.size()) != batch) {
    throw ValueError("ctc_loss", fmt::format("one {} length a sequence; got {} for a batch of {}",
                                             which, lengths.size(), batch));
  }
  for (const int64_t n : lengths) {
    if (n < 0 || n > largest) {
      throw ValueError("ctc_loss",
                       fmt::format("{} lengths must lie in [0,{}]; got {}", which, largest, n));
    }
  }
}

// Targets with blanks before, between and behind their classes, and what the recursion asks of it.
struct Spelling {
  Tensor classes;  // [N,2S+1], i64
  Tensor skips;    // [N,2S+1]: may place l be reached from l − 2
  Tensor ends;     // [N,2S+1]: may an alignment end here
};

// The class at place i of sequence n, read from both layouts of targets.
class Targets {
 public:
  Targets(const Tensor& targets, const std::vector<int64_t>& lengths, int64_t batch)
      : values_(targets.to_vector()) {
    const bool joined = targets.dim() == 1;
    int64_t total = 0;
    for (const int64_t n : lengths) {
      begins_.push_back(joined ? total : int64_t(begins_.size()) * targets.size(1));
      total += std::max<int64_t>(n, 0);
    }
    if (joined ? total != targets.numel() : targets.dim() != 2 || targets.size(0) != batch) {
      throw ShapeError("ctc_loss",
                       fmt::format("targets must be [N,S], or all {} classes in one row; got {}",
                                   total, to_string(targets.sizes())));
    }
  }
  int64_t at(int64_t n, int64_t i) const { return int64_t(values_[size_t(begins_[n] + i)]); }

 private:
  std::vector<double> values_;
  std::vector<int64_t> begins_;
};

Spelling spell(const Targets& targets, const std::vector<int64_t>& lengths, int64_t classes,
               int64_t blank) {
  const int64_t batch = int64_t(lengths.size());
  const int64_t longest = batch ? *std::max_element(lengths.begin(), lengths.end()) : 0;
  const int64_t places = 2 * longest + 1;
  std::vector<int64_t> spelled(size_t(batch * places), blank), skips(spelled.size()),
      ends(spelled.size());
  for (int64_t n = 0; n < batch; ++n) {
    int64_t* row = &spelled[size_t(n * places)];
    for (int64_t i = 0; i < lengths[n]; ++i) {
      const int64_t c = targets.at(n, i);
      if (c < 0 || c >= classes || c == blank) {
        throw IndexError("ctc_loss", fmt::format("targets must lie in [0,{}) and not be the blank "
                                                 "{}; got {}",
                                                 classes, blank, c));
      }
      row[2 * i + 1] = c;
      skips[size_t(n * places + 2 * i + 1)] = i > 0 && c != row[2 * i - 1];
    }
    ends[size_t(n * places + 2 * lengths[n])] = 1;
    if (lengths[n] > 0) ends[size_t(n * places + 2 * lengths[n] - 1)] = 1;
  }
  const auto table = [&](const std::vector<int64_t>& v) {
    return reshape(index_tensor(v), {batch, places});
  };
  return {table(spelled), gt(table(skips), 0), gt(table(ends), 0)};
}

// log of the probability of all alignments that end at their place: [N].
Tensor forward_sum(const Tensor& x, const Spelling& s, const std::vector<int64_t>& lengths) {
  const int64_t steps = x.size(0), batch = x.size(1), places = s.classes.size(1);
  const Device device = x.device();
  const Tensor index = broadcast_to(unsqueeze(s.classes, 0), {steps, batch, places}).to(device);
  const Tensor scores = gather(x, 2, index);  // [T,N,2S+1]
  const Tensor skips = s.skips.to(device), ends = s.ends.to(device);
  const Tensor place = arange(0, places);
  const Tensor lasts = reshape(index_tensor(lengths), {batch, 1}).to(device);
  const auto behind = [&](const Tensor& a, int64_t by) {
    return pad(slice(a, 1, 0, std::max<int64_t>(places - by, 0)), {std::min(by, places), 0},
               {.value = kNever});
  };
  // Before the first step everything is at an imagined place in front.
  const Tensor begins = lt(place, 2).to(device);
  Tensor a;
  for (int64_t t = 0; t < steps; ++t) {
    Tensor next;
    if (t == 0) {
      next = where(begins, scores[0], kNever);
    } else {
      const Tensor jumps = where(skips, behind(a, 2), kNever);
      next = logsumexp(stack({a, behind(a, 1), jumps}, 0), 0) + scores[t];
    }
    a = t == 0 ? next : where(gt(lasts, t), next, a);
  }
  // A sequence without steps spells the empty target only.
  const Tensor nothing = full({batch, places}, kNever, {x.dtype(), device});
  const Tensor empty_start = where(eq(place, 0).to(device), zeros_like(nothing), nothing);
  a = a.defined() ? where(gt(lasts, 0), a, empty_start) : empty_start;
  return logsumexp(where(ends, a, kNever), 1);
}

}  // namespace

Tensor ctc_loss(TensorArg log_probs, const Tensor& targets,
                const std::vector<int64_t>& input_lengths,
                const std::vector<int64_t>& target_lengths, CtcOptions o) {
  CallScope scope(log_probs.site);
  const bool single = log_probs->dim() == 2;
  if (!single && log_probs->dim() != 3) {
    throw ShapeError("ctc_loss",
                     "log_probs must be [T,N,C] or [T,C]; got " + to_string(log_probs->sizes()));
  }
  const Tensor x = single ? unsqueeze(*log_probs, 1) : *log_probs;
  const int64_t batch = x.size(1), classes = x.size(2);
  if (o.blank < 0 || o.blank >= classes) {
    throw ValueError("ctc_loss", fmt::format("blank must lie in [0,{}); got {}", classes, o.blank));
  }
  check_lengths("input", input_lengths, batch, x.size(0));
  const int64_t room = targets.dim() == 1 ? targets.numel() : targets.size(-1);
  check_lengths("target", target_lengths, batch, room);
  const Targets table(targets, target_lengths, batch);
  const Spelling s = spell(table, target_lengths, classes, o.blank);
  Tensor loss = -forward_sum(x, s, input_lengths);
  if (o.zero_infinity) loss = where(isinf(loss), 0.0, loss);
  if (o.reduction == Reduction::sum) return sum(loss);
  if (o.reduction == Reduction::none) return single ? squeeze(loss, 0) : loss;
  std::vector<double> counts;
  for (const int64_t n : target_lengths) counts.push_back(double(std::max<int64_t>(n, 1)));
  return mean(loss / tensor(std::span<const double>(counts), {x.dtype()}).to(x.device()));
}

}  // namespace cutaway
