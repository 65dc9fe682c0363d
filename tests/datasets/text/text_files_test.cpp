// Readers of text, JSON lines and FASTA, and texts cut into windows of tokens.
#include <cutaway/datasets/text/text_files.h>

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>

#include <cutaway/core/error.h>
#include <cutaway/datasets/loader.h>
#include <cutaway/datasets/text/fasta.h>
#include <tests/paths.h>

namespace cutaway::data {
namespace {
namespace fs = std::filesystem;

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
void expect_message(const std::function<void()>& f, const std::string& piece) {
  const std::string message = message_of(f);
  EXPECT_NE(message.find(piece), std::string::npos) << message;
}

TEST(TextFiles, text_is_checked_and_its_mark_removed) {
  EXPECT_EQ(parse_text("t", "\xEF\xBB\xBFgr\xC3\xBC\xC3\x9F\n"), "grüß\n");
  EXPECT_EQ(parse_text("t", ""), "");
  expect_message([] { parse_text("t", "a\nb\xFF"); }, "t:2: is not UTF-8; got the byte 0xff at 3");
  expect_message([] { parse_text("t", "\xEF\xBB\xBF\xC0\x80"); }, "0xc0 at 3");
  for (const char* bad : {"\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE0\x80\x80", "\xC3", "\x80"}) {
    EXPECT_THROW(parse_text("t", bad), IoError);
  }
  EXPECT_THROW(load_text("/no/such/file.txt"), IoError);
}

TEST(JsonLines, columns_of_texts_and_numbers) {
  const char* text =
      "{\"id\": 1, \"text\": \"ü\\n\", \"meta\": {\"score\": 0.5}, \"ok\": true}\n\n"
      "{\"ok\": false, \"text\": \"b\", \"id\": -2e3, \"meta\": {\"score\": 1}}\r\n";
  const JsonLines all = parse_json_lines("f", text);
  EXPECT_EQ(all.lines, 2);
  ASSERT_EQ(all.columns.size(), 3u);  // "meta" is neither
  EXPECT_EQ(all.column("text").texts, (std::vector<std::string>{"ü\n", "b"}));
  EXPECT_EQ(all.column("id").values.to_vector(), (std::vector<double>{1, -2000}));
  EXPECT_EQ(all.column("ok").values.to_vector(), (std::vector<double>{1, 0}));
  EXPECT_THROW(all.column("meta"), ValueError);
  const JsonLines inner = parse_json_lines("f", text, {"meta.score"});
  EXPECT_EQ(inner.columns[0].values.to_vector(), (std::vector<double>{0.5, 1}));
}

TEST(JsonLines, errors_name_file_line_and_field) {
  expect_message([] { parse_json_lines("f", ""); }, "f: has no lines");
  expect_message([] { parse_json_lines("f", "{\"a\":1}\n{\"a\":}"); }, "f:2: is not JSON");
  expect_message([] { parse_json_lines("f", "\n[1]\n"); }, "f:2: is not a JSON object");
  expect_message([] { parse_json_lines("f", "{\"a\":1}\n{\"b\":1}"); }, "f:2: has no field \"a\"");
  expect_message([] { parse_json_lines("f", "{\"a\":1}\n{\"a\":\"x\"}"); },
                 "f:2: field \"a\" is text, in the first line it is a number");
  expect_message([] { parse_json_lines("f", "{\"a\":null}", {"a"}); }, "no number or text");
  expect_message([] { parse_json_lines("f", "{\"a\":[1]}"); }, "f:1: has no field that is");
  expect_message([] { parse_json_lines("f", "{\"a\":1,\"a\":2}"); }, "\"a\" twice");
}

TEST(Fasta, records_names_and_letters) {
  const auto records =
      parse_fasta("f", ">chr1 the first\r\nACGT\r\nacgtn\r\n\r\n;note\r\n>chr2\nRY-U\n");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].name, "chr1");
  EXPECT_EQ(records[0].description, "the first");
  EXPECT_EQ(records[0].sequence, "ACGTacgtn");
  EXPECT_EQ(records[1].sequence, "RY-U");
  EXPECT_EQ(dna_tokens("ACGTUacgtnR-").to_vector(),
            (std::vector<double>{0, 1, 2, 3, 3, 0, 1, 2, 3, 4, 4, 4}));
  EXPECT_EQ(dna_one_hot("CR-n").to_vector(),
            (std::vector<double>{0, 1, 0, 0, .5, 0, .5, 0, 0, 0, 0, 0, .25, .25, .25, .25}));
  EXPECT_EQ(soft_mask("ACgt").to_vector(), (std::vector<double>{0, 0, 1, 1}));
  const auto protein = parse_fasta("f", ">p\nMKV*\n", {.alphabet = FastaAlphabet::protein});
  EXPECT_EQ(protein[0].sequence, "MKV*");
}

