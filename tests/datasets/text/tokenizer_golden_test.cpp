// The tokenizers against files and encodings of an independent implementation (make_golden.py).
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cutaway/core/io/file.h>
#include <cutaway/core/io/json.h>
#include <cutaway/datasets/text/tokenizer.h>
#include <cutaway/datasets/text/tokenizer_parts.h>
#include <tests/paths.h>

namespace cutaway::data {
namespace {

using io::Json;

const char* const kKinds[] = {"gpt2", "roberta", "llama3", "llama2", "bert", "words", "metaspace"};

std::string text_of(const std::string& path) {
  const io::Bytes bytes = io::read_maybe_gzip(path);
  return {bytes.begin(), bytes.end()};
}
std::string golden_path(const std::string& kind) {
  return std::string(kSourceDir) + "/tests/datasets/text/golden/" + kind + ".json";
}
std::vector<int64_t> numbers(const Json& list) {
  std::vector<int64_t> all;
  for (const Json& n : list.items) all.push_back(int64_t(n.number));
  return all;
}
std::vector<std::pair<int64_t, int64_t>> spans(const Json& list) {
  std::vector<std::pair<int64_t, int64_t>> all;
  for (const Json& s : list.items) {
    all.emplace_back(int64_t(s.items[0].number), int64_t(s.items[1].number));
  }
  return all;
}

class TokenizerGolden : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, TokenizerGolden, testing::ValuesIn(kKinds),
                         [](const auto& p) { return std::string(p.param); });

void check_case(const Tokenizer& t, const Json& c, const std::string& kind) {
  const std::string text = c.find("text")->text;
  const Json* pair = c.find("pair");
  const Encoding e =
      pair ? t.encode_pair(text, pair->text, {.offsets = true}) : t.encode(text, {.offsets = true});
  const std::vector<int64_t> want = numbers(*c.find("ids"));
  EXPECT_EQ(e.ids, want) << kind << ": " << text;
  EXPECT_EQ(e.types, numbers(*c.find("types"))) << kind << ": " << text;
  // A composed character stands here for all that it was composed of, there for the first.
  const bool composed = text.find("decomposed") != std::string::npos;
  if (e.ids == want && !composed) {
    EXPECT_EQ(e.offsets, spans(*c.find("offsets"))) << kind << ": " << text;
  }
  EXPECT_EQ(t.decode(want), c.find("decoded")->text) << kind << ": " << text;
}

TEST_P(TokenizerGolden, ids_offsets_and_decoded_text_agree) {
  const std::string kind = GetParam();
  const Tokenizer t = Tokenizer::load(golden_path(kind));
  const Json all = io::parse_json("cases", text_of(golden_path("cases")));
  const Json* cases = all.find(kind);
  ASSERT_TRUE(cases);
  ASSERT_GT(cases->items.size(), 40u);
  for (const Json& c : cases->items) check_case(t, c, kind);
}

TEST_P(TokenizerGolden, what_is_written_reads_back_alike) {
  const std::string kind = GetParam();
  const Tokenizer t = Tokenizer::load(golden_path(kind));
  const std::string json = t.to_json();
  const Tokenizer again = Tokenizer::parse("again", json);
  EXPECT_EQ(again.to_json(), json);
  const Json all = io::parse_json("cases", text_of(golden_path("cases")));
  for (const Json& c : all.find(kind)->items) check_case(again, c, kind + " written");
}

TEST(TokenizerTraining, bpe_learns_the_same_merges) {
  const std::string sample =
      std::string(kSourceDir) + "/datasets/samples/text/austen_persuasion.txt.gz";
  const Tokenizer trained = Tokenizer::train_bpe({text_of(sample).substr(0, 100'000)},
                                                 {.vocabulary = 700, .special = {"<|endoftext|>"}});
  const Tokenizer golden = Tokenizer::load(golden_path("gpt2"));
  EXPECT_EQ(trained.parts().vocabulary().tokens, golden.parts().vocabulary().tokens);
  EXPECT_EQ(trained.merges(), golden.merges());
  EXPECT_EQ(trained.encode("Captain Wentworth's ship").ids,
            golden.encode("Captain Wentworth's ship").ids);
}

}  // namespace
}  // namespace cutaway::data
