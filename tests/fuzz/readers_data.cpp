// Readers of data sets.
#include <algorithm>
#include <stdexcept>

#include <cutaway/core/error.h>
#include <cutaway/core/io/npz.h>
#include <cutaway/datasets/array_sets.h>
#include <cutaway/datasets/cifar.h>
#include <cutaway/datasets/images.h>
#include <cutaway/datasets/json_set.h>
#include <cutaway/datasets/mat_file.h>
#include <cutaway/datasets/sparse_text.h>
#include <tests/fuzz/accepted.h>
#include <tests/fuzz/formats.h>

namespace cutaway::fuzz {
namespace {

void require(bool good, const char* what) {
  if (!good) throw std::logic_error(what);
}

std::string text_of(Input in) { return {in.begin(), in.end()}; }

// Takes the first line off the input.
std::string first_line(Input& in) {
  const auto end = std::find(in.begin(), in.end(), uint8_t('\n'));
  const std::string line(in.begin(), end);
  in = in.subspan(std::min(line.size() + 1, in.size()));
  return line;
}

}  // namespace

bool accepts_cifar(Input in, std::string* message) {
  const std::string kind = first_line(in);
  const auto read = [&] {
    const data::CifarBatch b =
        data::parse_cifar(kName, in, kind == "100" ? data::Cifar::hundred : data::Cifar::ten);
    require(b.images.size(0) == b.labels.numel() && b.labels.numel() > 0, "images without labels");
    require(b.coarse.defined() == (kind == "100"), "coarse labels of CIFAR-10");
  };
  return accepted(read, message);
}

bool accepts_xmc_sparse(Input in, std::string* message) {
  const auto read = [&] {
    const data::MultiLabelRows rows = data::parse_xmc(kName, text_of(in));
    data::check_csr(rows.features, kName);
    data::check_csr(rows.labels, kName);
    require(rows.labels.rows() == rows.rows(), "rows without labels");
  };
  return accepted(read, message);
}

bool accepts_image(Input in, std::string* message) {
  const auto read = [&] {
    const Tensor x = data::parse_image(kName, in);
    require(x.numel() == x.size(0) * x.size(1) * x.size(2) && x.size(0) <= 3, "sizes");
    if (x.numel() > 100000) return;
    const Tensor small = data::parse_image(kName, in, {.height = 3, .width = 5, .channels = 1});
    require(small.sizes() == Shape{1, 3, 5}, "not resized");
  };
  return accepted(read, message);
}

namespace {

void require_sound(const data::Dataset& d) {
  require(d.inputs.dim() >= 2 && d.inputs.size(0) == d.targets.size(0), "inputs without targets");
  if (d.targets.dtype() != DType::i64) return;
  for (const double c : d.targets.to_vector()) {
    require(c >= 0 && (d.classes.empty() || c < double(d.classes.size())), "no such class");
  }
}

}  // namespace

bool accepts_named_set(Input in, std::string* message) {
  const auto read = [&] {
    const io::NamedArrays arrays = io::parse_npz(kName, in.data(), int64_t(in.size()));
    for (const char* split : {"train", "test"}) {
      require_sound(data::named_dataset(kName, arrays, split));
      try {
        require_sound(data::named_dataset(kName, arrays, split, {.matlab = true}));
      } catch (const IoError&) {  // examples may be the first dimension only
      }
    }
  };
  return accepted(read, message);
}

bool accepts_json_set(Input in, std::string* message) {
  const auto read = [&] {
    require_sound(data::json_lines_dataset(kName, data::parse_json_lines(kName, text_of(in))));
  };
  return accepted(read, message);
}

bool accepts_matlab(Input in, std::string* message) {
  const auto read = [&] {
    for (const auto& [name, array] : data::parse_mat(kName, in).arrays) {
      require(array.is_contiguous() && array.dim() >= 1, "no sound array");
    }
  };
  return accepted(read, message);
}

bool accepts_libsvm(Input in, std::string* message) {
  const auto read = [&] {
    const data::LibsvmRows rows = data::parse_libsvm(kName, text_of(in));
    data::check_csr(rows.features, kName);
    data::check_csr(rows.labels, kName);
    require((rows.multi_label() ? rows.labels.rows() : int64_t(rows.targets.size())) == rows.rows(),
            "rows without targets");
    require(rows.queries.empty() || int64_t(rows.queries.size()) == rows.rows(), "lost queries");
  };
  return accepted(read, message);
}

}  // namespace cutaway::fuzz
