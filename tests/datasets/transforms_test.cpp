#include <cutaway/datasets/transforms.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::data {
namespace {

using Values = std::vector<double>;

// Draws for example `i`.
Draws draws(uint64_t i) { return Draws(1, 2, i); }
Tensor image(int64_t c, int64_t h, int64_t w) {
  return reshape(arange(0, c * h * w) / double(c * h * w), {c, h, w});
}

TEST(Draws, numbers_are_uniform_and_a_function_of_their_place) {
  Draws a = draws(5), b = draws(5), c = draws(6);
  double mean = 0;
  for (int i = 0; i < 4000; ++i) {
    const double u = a.uniform();
    ASSERT_TRUE(u >= 0 && u < 1);
    ASSERT_EQ(u, b.uniform());
    ASSERT_NE(u, c.uniform());
    mean += u / 4000;
  }
  EXPECT_NEAR(mean, 0.5, 5 / std::sqrt(12.0 * 4000));
  std::set<int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(a.below(3));
  EXPECT_EQ(seen, (std::set<int64_t>{0, 1, 2}));
  EXPECT_EQ(a.below(0), 0);
  for (const double alpha : {0.2, 1.0, 5.0}) {
    double sum = 0, squares = 0;
    for (int i = 0; i < 4000; ++i) {
      const double x = a.beta(alpha, alpha);
      sum += x / 4000, squares += (x - 0.5) * (x - 0.5) / 4000;
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum, 0.5, 5 * std::sqrt(variance / 4000));
    EXPECT_NEAR(squares, variance, variance * 0.1) << alpha;
  }
}

TEST(Transforms, crop_moves_the_image) {
  const Tensor in = image(2, 4, 5) + 1.0;
  const Transform crop = random_crop({.padding = 1, .fill = -1});
  std::set<Values> results;
  for (uint64_t i = 0; i < 200; ++i) {
    Draws d = draws(i);
    const Tensor out = crop(in, d);
    ASSERT_EQ(out.sizes(), in.sizes());
    results.insert(out.to_vector());
    // What is no padding stands in its old neighbourhood.
    const Values v = out.to_vector(), all = in.to_vector();
    for (const double x : v) {
      ASSERT_TRUE(x == -1 || std::find(all.begin(), all.end(), x) != all.end());
    }
  }
  EXPECT_EQ(results.size(), 9u);
  EXPECT_EQ(results.count(in.to_vector()), 1u);
  Draws d = draws(0);
  EXPECT_EQ(random_crop({.height = 2, .width = 3, .padding = 0})(in, d).sizes(), (Shape{2, 2, 3}));
  EXPECT_THROW(random_crop({.height = 9, .padding = 1})(in, d), ShapeError);
  EXPECT_THROW(random_crop({.padding = -1}), ValueError);
}

TEST(Transforms, flips) {
  const Tensor in = image(2, 3, 4);
  Draws d = draws(0);
  EXPECT_EQ(random_flip({.p = 1})(in, d).to_vector(), flip(in, {2}).to_vector());
  EXPECT_EQ(random_flip({.p = 1, .vertical = true})(in, d).to_vector(), flip(in, {1}).to_vector());
  EXPECT_EQ(random_flip({.p = 0})(in, d).to_vector(), in.to_vector());
  EXPECT_THROW(random_flip({.p = 1.5}), ValueError);
}

TEST(Transforms, affine_maps) {
  const Tensor in = image(1, 5, 5);
  Draws d = draws(0);
  EXPECT_EQ(random_affine({})(in, d).to_vector(), in.to_vector());
  const Values twice = random_affine({.scale_low = 2, .scale_high = 2})(in, d).to_vector();
  EXPECT_NEAR(twice[12], in.to_vector()[12], 1e-6);                             // the centre
  EXPECT_NEAR(twice[13], (in.to_vector()[12] + in.to_vector()[13]) / 2, 1e-6);  // half a pixel
  EXPECT_NEAR(twice[17], (in.to_vector()[12] + in.to_vector()[17]) / 2, 1e-6);
  // A turn keeps the distance to the centre: of one bright pixel the weight stays.
  Tensor dot = zeros({1, 9, 9});
  dot.data<float>()[4 * 9 + 6] = 1;
  const Values turned = random_rotation(180)(dot, d).to_vector();
  double mass = 0, y = 0, x = 0;
  for (int i = 0; i < 81; ++i)
    mass += turned[size_t(i)], y += turned[size_t(i)] * (i / 9 - 4),
        x += turned[size_t(i)] * (i % 9 - 4);
  EXPECT_NEAR(mass, 1, 0.35);
  EXPECT_NEAR(std::hypot(x / mass, y / mass), 2, 0.2);
  EXPECT_THROW(random_affine({.scale_low = 0}), ValueError);
  EXPECT_THROW(random_affine({.shear = 90}), ValueError);
  EXPECT_THROW(random_rotation(-1), ValueError);
}

TEST(Transforms, colours_stay_colours) {
  const Tensor in = image(3, 2, 2);
  Draws d = draws(1);
  const Values same = color_jitter({})(in, d).to_vector();
  for (size_t i = 0; i < same.size(); ++i) EXPECT_NEAR(same[i], in.to_vector()[i], 1e-6);
  bool changed = false;
  for (uint64_t i = 0; i < 20; ++i) {
    Draws e = draws(i);
    const Tensor out =
        color_jitter({.brightness = 0.5, .contrast = 0.5, .saturation = 0.5, .hue = 0.5})(in, e);
    for (const double v : out.to_vector()) ASSERT_TRUE(v >= 0 && v <= 1) << v;
    changed = changed || out.to_vector() != in.to_vector();
  }
  EXPECT_TRUE(changed);
  EXPECT_THROW(color_jitter({.hue = 0.6}), ValueError);
  EXPECT_THROW(color_jitter({.contrast = 2}), ValueError);
  const Tensor n = normalize({0, 0.5, 1}, {1, 2, 4})(full({3, 1, 1}, 1.0), d);
  EXPECT_EQ(n.to_vector(), (Values{1, 0.25, 0}));
  EXPECT_THROW(normalize({0, 1}, {1, 1})(in, d), ShapeError);
  EXPECT_THROW(normalize({0}, {0}), ValueError);
}

TEST(Transforms, erased_parts) {
  const Tensor in = full({2, 10, 10}, 1.0);
  for (uint64_t i = 0; i < 50; ++i) {
    Draws d = draws(i);
    const Values v = random_erasing({.p = 1, .area_low = 0.1, .area_high = 0.2})(in, d).to_vector();
    const auto gone = std::count(v.begin(), v.begin() + 100, 0.0);
    EXPECT_TRUE(gone >= 6 && gone <= 28) << gone;
    EXPECT_TRUE(std::equal(v.begin(), v.begin() + 100, v.begin() + 100));
    const Values c = cutout(4)(in, d).to_vector();
    const auto cut = std::count(c.begin(), c.begin() + 100, 0.0);
    EXPECT_TRUE(cut >= 4 && cut <= 16) << cut;
  }
  EXPECT_THROW(cutout(0), ValueError);
  EXPECT_THROW(random_erasing({.area_low = 0}), ValueError);
  Draws d = draws(0);
  EXPECT_THROW(cutout(2)(zeros({4, 4}), d), ShapeError);
}

Batch batch_of(int64_t n) {
  Tensor y = empty({n}, {.dtype = DType::i64});
  Tensor x = empty({n, 1, 4, 4});
  for (int64_t i = 0; i < n; ++i) {
    y.data<int64_t>()[i] = i % 3;
    std::fill_n(x.data<float>() + i * 16, 16, float(i % 3));
  }
  return {x, y};
}

TEST(Transforms, mixing_keeps_inputs_and_targets_together) {
  for (const BatchTransform& mix : {mixup(3, 1), cutmix(3), one_of({mixup(3), cutmix(3)})}) {
    for (uint64_t i = 0; i < 20; ++i) {
      Batch b = batch_of(7);
      Draws d = draws(i);
      mix(b, d);
      ASSERT_EQ(b.y.sizes(), (Shape{7, 3}));
      for (int64_t r = 0; r < 7; ++r) {
        const float* p = b.y.data<float>() + r * 3;
        EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-6);
        // An image of class k is k everywhere: its mean is that of its classes.
        double mean = 0;
        for (int64_t k = 0; k < 16; ++k) mean += b.x.data<float>()[r * 16 + k] / 16;
        EXPECT_NEAR(mean, p[1] + 2 * p[2], 1e-5);
      }
    }
  }
  Batch b = batch_of(4);
  Draws d = draws(0);
  EXPECT_THROW(mixup(2)(b, d), IndexError);
  EXPECT_THROW(mixup(0), ValueError);
  EXPECT_THROW(cutmix(3, 0), ValueError);
}

TEST(Transforms, lists_by_name) {
  const Augmentation a = parse_augmentation("crop:2,flip,mixup,cutmix:0.5", 10);
  EXPECT_EQ(a.images.size(), 2u);
  EXPECT_EQ(a.batches.size(), 1u);
  EXPECT_TRUE(parse_augmentation("", 10).empty());
  for (const auto& [name, about] : known_augmentations()) {
    EXPECT_FALSE(parse_augmentation(name, 10).empty()) << name;
  }
  for (const char* bad :
       {"crops", "crop:", "crop:x", "crop:1.5", "flip:2", "crop:nan", ",", "x,"}) {
    EXPECT_THROW(parse_augmentation(bad, 10), ValueError) << bad;
  }
}

}  // namespace
}  // namespace cutaway::data
