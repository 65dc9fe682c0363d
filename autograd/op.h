#pragma once
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <cutaway/core/context.h>
#include <cutaway/core/error.h>
#include <cutaway/core/tensor.h>

namespace cutaway {

struct OpRecord;
struct Node;
class OnnxCall;

// Type an op computes in under autocast: its own, the low type, or f32.
enum class Compute : uint8_t { keep, low, f32 };

// One forward call, as the record's `forward` sees it: check everything, then ask for outputs, then
// stop if meta(), then run kernels.
class Call {
 public:
  const OpRecord& op;
  const Tensor* const* inputs;
  int num_inputs;
  const void* attr_data;
  Tensor* outputs;
  int num_outputs;
  uint32_t temporaries;        // bit i: input i is a temporary
  bool record;                 // a node will be made
  std::vector<Tensor> extras;  // see save()

  const Tensor& in(int i) const { return *inputs[i]; }
  bool has(int i) const { return i < num_inputs && inputs[i]->defined(); }
  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(attr_data);
  }
  // Allocates output i on the device of the first defined input.
  Tensor& out(int i, const Shape& sizes, DType dtype);
  Tensor& out(int i, const Shape& sizes, DType dtype, Device device);
  // Output i with sizes and type of input k, in k's own buffer where that can't be seen (donation).
  Tensor& out_like(int i, int k);
  // Output i shares storage of an input (shape ops).
  void view(int i, const Tensor& base, const Layout& layout);
  bool meta() const { return outputs[0].is_meta(); }
  // True if the buffer of input i may be overwritten by the result: temporary, unshared,
  // contiguous, not to be saved for backward.
  bool can_reuse(int i) const;
  // Keeps a value for backward that is neither input nor output (mask, statistics, indices). It is
  // a constant for second order: only `fast_backward` or integer/bool values may rely on it.
  void save(const Tensor& t) {
    if (record) extras.push_back(t);
  }
  // Checks that input i has one of the record's dtypes; raises DTypeError.
  void require_dtype(int i) const;
  void require_same_device() const;
};

// One backward call. Rules are written with public ops, so that they differentiate again.
class Backward {
 public:
  Node& node;
  const Tensor* upstreams;
  std::vector<Tensor> grads;  // result, one for each input

  // Upstream gradient of output i; zeros when that output was not used.
  const Tensor& upstream(int i = 0);
  bool has_upstream(int i = 0) const;
  bool needs(int i) const;   // is a gradient of input i wanted
  Tensor input(int i);       // saved input (record must name it in save_inputs)
  Tensor output(int i = 0);  // saved output (record must name it in save_outputs)
  Tensor extra(int i);       // i-th value given to Call::save
  int num_extras() const;
  const Shape& input_sizes(int i) const;  // only for inputs with needs(i)
  DType input_dtype(int i) const;
  int num_inputs() const;
  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(attr_data());
  }
  // Gives the gradient of input i. Sizes broadcast in forward are summed away by the engine.
  void set(int i, Tensor grad) { grads[i] = std::move(grad); }

  Backward(Node& n, const Tensor* g);

 private:
  const void* attr_data() const;
  std::vector<Tensor> zeros_;
};

// One case from which tests, documentation and benchmarks of an op are made. Inputs are f64
// (floating) or integer/bool; `call` runs the op on such inputs of any dtype the record names;
// `reference` is a plain f64 computation of the same values.
using OpFn = std::function<Tensors(const Tensors&)>;
struct Sample {
  std::string label;
  Tensors inputs;
  OpFn call;
  OpFn reference;
  bool grad = true;        // check first derivatives (never at kinks: choose inputs accordingly)
  bool grad_grad = true;   // and second ones
  bool all_dtypes = true;  // run in every dtype of the record, otherwise only as given
  bool strided = true;     // results must be the same for non-contiguous inputs
  double loosen = 1;       // factor on the tolerance, with the reason in `why`
  std::string why;
};
struct ErrorSample {
  std::string label;
  std::function<void()> call;
  std::string text;  // must occur in the message
};

// Collects samples; has its own generator, so that cases are the same in every run.
class SampleList {
 public:
  std::vector<Sample> samples;
  std::vector<ErrorSample> errors;

