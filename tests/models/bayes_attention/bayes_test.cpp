#include <gtest/gtest.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/models/bayes_attention/atlas.h>
#include <cutaway/models/bayes_attention/converse.h>
#include <cutaway/models/bayes_attention/diagnose.h>
#include <cutaway/models/bayes_attention/ice.h>

namespace cutaway::bayes {
namespace {

constexpr Opts kF64{.dtype = DType::f64};

double gap(const Tensor& a, const Tensor& b) { return max(abs(a.to(DType::f64) - b)).item(); }

TEST(BayesHeads, attention_is_bayes_rule) {
  for (const char* family : {"gauss", "bern", "pois", "cat"}) {
    const Codebook c = draw_codebook(Family::named(family, 2), {.keys = 7, .seed = 3});
    const Tensor t = draw_statistics(c, 50, 16, 3).t, p = direct_bayes(c, t, 16);
    EXPECT_LT(gap(posterior(exact_head(c, 16), t), p), 1e-12) << family;
    EXPECT_LT(gap(posterior(plain_head(c, 16, -1e4), t), p), 1e-12) << family;
    EXPECT_LT(gap(posterior(folded_head(plain_head(c, 16)), t), p), 1e-12) << family;
    EXPECT_LT(gap(posterior(exact_head(c, 16, DType::f32, 1e4), t), p), 1e-5) << family;
  }
}

TEST(BayesHeads, heads_joined_by_lse_are_one_head) {
  const Codebook c = draw_codebook(Family::named("gauss", 2), {.keys = 12, .seed = 5});
  const Tensor t = draw_statistics(c, 40, 4, 5).t;
  // For a quadratic potential the atlas is exact: joining is all that can go wrong.
  const Grid grid = make_grid(c, Cells::arc, 9);
  EXPECT_LT(gap(atlas_posterior(taylor_atlas(c, grid, 4), t), direct_bayes(c, t, 4)), 1e-12);
}

TEST(BayesHeads, codebooks_outside_of_the_domain_are_refused) {
  const auto book = [](const char* family, std::initializer_list<double> mu,
                       std::initializer_list<double> prior) {
    return make_codebook(Family::named(family, 1), tensor(mu, kF64).unsqueeze(1),
                         tensor(prior, kF64));
  };
  EXPECT_THROW(book("bern", {0.5, 1.0}, {0.5, 0.5}), ValueError);
  EXPECT_THROW(book("pois", {0.0, 1.0}, {0.5, 0.5}), ValueError);
  EXPECT_THROW(book("gauss", {0.0, 1.0}, {0.5, 0.4}), ValueError);
  EXPECT_THROW(book("gauss", {0.0, 1.0}, {1.5, -0.5}), ValueError);
  EXPECT_THROW(book("gauss", {0.0}, {1.0}), ValueError);
  EXPECT_THROW(Family::gaussian(tensor({1, 2, 2, 1}, {2, 2}, kF64)), ValueError);
}

TEST(BayesHeads, defect_and_log_linearity_tell_families_apart) {
  const Codebook g = draw_codebook(Family::named("gauss", 2), {.seed = 1});
  const Codebook p = draw_codebook(Family::named("pois", 2), {.seed = 1});
  EXPECT_LT(metric_defect(g.mu, g.family.link(g.mu)).value, 1e-20);
  EXPECT_GT(metric_defect(p.mu, p.family.link(p.mu)).value, 1e-2);
  const Tensor t = draw_statistics(p, 200, 2, 1).t;
  EXPECT_LT(log_linear_residual(posterior(exact_head(p, 2), t), t), 1e-18);
  const Codebook other = draw_codebook(Family::named("pois", 2), {.seed = 2});
  EXPECT_GT(log_linear_residual(mixture_posterior(p, other, t, 2), t), 1e-3);
}

TEST(BayesAtlas, score_errors_keep_their_bound_and_fall_with_heads) {
  for (const char* family : {"bern", "pois"}) {
    const AtlasError few = line_error(family, Cells::arc, 16);
    const AtlasError many = line_error(family, Cells::arc, 32);
    EXPECT_LE(few.worst_ratio, 1) << family;
    EXPECT_LE(many.worst_ratio, 1) << family;
    EXPECT_LT(many.sup, few.sup / 3) << family;
  }
  EXPECT_THROW(make_grid(draw_codebook(Family::named("bern", 2), {}), Cells::arc, 5), ValueError);
}

TEST(BayesDraws, poisson_has_its_mean_and_variance) {
  Draws draws(4);
  for (double lambda : {0.4, 6.0, 10.5, 60.0}) {
    double sum = 0, squares = 0;
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
      const double k = double(draws.poisson(lambda));
      sum += k;
      squares += k * k;
    }
    const double mean = sum / kDraws, spread = std::sqrt(lambda / kDraws);
    EXPECT_NEAR(mean, lambda, 5 * spread) << lambda;
    EXPECT_NEAR(squares / kDraws - mean * mean, lambda, lambda * 0.06) << lambda;
  }
}

TEST(BayesIce, pooled_means_are_smoothed_class_means) {
  const Prompts p = draw_prompts(ice_task("bern"), 3, 10, 7);
  for (int64_t b = 0; b < 3; ++b) {
    for (int64_t k = 0; k < 4; ++k) {
      double n = 0, total = 0, all = 0;
      for (int64_t i = 0; i < 10; ++i) {
        const double t = p.t[b][i][0].item();
        all += t / 10;
        if (p.labels[b][i].item<int64_t>() != k) continue;
        n += 1;
        total += t;
      }
      EXPECT_NEAR(p.mean[b][k][0].item(), (total + all) / (n + 1), 1e-6);
      EXPECT_NEAR(p.log_count[b][k].item(), std::log(n + 1), 1e-6);
    }
  }
}

TEST(BayesIce, every_model_trains_and_shared_finds_the_precision) {
  for (const char* model : {"affine", "atlas", "link", "token", "transformer", "mlp"}) {
    const IceResult r =
        run_ice(ice_task("pois"), {.model = model, .heads = 4, .n = 8, .prompts = 64, .steps = 3});
    EXPECT_TRUE(std::isfinite(r.excess)) << model;
  }
  const IceResult r = run_ice(ice_task("gauss"), {.n = 64, .prompts = 1000, .steps = 200});
  EXPECT_GT(r.cosine, 0.97);
  EXPECT_LT(r.excess, 2 * r.plug_in);
}

TEST(BayesConverse, angle_keeps_its_bound) {
  const auto points = converse("perturb", {.statistics = 300});
  const Converse c = summarise(points, 1e-5, 1e-1);
  EXPECT_LE(c.max_ratio, 1);
  EXPECT_NEAR(c.slope, 0.5, 0.1);
  EXPECT_THROW(converse("perturb", {.dim = 2, .rank = 2}), ValueError);
}

TEST(BayesDiagnose, reads_a_precision_back_and_refuses_what_does_not_fit) {
  const Tensor sigma = tensor({1, 0.6, 0.6, 0.5}, {2, 2}, kF64);
  const Codebook c = draw_codebook(Family::gaussian(sigma), {.seed = 2});
  const Tensor t = draw_statistics(c, 4000, 1, 2).t;
  const Head h = plain_head(c, 1);
  const Diagnosis d = diagnose({h.keys, h.queries(t), h.bias, t, {}});
  EXPECT_LT(d.log_linear, 1e-18);
  EXPECT_LT(d.query_fit, 1e-20);
  EXPECT_GT(d.eigenvalues.front(), 0);
  EXPECT_THROW(diagnose({h.keys, zeros({3, 5}), {}, {}, {}}), ShapeError);
  EXPECT_THROW(diagnose({h.keys, full({3, 2}, INFINITY), {}, {}, {}}), ValueError);
}

TEST(BayesDiagnose, digits_by_attention_are_naive_bayes) {
  const DigitsResult r = digits_head("pois");
  EXPECT_DOUBLE_EQ(r.attention, r.direct);
  EXPECT_GT(r.attention, 0.8);
}

}  // namespace
}  // namespace cutaway::bayes
