// Containers of the sparse samples and what is done to them as a whole.
#include <cutaway/models/haste/data.h>

#include <fmt/format.h>

#include <cutaway/core/error.h>

namespace cutaway::haste {

XmcData take_samples(const XmcData& data, const std::vector<int64_t>& rows) {
  XmcData out;
  out.features = take_rows(data.features, rows);
  out.labels = take_rows(data.labels, rows);
  out.words = data.words;
  out.label_names = data.label_names;
  for (const int64_t r : rows) {
    if (!data.sample_names.empty()) out.sample_names.push_back(data.sample_names[size_t(r)]);
    if (!data.texts.empty()) out.texts.push_back(data.texts[size_t(r)]);
  }
  return out;
}

void check_data(const XmcData& data, const std::string& name) {
  data::check_csr(data.features, name + ": features");
  data::check_csr(data.labels, name + ": labels");
  const auto agree = [&](size_t have, int64_t need, const char* what, bool may_miss) {
    if (int64_t(have) == need || (may_miss && have == 0)) return;
    throw ValueError("xmc data", fmt::format("{}: {} {}, need {}", name, have, what, need));
  };
  agree(size_t(data.labels.rows()), data.rows(), "rows of labels", false);
  agree(data.words.size(), data.num_features(), "words", true);
  agree(data.label_names.size(), data.num_labels(), "label names", true);
  agree(data.sample_names.size(), data.rows(), "sample names", true);
  agree(data.texts.size(), data.rows(), "texts", true);
}

}  // namespace cutaway::haste
