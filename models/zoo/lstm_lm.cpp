#include <cutaway/models/zoo/lstm_lm.h>

#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::zoo {
namespace {

nn::RecurrentOptions recurrent(const LstmLmOptions& o) {
  return {.input_size = o.width,
          .hidden_size = o.width,
          .num_layers = o.layers,
          .batch_first = true,
          .dropout = o.layers > 1 ? o.dropout : 0};
}

}  // namespace

LstmLm::LstmLm(const LstmLmOptions& o)
    : encoder({.num_embeddings = o.vocabulary, .embedding_dim = o.width}),
      rnn(recurrent(o)),
      drop({.p = o.dropout}),
      decoder({.in = o.width, .out = o.vocabulary}) {
  nn::init::uniform_(encoder.weight, -0.1, 0.1);
  nn::init::zeros_(decoder.bias);
  add("encoder", encoder);
  add("rnn", rnn);
  add("drop", drop);
  add("decoder", decoder);
  decoder.weight = encoder.weight;
}

Tensor LstmLm::forward(const Tensor& tokens) {
  if (tokens.dim() != 2) {
    throw ShapeError("LstmLm",
                     fmt::format("tokens must be [B,T]; got {}", to_string(tokens.sizes())));
  }
  return decoder(drop(rnn(drop(encoder(tokens)), nn::RecurrentStart{}).output));
}

// `memory` holds the states h and c after all tokens but the last.
Tensor LstmLm::next_scores(const Tensor& tokens, Tensors& memory) {
  const bool later = !memory.empty();
  const Tensor fresh = later ? slice(tokens, 1, tokens.size(1) - 1) : tokens;
  nn::RecurrentStart start;
  if (later) start = {.h0 = memory[0], .c0 = memory[1]};
  const nn::RecurrentResult r = rnn(encoder(fresh), start);
  memory = {r.h_n, r.c_n};
  return decoder(select(r.output, 1, -1));
}

}  // namespace cutaway::zoo
