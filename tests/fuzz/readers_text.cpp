// Readers of text and tokenizers.
#include <stdexcept>

#include <cutaway/core/error.h>
#include <cutaway/datasets/text/fasta.h>
#include <cutaway/datasets/text/text_files.h>
#include <cutaway/datasets/text/tokenizer.h>
#include <tests/fuzz/accepted.h>
#include <tests/fuzz/formats.h>

namespace cutaway::fuzz {
namespace {

std::string text_of(Input in) { return {in.begin(), in.end()}; }

void require(bool good, const char* what) {
  if (!good) throw std::logic_error(what);
}

// Difficult texts go through; a tokenizer may refuse them with an error, or give sound tokens.
void use(const data::Tokenizer& t) {
  const data::Tokenizer again = data::Tokenizer::parse(kName, t.to_json());
  for (const char* text :
       {"", "Hello w\u00F6rld, 12 <s>\n", "\u65E5\u672C e\u0301 \U0001F600 aaaab"}) {
    try {
      const data::Encoding e = t.encode(text, {.offsets = true});
      require(e.offsets.size() == e.ids.size(), "tokens without offsets");
      for (const auto& [begin, end] : e.offsets) {
        require(0 <= begin && begin <= end && size_t(end) <= std::string_view(text).size(),
                "an offset outside the text");
      }
      for (const int64_t id : e.ids) require(id >= 0 && id < t.vocabulary(), "no such token");
      require(again.encode(text).ids == e.ids, "written and read it encodes otherwise");
      t.decode(e.ids);
      t.decode(e.ids, {.skip_special = false});
    } catch (const ValueError&) {  // said so
    } catch (const IndexError&) {
    }
  }
}

}  // namespace

bool accepts_tokenizer(Input in, std::string* message) {
  return accepted([&] { use(data::Tokenizer::parse(kName, text_of(in))); }, message);
}

bool accepts_vocabulary(Input in, std::string* message) {
  return accepted([&] { use(data::Tokenizer::parse_vocabulary(kName, text_of(in))); }, message);
}

bool accepts_json_lines(Input in, std::string* message) {
  const auto read = [&] {
    const data::JsonLines all = data::parse_json_lines(kName, text_of(in));
    for (const data::JsonColumn& c : all.columns) {
      const int64_t n = c.values.defined() ? c.values.numel() : int64_t(c.texts.size());
      require(n == all.lines, "columns of other lengths");
    }
  };
  return accepted(read, message);
}

bool accepts_fasta(Input in, std::string* message) {
  const auto read = [&] {
    for (const data::FastaRecord& r : data::parse_fasta(kName, text_of(in))) {
      data::dna_tokens(r.sequence);
      data::dna_one_hot(r.sequence);
    }
  };
  return accepted(read, message);
}

bool accepts_text(Input in, std::string* message) {
  return accepted([&] { data::parse_text(kName, text_of(in)); }, message);
}

}  // namespace cutaway::fuzz
