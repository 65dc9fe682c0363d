// xmc convert | groups: sparse multi-label sets between formats, and the groups of their labels.
#include <fmt/format.h>
#include <algorithm>
#include <numeric>

#include <cutaway/core/error.h>
#include <cutaway/core/io/pack.h>
#include <cutaway/models/haste/checkpoint.h>
#include <cutaway/models/haste/inspect.h>
#include <cutaway/models/haste/metrics.h>
#include <cutaway/models/haste/sets.h>

#include <tools/commands.h>
#include <tools/xmc_commands.h>

namespace cutaway::tools {
namespace {

struct DataArgs {
  Common common;
  haste::SetOptions set;
  std::string split = "source", to = "sparse", folder;
  bool packed = false;
  haste::GroupingOptions grouping;
  std::string trained;  // folder of a run
  std::string method = "semantic", order = "frequent", label;
  int64_t show = 10, words = 8;
  bool inspect = false;
};

void add_set_options(CLI::App& c, DataArgs& a) {
  add_common(c, a.common);
  c.add_option("--data", a.set.name,
               "synth, debian-deps, debian-tags, debian-sample, debian-sample-tags, wordnet, "
               "wordnet-sample, a folder, or a sparse text file")
      ->capture_default_str();
  c.add_option("--test", a.set.test, "Sparse text file of test samples");
  c.add_option("--filter", a.set.filter, "Pairs \"row label\" that evaluation ignores");
  c.add_option("--split", a.split, "Debian: what stays on one side")
      ->check(CLI::IsMember({"source", "name"}))
      ->capture_default_str();
  c.add_option("--limit", a.set.debian.limit, "Debian: at most so many records; 0: all");
  c.add_option("--min-positives", a.set.build.min_positives, "Training samples a label needs")
      ->capture_default_str();
  c.add_option("--min-words", a.set.build.min_words, "Training texts a word needs")
      ->capture_default_str();
  c.add_option("--samples", a.set.synth.train, "synth: training samples")->capture_default_str();
  c.add_option("--labels", a.set.synth.labels, "synth: labels")->capture_default_str();
  c.add_option("--vocabulary", a.set.synth.words, "synth: words")->capture_default_str();
}

haste::XmcSet opened(DataArgs& a) {
  apply_common(a.common);
  a.set.synth.seed = a.common.seed;
  a.set.debian.split = a.split == "name" ? haste::Split::name : haste::Split::source;
  haste::XmcSet set = haste::open_set(a.set);
  const haste::XmcData& t = set.train;
  say(a.common.quiet,
      fmt::format("{}: {} + {} samples, {} features, {} labels, {:.2f} labels a sample", set.name,
                  t.rows(), set.test.rows(), t.num_features(), t.num_labels(),
                  double(t.labels.entries()) / double(t.rows())));
  return set;
}

int convert(DataArgs& a) {
  if (a.to == "packages") {
    // An extract of an index as a Packages file: how the shipped sample was made.
    const size_t colon = a.set.name.find(':');
    const std::string file = colon == std::string::npos ? "" : a.set.name.substr(colon + 1);
    auto records = haste::read_packages(file);
    if (a.set.debian.limit > 0) records = haste::extract(records, a.set.debian.limit);
    io::write_text(a.folder, haste::packages_text(records));
    say(a.common.quiet, fmt::format("{} records in {}", records.size(), a.folder));
    return 0;
  }
  const haste::XmcSet set = opened(a);
  haste::write_folder(set, a.folder,
                      a.to == "raw"    ? haste::FolderFormat::raw
                      : a.to == "json" ? haste::FolderFormat::json
                                       : haste::FolderFormat::sparse,
                      a.packed);
  say(a.common.quiet,
      fmt::format("written to {}: cutaway xmc train --data {}", a.folder, a.folder));
  return 0;
}

std::string name_of(const std::vector<std::string>& names, int32_t i, const char* kind) {
  return names.empty() ? fmt::format("{} {}", kind, i) : names[size_t(i)];
}

void print_features(const haste::XmcData& train, const std::vector<haste::SharedFeature>& all) {
  std::vector<std::string> shown;
  for (const auto& f : all) {
    std::vector<std::string> words;
    for (const int32_t w : f.words) words.push_back(name_of(train.words, w, "feature"));
    shown.push_back(fmt::format("{} ({})", f.feature, fmt::join(words, " ")));
  }
  fmt::print("  shared  {}\n", fmt::join(shown, ", "));
}

void print_group(const haste::XmcData& train, const haste::GroupView& g) {
  std::vector<std::string> words, labels;
  for (const auto& w : g.words) {
    words.push_back(fmt::format("{} ({})", name_of(train.words, w.feature, "feature"), w.labels));
  }
  for (size_t i = 0; i < g.labels.size(); ++i) {
    labels.push_back(
        fmt::format("{} ×{}", name_of(train.label_names, g.labels[i], "label"), g.frequency[i]));
  }
  fmt::print("\ngroup {}   cohesion {:.2f}\n  words   {}\n  labels  {}\n", g.number, g.cohesion,
             fmt::join(words, ", "), fmt::join(labels, ", "));
}

// Which groups to show.
std::vector<int64_t> chosen(const DataArgs& a, const haste::XmcData& train,
                            const haste::LabelOrder& order, const haste::Cohesion& cohesion) {
  if (!a.label.empty()) {
    const auto at = std::find(train.label_names.begin(), train.label_names.end(), a.label);
    if (at == train.label_names.end()) {
      throw ValueError("groups", fmt::format("there is no label \"{}\"", a.label));
    }
    const int64_t place = order.place[size_t(at - train.label_names.begin())];
    if (place < order.head) {
      throw ValueError(
          "groups", fmt::format("\"{}\" is in the head: frequent labels have no group", a.label));
    }
    return {(place - order.head) / order.group};
  }
  std::vector<int64_t> groups(cohesion.group.size());
  std::iota(groups.begin(), groups.end(), 0);
  const std::vector<int64_t> frequency = haste::label_frequencies(train.labels);
  const auto samples = [&](int64_t g) {
    int64_t n = 0;
    for (int64_t i = order.head + g * order.group;
         i < std::min(order.head + (g + 1) * order.group, order.seen); ++i) {
      n += frequency[size_t(order.label[size_t(i)])];
    }
    return n;
  };
  std::vector<double> key(groups.size());
  for (size_t g = 0; g < key.size(); ++g) {
    key[g] = a.order == "frequent" ? -double(samples(int64_t(g)))
             : a.order == "best"   ? -cohesion.group[g]
             : a.order == "worst"  ? cohesion.group[g]
                                   : double(g);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [&](int64_t x, int64_t y) { return key[size_t(x)] < key[size_t(y)]; });
  groups.resize(std::min(groups.size(), size_t(std::max<int64_t>(0, a.show))));
  return groups;
}

// The set, the order of its labels, and the model when a run is given.
struct Grouped {
  haste::XmcSet set;
  haste::LabelOrder order;
  std::unique_ptr<haste::Model> model;
};

Grouped grouped(DataArgs& a) {
  Grouped g;
  if (a.trained.empty()) {
    g.set = opened(a);
    a.grouping.method = haste::grouping_from(a.method);
    a.grouping.seed = a.common.seed;
    g.order = haste::order_labels(g.set.train, a.grouping);
    return g;
  }
  apply_common(a.common);
  const haste::RunOptions o = haste::load_options(a.trained + "/config.json");
  haste::check_options(o);
  const haste::Weights weights = haste::load_weights(a.trained + "/checkpoint/best.safetensors");
  g.set = haste::open_set(haste::set_of(o));
  haste::check_fits(weights, g.set);
  g.order = weights.order;
  g.model = haste::model_of(o, weights);
  a.method = o.grouping + ", as trained,";
  a.grouping.group = g.order.group;
  a.grouping.head_ratio = o.head_ratio;
  a.grouping.seed = o.seed;
  return g;
}

int groups(DataArgs& a) {
  const Grouped g = grouped(a);
  const haste::XmcData& train = g.set.train;
  const haste::LabelOrder& order = g.order;
  const haste::Cohesion cohesion = haste::order_cohesion(train, order, a.grouping);
  haste::GroupingOptions dealt = a.grouping;
  dealt.method = haste::Grouping::random;
  const haste::LabelOrder by_chance = haste::order_labels(train, dealt);
  fmt::print(
      "{} labels in the head, {} in {} groups of {}, {} without a sample\n"
      "cohesion (mean cosine of a label to the mean of its group): {} {:.3f}, random {:.3f}\n",
      order.head, order.seen - order.head, cohesion.group.size(), order.group,
      int64_t(order.label.size()) - order.seen, a.method, cohesion.mean,
      haste::order_cohesion(train, by_chance, a.grouping).mean);
  if (!a.inspect && a.label.empty()) return 0;
  const std::vector<int64_t> numbers = chosen(a, train, order, cohesion);
  std::vector<std::vector<haste::SharedFeature>> shared;
  if (g.model) shared = haste::shared_features(*g.model, train.num_features(), numbers);
  const auto views = haste::view_groups(train, order, numbers, a.words);
  for (size_t i = 0; i < views.size(); ++i) {
    print_group(train, views[i]);
    if (g.model) print_features(train, shared[i]);
  }
  return 0;
}

}  // namespace

void add_xmc_convert(CLI::App& xmc, int& status) {
  auto a = std::make_shared<DataArgs>();
  CLI::App* c = xmc.add_subcommand("convert", "Write a set in another format");
  add_set_options(*c, *a);
  c->add_option("--to", a->to,
                "sparse (train.txt, test.txt), raw (texts and labels line by line), json (JSON "
                "lines), packages (Debian records, with --limit an extract of whole sources)")
      ->check(CLI::IsMember({"sparse", "raw", "json", "packages"}))
      ->capture_default_str();
  c->add_option("folder", a->folder, "Folder to write; for packages a file")->required();
  c->add_flag("--gz", a->packed, "Pack every file");
  c->callback([a, &status] { status = guarded([&] { return convert(*a); }); });
}

void add_xmc_groups(CLI::App& xmc, int& status) {
  auto a = std::make_shared<DataArgs>();
  CLI::App* c = xmc.add_subcommand("groups", "Form the groups of a set's labels and show them");
  c->footer(
      "Examples:\n"
      "  cutaway xmc groups --data debian-sample --inspect\n"
      "  cutaway xmc groups --data debian-deps --label libjs-jquery-tablesorter\n"
      "  cutaway xmc groups --run runs/deps --inspect");
  add_set_options(*c, *a);
  c->add_option("--grouping", a->method, "semantic, greedy, two-stage, random or freq")
      ->capture_default_str();
  c->add_option("--group", a->grouping.group, "Labels of a group")->capture_default_str();
  c->add_option("--head-ratio", a->grouping.head_ratio, "Share of the labels in the head")
      ->capture_default_str();
  c->add_option("--dim", a->grouping.dim, "Dimensions of the embeddings")->capture_default_str();
  c->add_flag("--inspect", a->inspect, "Show groups: words that define them, member labels");
  c->add_option("--show", a->show, "How many")->capture_default_str();
  c->add_option("--by", a->order, "Which first: frequent, best, worst or first")
      ->check(CLI::IsMember({"frequent", "best", "worst", "first"}))
      ->capture_default_str();
  c->add_option("--words", a->words, "Words of a group")->capture_default_str();
  c->add_option("--label", a->label, "Show the group of this label");
  c->add_option("--run", a->trained,
                "The groups of this trained run, with the features they share");
  c->callback([a, &status] { status = guarded([&] { return groups(*a); }); });
}

}  // namespace cutaway::tools
