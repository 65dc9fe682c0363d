#include <tools/bench/explain.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>

#include <cutaway/core/parallel.h>
#include <cutaway/core/trace.h>

#include <tools/bench/floors.h>

namespace cutaway::tools {
namespace {

using trace::Span;

double matrices(const Shape& s) {
  return s.rank() < 2 ? 1 : double(s.numel()) / double(s[s.rank() - 1] * s[s.rank() - 2]);
}

// 2·m·n·k of all products. Transposes are not known: m·k, n·k and m·n give k.
double matmul_flops(const Span& s) {
  const double a = double(s.operands[0].numel()), b = double(s.operands[1].numel());
  const double y = double(s.result.numel());
  if (a == 0 || b == 0 || y == 0) return 0;
  const double of_a = matrices(s.operands[0]), of_b = matrices(s.operands[1]);
  const double of_y = matrices(s.result), most = std::max({of_a, of_b, of_y});
  const double k = std::sqrt(a / of_a * (b / of_b) / (y / of_y));
  return 2 * (y / of_y) * k * most;
}

// The gradients of a linear layer are one product each, as large as its own.
double linear_flops(const Span& s) {
  const Shape& x = s.operands[0];
  const Shape& weight = s.operands[1];
  const int64_t k = weight.rank() ? weight.back() : x.rank() ? x.back() : 0;
  const int products = s.backward ? int(x.rank() > 0) + int(weight.rank() > 0) : 1;
  return 2 * products * double(s.result.numel()) * double(k);
}

// Queries times keys, scores times values; five such products backward. Causal masks are not known.
double attention_flops(const Span& s) {
  const Shape& q = s.operands[0];
  const Shape& k = s.operands[1];
  if (q.rank() < 2 || k.rank() < 2) return 0;
  return (s.backward ? 10 : 4) * double(q.numel()) * double(k[k.rank() - 2]);
}

// Operations of an op whose floor they may set; 0 for those that only move data.
double flops_of(const Span& s) {
  const std::string name = s.name;
  if (name == "linear") return linear_flops(s);
  if (name == "scaled_dot_product_attention") return attention_flops(s);
  if (s.backward) return 0;  // its products are ops of their own
  if (name == "matmul") return matmul_flops(s);
  const auto per_pixel = [](const Shape& weight) {
    return weight.rank() ? double(weight.numel()) / double(weight[0]) : 0;
  };
  if (name == "conv") return 2 * double(s.result.numel()) * per_pixel(s.operands[1]);
  if (name == "conv_input_grad") {
    return 2 * double(s.operands[0].numel()) * per_pixel(s.operands[1]);
  }
  if (name == "conv_weight_grad") {
    // Operands: upstream and x, in this or the other order; channels out are those of the weight.
    for (const Shape& t : s.operands) {
      if (t.rank() > 1 && t[1] == s.result[0]) return 2 * double(t.numel()) * per_pixel(s.result);
    }
  }
  return 0;
}

struct Own {
  double ms = 0;       // without that of the spans inside it
  bool inner = false;  // whether there are any
};
std::vector<Own> own_times(std::vector<Span>& spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    if (a.thread != b.thread) return a.thread < b.thread;
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<Own> own;
  std::vector<size_t> open;
  for (size_t i = 0; i < spans.size(); ++i) {
    const Span& s = spans[i];
    while (!open.empty() &&
           (spans[open.back()].thread != s.thread || spans[open.back()].end <= s.begin)) {
      open.pop_back();
    }
    const double length = double(s.end - s.begin) * 1e-6;
    if (!open.empty()) {
      own[open.back()].ms -= length;
      own[open.back()].inner = true;
    }
    own.push_back({length});
    open.push_back(i);
  }
  return own;
}

}  // namespace

Explanation explain(const Workload& w, int threads) {
  set_num_threads(threads);
  constexpr int kSteps = 3;
  w.step();
  Explanation e;
  e.step_ms = time_steps(w, kSteps);
  trace::clear();
  trace::start();
  e.traced_ms = time_steps(w, kSteps);
  trace::stop();
  std::vector<Span> spans;
  trace::for_each_span([&](const Span& s) { spans.push_back(s); });
  trace::clear();
  const std::vector<Own> own = own_times(spans);
  std::map<std::string, ExplainRow> rows;
  for (size_t i = 0; i < spans.size(); ++i) {
    const Span& s = spans[i];
    ExplainRow& r = rows[s.name + std::string(s.backward ? " backward" : "")];
    // What is made of other ops has its bytes there.
    const double flops = flops_of(s);
    const double bytes = s.view || own[i].inner ? 0 : double(s.bytes_in + s.bytes_out);
    r.calls += 1;
    r.ms += own[i].ms;
    r.flops += flops;
    r.bytes += bytes;
    if (s.op) r.floor_ms += floor_ms(w.dtype, flops, bytes, threads);
  }
  for (auto& [name, r] : rows) {
    r.name = name;
    for (double* v : {&r.calls, &r.ms, &r.flops, &r.bytes, &r.floor_ms}) *v /= kSteps;
    r.call_ms = r.calls * call_cost_ms();
    e.rows.push_back(r);
  }
  std::sort(e.rows.begin(), e.rows.end(),
            [](const ExplainRow& a, const ExplainRow& b) { return a.ms > b.ms; });
  return e;
}

std::string explain_text(const Workload& w, const Explanation& e, int threads) {
  std::string out = fmt::format("{} {} on {} threads: {:.4g} ms a step, {:.4g} ms traced\n", w.name,
                                name_of(w.dtype), threads, e.step_ms, e.traced_ms);
  out += fmt::format("  {:<36} {:>8} {:>10} {:>6} {:>10} {:>6} {:>7} {:>9} {:>8}\n", "op", "calls",
                     "ms", "share", "floor ms", "floor", "calling", "GFLOP/s", "GB/s");
  double total = 0;
  for (const ExplainRow& r : e.rows) {
    total += r.ms;
    out += fmt::format(
        "  {:<36} {:>8.1f} {:>10.4f} {:>5.1f}% {:>10.4f} {:>5.0f}% {:>6.0f}% {:>9.1f} {:>8.1f}\n",
        r.name, r.calls, r.ms, 100 * r.ms / e.traced_ms, r.floor_ms, 100 * r.floor_ms / r.ms,
        100 * std::min(1.0, r.call_ms / r.ms), r.flops / r.ms / 1e6, r.bytes / r.ms / 1e6);
  }
  out += fmt::format("  {:<36} {:>8} {:>10.4f} {:>5.1f}%\n", "(between ops)", "",
                     e.traced_ms - total, 100 * (e.traced_ms - total) / e.traced_ms);
  out += fmt::format(
      "floor: time of the op's multiply-adds at the measured peak, or of its operands and results "
      "at\nthe copy rate of their size, whichever is longer. calling: calls at {:.0f} ns, the "
      "price "
      "of a\nrecorded op on one element. Ops inside an op count by themselves.\n",
      call_cost_ms() * 1e6);
  return out;
}

}  // namespace cutaway::tools
