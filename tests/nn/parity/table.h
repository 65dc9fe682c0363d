#pragma once
#include <functional>
#include <string>
#include <vector>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/rng.h>
#include <cutaway/nn/nn.h>

// The table of layers and constructor arguments beside torch.nn's. docs/layers.md is written from
// it; parity_test.cpp asks that each promise holds.
namespace cutaway::parity {

// What a layer is and does: names and sizes of its tensors, results of a call in training and in
// eval mode, gradients and buffers after them. Two layers that differ nowhere have one fingerprint.
using Fingerprint = std::vector<std::string>;

// One argument of a layer.
struct Row {
  std::string argument;             // torch.nn's name
  std::string here;                 // how it is written here; empty: it is not there
  std::string reason;               // why not
  std::function<Fingerprint()> of;  // of a layer made with it; or
  std::function<bool()> holds;      // what shows that the other way of writing it works
};
// One layer.
struct Section {
  std::string layer;   // torch.nn's name
  std::string here;    // ours; empty: it is not there
  std::string reason;  // why not
  std::string family;  // layers that differ in their number of dimensions share a part of the page
  std::function<Fingerprint()> of;  // of the layer as the rows change it
  std::vector<Row> rows;
};
using Sections = std::vector<Section>;

Sections layers_of_images();     // convolution, padding, pooling, resizing
Sections layers_of_elements();   // activations, dropout, norms, linear maps
Sections layers_of_sequences();  // embeddings, recurrence, attention
Sections layers_of_losses();     // losses, distances, and what is not there

// Numbers in (−2, 2) without pattern, the same in every call.
inline Tensor numbers(const Shape& sizes, double shift = 0) {
  const Tensor i = arange(0, sizes.numel()).to(DType::f32);
  return reshape(sin(square(i) * 0.37 + i * 1.3 + 0.2) * 2.0 + shift, sizes);
}
inline Tensor ids(std::initializer_list<double> values, const Shape& sizes) {
  return tensor(values, sizes, {.dtype = DType::i64});
}

// Calls of a layer with one tensor of `sizes`.
inline auto on(const Shape& sizes, double shift = 0) {
  return [sizes, shift](auto& layer) { return Tensors{layer(numbers(sizes, shift))}; };
}

std::string described(const Tensor& t);
// Runs `call` in training and in eval mode; what it raises is part of the fingerprint.
Fingerprint observe(nn::Module& layer, const std::function<Tensors()>& call);

// A layer L with options O: `base` sets what rows need, `call` runs it.
template <class L, class O, class Call>
class Layer {
 public:
  Layer(const char* layer, const char* here, std::function<void(O&)> base, Call call)
      : base_(std::move(base)), call_(std::move(call)) {
    section_.layer = section_.family = layer;
    section_.here = here;
    section_.of = made([](O&) {});
  }
  Layer& family(const char* name) {
    section_.family = name;
    return *this;
  }
  template <class F>
  Layer& takes(const char* argument, const char* text, F change) {
    section_.rows.push_back({.argument = argument, .here = text, .of = made(change)});
    return *this;
  }
  Layer& by(const char* argument, const char* text, std::function<bool()> holds) {
    section_.rows.push_back({.argument = argument, .here = text, .holds = std::move(holds)});
    return *this;
  }
  Layer& lacks(const char* argument, const char* reason) {
    section_.rows.push_back({.argument = argument, .reason = reason});
    return *this;
  }
  operator Section() const { return section_; }

 private:
  template <class F>
  std::function<Fingerprint()> made(F change) const {
    return [base = base_, call = call_, change] {
      O options{};
      base(options);
      change(options);
      manual_seed(5);
      L layer(options);
      return observe(layer, [&] { return call(layer); });
    };
  }

  Section section_;
  std::function<void(O&)> base_;
  Call call_;
};

// LAYER(Conv2d, nn::ConvLayerOptions, on({2, 4, 6, 5}), o.in = 4, …): the layer of that name in
// both libraries; the rest makes it ready for the rows.
#define LAYER(NAME, OPTIONS, CALL, ...)     \
  Layer<nn::NAME, OPTIONS, decltype(CALL)>( \
      #NAME, "nn::" #NAME, [](OPTIONS& o) { __VA_ARGS__; }, CALL)
// TAKES("stride", stride = 2): torch's argument, and ours set to something that shows.
#define TAKES(ARGUMENT, ...) takes(ARGUMENT, "." #__VA_ARGS__, [](auto& o) { o.__VA_ARGS__; })
// BY("return_indices", expression): another way to the same; the expression must be true.
#define BY(ARGUMENT, TEXT, ...) by(ARGUMENT, TEXT, [] { return __VA_ARGS__; })

// A layer that is not there.
inline Section absent(const char* layer, const char* reason) {
  return {.layer = layer, .reason = reason, .family = layer};
}
// A layer that is another one's name or needs no options.
inline Section other(const char* layer, const char* here, std::function<Fingerprint()> of) {
  return {.layer = layer, .here = here, .family = layer, .of = [of = std::move(of)] {
            manual_seed(5);
            return of();
          }};
}
// The same with one argument that is a call here.
inline Section called(Section section, const char* argument, const char* text,
                      std::function<bool()> holds) {
  section.rows.push_back({.argument = argument, .here = text, .holds = std::move(holds)});
  return section;
}
template <class L>
Section plain(const char* layer, const char* here, const Shape& sizes) {
  return other(layer, here, [sizes] {
    L module;
    return observe(module, [&] { return Tensors{module(numbers(sizes))}; });
  });
}
#define PLAIN(NAME, ...) plain<nn::NAME>(#NAME, "nn::" #NAME, __VA_ARGS__)

}  // namespace cutaway::parity