  // Values from N(0,1), or uniform in [lo, hi), f64, fixed by the order of calls.
  Tensor randn(const Shape& sizes);
  Tensor uniform(const Shape& sizes, double lo, double hi);
  Tensor integers(const Shape& sizes, int64_t lo, int64_t hi);  // i64, hi excluded
  Tensor bools(const Shape& sizes);
  // All different, at least 0.1 apart, shuffled: for max, sort, relu-like kinks (none within 0.05
  // of 0).
  Tensor distinct(const Shape& sizes);

  Sample& add(std::string label, Tensors inputs, OpFn call, OpFn reference);
  void error(std::string label, std::function<void()> call, std::string text);

 private:
  uint64_t offset_ = 0;
};

// Everything about an op, in one place. Made from it: the op call, tests, `cutaway ops`, doc pages.
struct OpRecord {
  const char* name;
  const char* signature;  // "softmax(x, dim) → y"
  const char* meaning;    // one sentence
  const char* formula;    // "y_i = exp(x_i) / Σ_j exp(x_j)"
  const char* shapes;     // "x [..., D]   y [..., D]"
  DTypeSet dtypes = kFloating;
  Compute compute = Compute::keep;
  const char* determinism = "deterministic";
  int outputs = 1;           // 0: the call says how many (split)
  uint32_t save_inputs = 0;  // bit i: backward reads input i
  uint32_t save_outputs = 0;
  // Products: input 0 is read only for the gradients of the others, input 1 only for that of input
  // 0; what no wanted gradient reads is not kept.
  bool cross = false;
  void (*forward)(Call&);
  const char* backward_text = "";  // formula of the derivative
  void (*backward)(Backward&) = nullptr;
  const char* no_gradient = nullptr;           // why there is none, when backward is null
  void (*fast_backward)(Backward&) = nullptr;  // same numbers in fewer passes, first order only
  void (*samples)(SampleList&) = nullptr;
  void (*onnx)(OnnxCall&) = nullptr;  // the same as nodes of ONNX; see autograd/onnx_rule.h
  const char* file = __builtin_FILE();
  int line = __builtin_LINE();
};

// Runs a record: autocast, forward, trace, node. `attrs` is copied into the node. `num_outputs` is
// for records without a fixed number of results.
void run_op(const OpRecord& op, const Tensor* const* inputs, int n, uint32_t temporaries,
            const void* attrs, uint32_t attr_bytes, Tensor* outputs, std::source_location site,
            int num_outputs = 0);

struct NoAttrs {};

// One output from any mix of inputs: run(kAdd, {a, b}), run(kSoftmax, {x}, SoftmaxAttrs{dim}).
template <class A = NoAttrs>
Tensor run(const OpRecord& op, std::initializer_list<TensorArg> in, const A& attrs = {}) {
  static_assert(std::is_trivially_copyable_v<A>);
  const Tensor* p[8];
  uint32_t temporaries = 0;
  int n = 0;
  for (const TensorArg& a : in) {
    temporaries |= uint32_t(a.temporary()) << n;
    p[n++] = &*a;
  }
  Tensor out;
  run_op(op, p, n, temporaries, &attrs, std::is_empty_v<A> ? 0 : sizeof(A), &out, in.begin()->site);
  return out;
}
// Several outputs, or inputs in a vector (cat, stack).
template <class A = NoAttrs>
Tensors run_many(const OpRecord& op, const Tensors& in, const A& attrs, std::source_location site,
                 int outputs = 0) {
  static_assert(std::is_trivially_copyable_v<A>);
  std::vector<const Tensor*> p(in.size());
  for (size_t i = 0; i < in.size(); ++i) p[i] = &in[i];
  Tensors out(outputs ? outputs : op.outputs);
  run_op(op, p.data(), int(in.size()), 0, &attrs, std::is_empty_v<A> ? 0 : sizeof(A), out.data(),
         site, int(out.size()));
  return out;
}

// All records in a fixed order, and one by name (null when unknown).
const std::vector<const OpRecord*>& op_records();
const OpRecord* find_op(const std::string& name);

}  // namespace cutaway
