#include <cutaway/datasets/text/fasta.h>

#include <fmt/format.h>
#include <algorithm>
#include <set>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>

namespace cutaway::data {
namespace {

char capital(char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; }
bool is_small(char c) { return c >= 'a' && c <= 'z'; }

// Bases that a code stands for: bits 1 A, 2 C, 4 G, 8 T; 0 a gap, −1 no code.
int bases_of(char c) {
  switch (capital(c)) {
    case 'A':
      return 1;
    case 'C':
      return 2;
    case 'G':
      return 4;
    case 'T':
    case 'U':
      return 8;
    case 'R':
      return 1 | 4;
    case 'Y':
      return 2 | 8;
    case 'S':
      return 2 | 4;
    case 'W':
      return 1 | 8;
    case 'K':
      return 4 | 8;
    case 'M':
      return 1 | 2;
    case 'B':
      return 2 | 4 | 8;
    case 'D':
      return 1 | 4 | 8;
    case 'H':
      return 1 | 2 | 8;
    case 'V':
      return 1 | 2 | 4;
    case 'N':
      return 15;
    case '-':
      return 0;
    default:
      return -1;
  }
}

bool in_alphabet(char c, FastaAlphabet alphabet) {
  if (alphabet == FastaAlphabet::dna) return bases_of(c) >= 0;
  // Every letter names an amino acid or a group of them.
  return (capital(c) >= 'A' && capital(c) <= 'Z') || c == '*' || c == '-';
}

[[noreturn]] void fail(const std::string& name, int64_t line, const std::string& what,
                       std::string_view hint = {}) {
  throw IoError("fasta", fmt::format("{}:{}: {}", name, line, what), hint);
}

int checked_bases(std::string_view sequence, size_t i) {
  const int bases = bases_of(sequence[i]);
  if (bases < 0) {
    throw ValueError("dna", fmt::format("letters must be IUPAC codes; got the byte {:#04x} at {}",
                                        uint8_t(sequence[i]), i));
  }
  return bases;
}

class FastaReader {
 public:
  FastaReader(const std::string& name, const FastaOptions& options)
      : name_(name), options_(options) {}

  void add(int64_t line, std::string_view row) {
    while (!row.empty() && (row.back() == '\r' || row.back() == ' ' || row.back() == '\t')) {
      row.remove_suffix(1);
    }
    if (row.empty() || row[0] == ';') return;
    if (row[0] == '>') return begin(line, row.substr(1));
    if (records_.empty()) fail(name_, line, "does not begin with >; it is no FASTA file");
    for (const char c : row) {
      if (in_alphabet(c, options_.alphabet)) continue;
      const bool printable = c > ' ' && c <= '~';
      fail(name_, line,
           printable ? fmt::format("\"{}\" is no letter of the alphabet", c)
                     : fmt::format("the byte {:#04x} is no letter of the alphabet", uint8_t(c)),
           options_.alphabet == FastaAlphabet::dna ? "read proteins with their alphabet" : "");
    }
    records_.back().sequence += row;
  }

  std::vector<FastaRecord> finish() {
    if (records_.empty()) throw IoError("fasta", name_ + ": has no records");
    check_last();
    return std::move(records_);
  }

 private:
  void begin(int64_t line, std::string_view header) {
    if (!records_.empty()) check_last();
    const size_t blank = std::min(header.find_first_of(" \t"), header.size());
    FastaRecord r;
    r.name = header.substr(0, blank);
    if (r.name.empty()) fail(name_, line, "the record has no name");
    const size_t rest = std::min(header.find_first_not_of(" \t", blank), header.size());
    r.description = header.substr(rest);
    if (!names_.insert(r.name).second) {
      fail(name_, line, fmt::format("the name \"{}\" stands there twice", r.name));
    }
    records_.push_back(std::move(r));
    begun_ = line;
  }
  void check_last() const {
    if (records_.back().sequence.empty()) {
      fail(name_, begun_, fmt::format("the record \"{}\" has no letters", records_.back().name));
    }
  }

  const std::string& name_;
  FastaOptions options_;
  std::vector<FastaRecord> records_;
  std::set<std::string> names_;
  int64_t begun_ = 0;
};

}  // namespace

std::vector<FastaRecord> parse_fasta(const std::string& name, std::string_view text,
                                     const FastaOptions& options) {
  FastaReader reader(name, options);
  for (int64_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    reader.add(line, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish();
}

std::vector<FastaRecord> load_fasta(const std::string& path, const FastaOptions& options) {
  const io::Bytes bytes = io::read_maybe_gzip(path);
  return parse_fasta(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options);
}

Tensor dna_tokens(std::string_view sequence) {
  Tensor t = empty({int64_t(sequence.size())}, {.dtype = DType::i64});
  int64_t* out = t.data<int64_t>();
  for (size_t i = 0; i < sequence.size(); ++i) {
    const int bases = checked_bases(sequence, i);
    out[i] = bases == 1 ? 0 : bases == 2 ? 1 : bases == 4 ? 2 : bases == 8 ? 3 : 4;
  }
  return t;
}

Tensor dna_one_hot(std::string_view sequence) {
  Tensor t = zeros({int64_t(sequence.size()), 4});
  float* out = t.data<float>();
  for (size_t i = 0; i < sequence.size(); ++i) {
    const int bases = checked_bases(sequence, i);
    const int n = __builtin_popcount(unsigned(bases));
    for (int b = 0; b < 4; ++b) {
      if (bases >> b & 1) out[4 * i + size_t(b)] = 1.0f / float(n);
    }
  }
  return t;
}

Tensor soft_mask(std::string_view sequence) {
  Tensor t = empty({int64_t(sequence.size())}, {.dtype = DType::u8});
  std::transform(sequence.begin(), sequence.end(), t.data<uint8_t>(), is_small);
  return t;
}

}  // namespace cutaway::data
