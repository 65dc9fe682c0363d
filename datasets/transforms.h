#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <cutaway/datasets/draws.h>
#include <cutaway/datasets/example.h>

// Random changes of images [C,H,W] (f32, greys and colours from 0 to 1), for training. What is done
// to an example is a function of seed, epoch and the number of the example only. Each raises
// ValueError for options outside their range when it is made, ShapeError when it is given anything
// but an image.
namespace cutaway::data {

using Transform = std::function<Tensor(const Tensor& image, Draws& draws)>;
// Changes a whole batch, x [N,C,H,W].
using BatchTransform = std::function<void(Batch& batch, Draws& draws)>;

struct Augmentation {
  std::vector<Transform> images;  // in this order
  std::vector<BatchTransform> batches;
  bool empty() const { return images.empty() && batches.empty(); }
};

struct CropOptions {
  int64_t height = 0, width = 0;  // 0: those of the image
  int64_t padding = 4;            // on every side, before cropping
  double fill = 0;
};
// A part of the padded image at a random place.
Transform random_crop(CropOptions options = {});
struct FlipOptions {
  double p = 0.5;
  bool vertical = false;
};
// Left and right (or top and bottom) exchanged with probability p.
Transform random_flip(FlipOptions options = {});
struct AffineOptions {
  double degrees = 0;    // turned by −degrees … degrees
  double translate = 0;  // moved by up to this share of height and width
  double scale_low = 1, scale_high = 1;
  double shear = 0;  // degrees, along the rows
  double fill = 0;
};
// Turned, sheared, scaled and moved about the centre; bilinear between pixels.
Transform random_affine(AffineOptions options);
// random_affine with degrees alone.
Transform random_rotation(double degrees, double fill = 0);
struct ColorOptions {
  double brightness = 0, contrast = 0, saturation = 0;  // factors from 1 − v to 1 + v
  double hue = 0;                                       // turned by up to this share of the circle
};
// Brightness, contrast, saturation, hue in this order, cut to [0, 1]; the last two change images of
// three channels only.
Transform color_jitter(ColorOptions options);
// (x − mean_c) / std_c; one number for each channel, or one for all.
Transform normalize(std::vector<double> mean, std::vector<double> std);
struct EraseOptions {
  double p = 0.5;
  double area_low = 0.02, area_high = 0.33;  // share of the image
  double aspect = 0.3;                       // height to width from this to its inverse
  double fill = 0;
};
// A rectangle at a random place is filled with probability p (Zhong et al. 2017).
Transform random_erasing(EraseOptions options = {});
// A square of this side around a random pixel is filled; it may reach over the edge (DeVries &
// Taylor 2017).
Transform cutout(int64_t side, double fill = 0);

// x ← λ x + (1 − λ) x', y likewise, with x' the batch in a random order and λ ~ Beta(α, α) (Zhang
// et al. 2018). Class numbers become probabilities [N,classes].
BatchTransform mixup(int64_t classes, double alpha = 0.2);
// A rectangle of 1 − λ of the area comes from x', y is mixed by area (Yun et al. 2019).
BatchTransform cutmix(int64_t classes, double alpha = 1);
// One of these for each batch, all equally likely.
BatchTransform one_of(std::vector<BatchTransform> choices);

// From a list such as "crop,flip,rotate:10,mixup:0.2": names with their main number. mixup and
// cutmix together take turns at random. Raises ValueError naming what there is.
Augmentation parse_augmentation(const std::string& list, int64_t classes);
// Names that it knows, each with one line about it.
std::vector<std::pair<std::string, std::string>> known_augmentations();

}  // namespace cutaway::data
