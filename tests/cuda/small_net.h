#pragma once
#include <cutaway/cutaway.h>

namespace cutaway::test {

// A convolutional network with everything that training needs: library calls (convolution,
// products), statistics that are updated, dropout. x [n, 1, 8, 8] to [n, 5].
struct SmallNet : nn::Module {
  nn::Conv2d conv{{.in = 1, .out = 4, .kernel = 3, .padding = 1}};
  nn::BatchNorm2d norm{{.num_features = 4}};
  nn::Dropout dropout{{.p = 0.25}};
  nn::Linear head{{.in = 4 * 4 * 4, .out = 5}};

  SmallNet() {
    add("conv", conv);
    add("norm", norm);
    add("dropout", dropout);
    add("head", head);
  }
  Tensor forward(const Tensor& x) override {
    return head(dropout(max_pool2d(relu(norm(conv(x))), 2).flatten(1)));
  }
};

}  // namespace cutaway::test
