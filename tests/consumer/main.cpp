// Fits y = 2x − 1 with the installed library, and catches one of its errors.
#include <cutaway/cutaway.h>

#include <cmath>
#include <cstdio>

using namespace cutaway;

int main() {
  const Tensor x = linspace(-1, 1, 64).reshape({64, 1}), y = x * 2.0 - 1.0;
  nn::Linear model({.in = 1, .out = 1});
  optim::Adam optimizer(model.parameters(), {.lr = 0.1});
  double loss = 0;
  for (int step = 0; step < 300; ++step) {
    const Tensor l = mse_loss(model(x), y);
    l.backward();
    optimizer.step_and_zero();
    loss = l.item();
  }
  bool caught = false;
  try {
    add(ones({2}), ones({3}));
  } catch (const ShapeError&) {
    caught = true;
  }
  std::printf("loss %.2e, %s\n", loss, caught ? "error caught" : "no error");
  return loss < 1e-3 && caught ? 0 : 1;
}
