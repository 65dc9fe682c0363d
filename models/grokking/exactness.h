#pragma once
#include <string>

namespace cutaway::grokking {

// Checks that need no training (statement 1 of the README). Each returns what is compared with its
// bound.

// Worst relative difference between gradients of a loss and finite differences, in f64: symmetric
// KL, triangle, transitivity, soft associativity, nuclear norm and spectral entropy together.
double worst_gradient_error();
// Largest violation of commutativity and associativity, over the full domain, of logits read off a
// closed helix x ↦ (e^{2πi q x / p})_q: x + y and x − y, and x y in the order of discrete
// logarithms.
double helix_violation(int64_t p);
// Instances of commutativity and associativity of the six modular tasks, over the full domain,
// whose two inputs have different true answers.
int64_t unequal_answers(int64_t p);

}  // namespace cutaway::grokking