TEST(Fasta, errors_name_file_line_and_letter) {
  expect_message([] { parse_fasta("f", ""); }, "f: has no records");
  expect_message([] { parse_fasta("f", "ACGT\n"); }, "f:1: does not begin with >");
  expect_message([] { parse_fasta("f", ">a\nAC\nAXE\n"); }, "f:3: \"X\" is no letter");
  expect_message([] { parse_fasta("f", ">a\nA\x01\n"); }, "f:2: the byte 0x01");
  expect_message([] { parse_fasta("f", ">\nA\n"); }, "f:1: the record has no name");
  expect_message([] { parse_fasta("f", ">a\n>b\nA\n"); }, "f:1: the record \"a\" has no letters");
  expect_message([] { parse_fasta("f", ">a\nA\n>a\nA\n"); }, "f:3: the name \"a\" stands there");
  EXPECT_THROW(dna_tokens("AZ"), ValueError);
  EXPECT_THROW(dna_one_hot("A*"), ValueError);
}

TEST(Fasta, the_sample_of_phage_lambda) {
  const auto records =
      load_fasta(std::string(kSourceDir) + "/datasets/samples/genome/lambda_virus.fa.gz");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].sequence.size(), 48502u);
  const Tensor one_hot = dna_one_hot(records[0].sequence);
  double sum = 0;
  for (const double v : one_hot.to_vector()) sum += v;
  EXPECT_NEAR(sum, 48502, 1e-3);
}

TEST(Corpus, files_folders_and_sets) {
  const Corpus austen = open_corpus("austen");
  ASSERT_EQ(austen.files.size(), 2u);
  EXPECT_EQ(austen.files[0].second.size(), 433411u);
  EXPECT_TRUE(is_corpus("austen"));
  EXPECT_FALSE(is_corpus("digits"));
  const fs::path folder = fs::temp_directory_path() / fmt::format("cutaway_text_{}", ::getpid());
  fs::create_directories(folder);
  EXPECT_FALSE(is_corpus(folder.string()));
  std::ofstream(folder / "b.txt") << "bbb";
  std::ofstream(folder / "a.txt") << "aaa";
  std::ofstream(folder / "c.csv") << "1,2";
  const Corpus two = open_corpus(folder.string());
  ASSERT_EQ(two.files.size(), 2u);
  EXPECT_EQ(two.files[0].second, "aaa");
  fs::remove_all(folder);
  expect_message([] { open_corpus("nothing"); }, "need austen, a file ending in .txt");
}

TEST(Corpus, nine_tenths_train_and_windows_follow_each_other) {
  const Corpus corpus{"c", {{"one", "abcdefghijklmnopqrst"}, {"two", "ééééé"}}};
  const Tokenizer t = Tokenizer::characters("abcdefghijklmnopqrsté");
  const CorpusTokens tokens = corpus_tokens(corpus, t);
  EXPECT_EQ(tokens.train.numel(), 18 + 5);  // of "two" nine bytes and the rest of a character
  EXPECT_EQ(tokens.validation.numel(), 2);
  EXPECT_EQ(tokens.validation_characters, 2);
  const Dataset d = token_windows("w", tokens.train, 5, t.vocabulary());
  EXPECT_EQ(d.inputs.sizes(), (Shape{4, 5}));
  EXPECT_EQ(d.inputs.select(0, 1).to_vector(), (std::vector<double>{5, 6, 7, 8, 9}));
  EXPECT_EQ(d.targets.select(0, 1).to_vector(), (std::vector<double>{6, 7, 8, 9, 10}));
  EXPECT_THROW(token_windows("w", tokens.train, 23, 21), ValueError);
  EXPECT_THROW(token_windows("w", tokens.train, 0, 21), ValueError);
  Loader loader(d, {.batch = 3});
  for (const auto& [x, y] : loader) {
    EXPECT_EQ(x.dtype(), DType::i64);
    EXPECT_EQ(y.sizes(), x.sizes());
  }
}

}  // namespace
}  // namespace cutaway::data
