#pragma once
#include <memory>
#include <source_location>
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway {

// What a user function keeps between its forward and backward.
class FunctionContext {
 public:
  // Keeps a tensor for backward. Inputs and outputs of the function keep their history; any other
  // floating value raises in a second backward instead of being silently constant.
  void save(const Tensor& t) { to_save.push_back(t); }
  // The i-th saved tensor, in backward; raises AutogradError when it was changed in place or freed.
  Tensor saved(size_t i) const;

  std::vector<Tensor> to_save;

 private:
  friend class FunctionNode;
  class FunctionNode* node_ = nullptr;
};

// An op with a derivative given by the user:
//
//   struct Cube : Function {
//     Tensors forward(FunctionContext& ctx, const Tensors& in) override {
//       ctx.save(in[0]);
//       return {in[0] * in[0] * in[0]};
//     }
//     Tensors backward(FunctionContext& ctx, const Tensors& up) override {
//       return {up[0] * 3.0 * ctx.saved(0) * ctx.saved(0)};
//     }
//   };
//   Tensor y = apply<Cube>({x})[0];
//
// forward runs without recording. backward gets one gradient for each output (zeros when unused)
// and returns one for each input (undefined: none); written in public ops it can be differentiated
// again.
struct Function {
  virtual ~Function() = default;
  virtual Tensors forward(FunctionContext& ctx, const Tensors& inputs) = 0;
  virtual Tensors backward(FunctionContext& ctx, const Tensors& upstream) = 0;
  virtual const char* name() const { return "custom"; }
};

Tensors apply(std::unique_ptr<Function> function, const Tensors& inputs,
              std::source_location at = std::source_location::current());
template <class F>
Tensors apply(const Tensors& inputs, std::source_location at = std::source_location::current()) {
  return apply(std::make_unique<F>(), inputs, at);
}

}  // namespace cutaway
