#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

// Reads the reference files of this folder (README.md). It shares no code with the library, so a
// fault in the library's own reader cannot hide here.
namespace cutaway::golden {

/// One stored tensor, its values widened to double (exact for F32, F64, BOOL and these I64).
struct Array {
  std::string dtype;  // "F64", "F32", "I64", "BOOL"
  std::vector<int64_t> shape;
  std::vector<double> values;
};

/// One case of a file: options and tensors named "<kind>.<name>". Options that are absent, or null,
/// give the fallback; anything else that does not fit throws std::runtime_error naming the case.
class Case {
 public:
  const std::string& name() const { return name_; }

  bool has(const std::string& tensor) const { return arrays_.contains(tensor); }
  /// The tensor "<kind>.<name>", as in at("input.x").
  const Array& at(const std::string& tensor) const;
  /// Names, sorted, of all tensors of a kind: names("param") gives {"bias", "weight"}.
  std::vector<std::string> names(const std::string& kind) const;

  bool has_option(const std::string& key) const;  // false for null
  int64_t integer(const std::string& key, int64_t fallback) const;
  double number(const std::string& key, double fallback) const;
  bool flag(const std::string& key, bool fallback) const;
  std::string text(const std::string& key, const std::string& fallback = "") const;
  /// A list of integers; a single integer is a list of one.
  std::vector<int64_t> integers(const std::string& key,
                                const std::vector<int64_t>& fallback = {}) const;
  /// A list of numbers; a single number is a list of one.
  std::vector<double> numbers(const std::string& key,
                              const std::vector<double>& fallback = {}) const;
  /// All options, for what the functions above do not cover.
  const nlohmann::json& options() const { return *options_; }

 private:
  friend class File;
  std::string name_;
  std::shared_ptr<const nlohmann::json> options_;
  std::map<std::string, Array> arrays_;
};

/// A reference file held in memory.
class File {
 public:
  /// tests/golden/<group>.safetensors of the source tree, read once and kept.
  static const File& open(const std::string& group);
  /// Parses the bytes of such a file; throws std::runtime_error naming what does not fit.
  static File parse(const std::string& group, std::span<const unsigned char> bytes);

  const Case& at(const std::string& name) const;
  const std::vector<Case>& cases() const { return cases_; }
  /// The cases whose option "op" is this, in order of name; throws when there is none.
  std::vector<const Case*> of_op(const std::string& op) const;

 private:
  std::string group_;
  std::vector<Case> cases_;
};

/// max |got − want| / max |want| over the whole tensor (over max(|want|, 1e-12) when all is 0);
/// infinity when the counts differ or a value is not finite where the other is.
double relative_error(std::span<const double> got, const Array& want);

}  // namespace cutaway::golden
