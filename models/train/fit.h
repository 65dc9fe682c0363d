#pragma once
#include <string>

#include <cutaway/models/train/trainer.h>

namespace cutaway::train {

// Training of models of the zoo that do not classify single examples: those of pictures
// (autoencoder, vae, unet) and those of graphs (gcn, gat). Uses of TrainConfig: model, data,
// epochs, batch (pictures), lr, weight_decay, seed and device cpu; AdamW, for pictures with a
// cosine schedule.

// Has this model its own training?
bool has_own_training(const std::string& model);

struct FitOutcome {
  int64_t steps = 0;
  double seconds = 0;
  double train_loss = 0, test_loss = 0;          // of the last epoch; pictures
  double told_accuracy = 0, asked_accuracy = 0;  // of nodes; graphs
};
// Trains into a new run folder: config.json, metrics.csv, model.safetensors and, for pictures,
// plots/pictures.svg, inputs beside results. The data of graphs is "miles". Raises ValueError for
// data that do not suit the model.
FitOutcome fit(const TrainConfig& config, const std::string& folder, bool quiet = false);

}  // namespace cutaway::train
