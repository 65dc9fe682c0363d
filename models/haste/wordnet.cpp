// WordNet's nouns as samples: definitions, with all their hypernyms as labels.
#include <fmt/format.h>
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <cutaway/models/haste/hash.h>
#include <cutaway/models/haste/sets.h>
#include <cutaway/models/haste/text_lines.h>

namespace cutaway::haste {
namespace {

struct Synset {
  std::string name, text;
  std::vector<int64_t> hypernyms, domains;  // offsets
  int64_t line = 0;
};

// One line of data.noun: offset, file, type, words, pointers, "|", gloss.
class LineReader {
 public:
  LineReader(const Lines& lines, std::string_view line) : lines_(lines), left_(line) {}

  Synset read(int64_t& offset) {
    Synset s;
    s.line = lines_.number();
    const std::string_view digits = field("an offset");
    if (!Lines::number(digits, offset) || offset < 0) wrong("an offset", digits);
    field("a lexicographer file");
    if (const auto type = field("a type"); type != "n") wrong("the type n", type);
    const int64_t words = count("a number of words", 16);
    if (words < 1) lines_.fail("a synset without words");
    for (int64_t w = 0; w < words; ++w) {
      std::string lemma(field("a word"));
      if (w == 0) s.name = fmt::format("{}.n.{}", lemma, digits);
      std::replace(lemma.begin(), lemma.end(), '_', ' ');
      s.text += lemma + ' ';
      field("a sense number");
    }
    const int64_t pointers = count("a number of pointers", 10);
    for (int64_t p = 0; p < pointers; ++p) pointer(s);
    if (const auto bar = field("the bar before the gloss"); bar != "|") wrong("\"|\"", bar);
    s.text += left_;
    return s;
  }

 private:
  [[noreturn]] void wrong(const char* need, std::string_view got) const {
    lines_.fail(fmt::format("need {}; got {}", need, Lines::shown(got)));
  }
  std::string_view field(const char* what) {
    const std::string_view f = cut(left_, ' ');
    if (f.empty()) wrong(what, f);
    return f;
  }
  int64_t count(const char* what, int base) {
    const std::string_view text = field(what);
    int64_t n = -1;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), n, base);
    if (error != std::errc() || stop != text.data() + text.size() || n < 0 || n > 100000) {
      wrong(what, text);
    }
    return n;
  }
  void pointer(Synset& s) {
    const std::string_view symbol = field("a pointer"), digits = field("the offset of a pointer");
    int64_t to = -1;
    if (!Lines::number(digits, to)) wrong("the offset of a pointer", digits);
    const bool noun = field("the type of a pointer") == "n";
    field("source and target of a pointer");
    if (!noun) return;
    if (symbol == "@" || symbol == "@i") s.hypernyms.push_back(to);
    if (symbol == ";c" || symbol == ";r" || symbol == ";u") s.domains.push_back(to);
  }

  const Lines& lines_;
  std::string_view left_;
};

using Synsets = std::unordered_map<int64_t, Synset>;

const Synset& at(const Synsets& all, int64_t offset, const std::string& name, int64_t line) {
  const auto found = all.find(offset);
  if (found == all.end()) {
    throw IoError("xmc",
                  fmt::format("{}:{}: points to {:08}, which is not there", name, line, offset));
  }
  return found->second;
}

// Everything above a synset, each once; cycles end where they meet what is already there.
std::vector<std::string> labels_of(const Synsets& all, int64_t offset, const std::string& name) {
  std::vector<std::string> labels;
  std::unordered_set<int64_t> met = {offset};
  std::vector<int64_t> open = {offset};
  const auto add = [&](int64_t to, int64_t line) {
    const Synset& above = at(all, to, name, line);
    if (!met.insert(to).second) return false;
    labels.push_back(above.name);
    return true;
  };
  while (!open.empty()) {
    const Synset& s = all.at(open.back());
    open.pop_back();
    for (const int64_t to : s.hypernyms) {
      if (add(to, s.line)) open.push_back(to);
    }
  }
  const Synset& own = all.at(offset);
  for (const int64_t to : own.domains) add(to, own.line);
  return labels;
}

}  // namespace

std::vector<Document> parse_wordnet(const std::string& name, std::string_view text) {
  Synsets all;
  std::vector<int64_t> order;
  Lines lines(name, text);
  for (std::string_view line; lines.next(line);) {
    if (line.empty() || line[0] == ' ') continue;  // the licence
    int64_t offset = -1;
    Synset s = LineReader(lines, line).read(offset);
    if (!all.emplace(offset, std::move(s)).second) {
      lines.fail(fmt::format("the offset {:08} is there twice", offset));
    }
    order.push_back(offset);
  }
  std::vector<Document> documents;
  for (const int64_t offset : order) {
    Document d;
    d.labels = labels_of(all, offset, name);
    const Synset& s = all.at(offset);
    if (d.labels.empty() || s.text.empty()) continue;
    d.name = s.name;
    d.text = s.text;
    d.test = share_of(d.name) < 1.0 / 6;
    documents.push_back(std::move(d));
  }
  return documents;
}

}  // namespace cutaway::haste
