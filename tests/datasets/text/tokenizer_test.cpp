// Tokenizers beyond the golden files: bytes, characters, training, batches, errors.
#include <cutaway/datasets/text/tokenizer.h>

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <thread>

#include <cutaway/core/error.h>
#include <cutaway/datasets/text/tokenizer_parts.h>

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

TEST(Tokenizer, bytes_round_trip_anything) {
  const Tokenizer t = Tokenizer::bytes();
  EXPECT_EQ(t.vocabulary(), 256);
  std::string all;
  for (int b = 0; b < 256; ++b) all += char(b);
  const Encoding e = t.encode(all);
  for (int b = 0; b < 256; ++b) EXPECT_EQ(e.ids[size_t(b)], b);
  EXPECT_EQ(t.decode(e.ids), all);
  const Tokenizer again = Tokenizer::parse("bytes", t.to_json());
  EXPECT_EQ(again.encode(all).ids, e.ids);
  EXPECT_TRUE(t.encode("").ids.empty());
}

TEST(Tokenizer, characters_are_numbered_by_unicode) {
  const Tokenizer t = Tokenizer::characters("bücher\nab");
  EXPECT_EQ(t.vocabulary(), 8);
  EXPECT_EQ(t.token(0), "\n");
  EXPECT_EQ(t.token(7), "ü");
  const Encoding e = t.encode("über", {.offsets = true});
  EXPECT_EQ(e.ids, (std::vector<int64_t>{7, 2, 4, 6}));
  EXPECT_EQ(e.offsets[1], (std::pair<int64_t, int64_t>(2, 3)));
  EXPECT_EQ(t.decode(e.ids), "über");
  EXPECT_EQ(Tokenizer::parse("again", t.to_json()).encode("bü\n").ids, t.encode("bü\n").ids);
  EXPECT_NE(message_of([&] { t.encode("bß"); }).find("no token for \"ß\""), std::string::npos);
  EXPECT_THROW(Tokenizer::characters(""), ValueError);
  EXPECT_NE(message_of([] { Tokenizer::characters("ab\xFF"); }).find("0xff at 2"),
            std::string::npos);
}

TEST(Tokenizer, bpe_takes_the_most_frequent_pair_and_breaks_ties_by_number) {
  // "aab" twice, "ab" once: (a,b) 3 times, then (a,ab) twice.
  const Tokenizer t = Tokenizer::train_bpe({"aab aab ab"}, {.vocabulary = 5, .byte_level = false});
  EXPECT_EQ(t.parts().vocabulary().tokens, (std::vector<std::string>{"a", "b", "ab", "aab"}));
  EXPECT_EQ(t.encode("aab ab b").ids, (std::vector<int64_t>{3, 2, 1}));
  // (x,y) and (y,z) stand twice each; the smaller numbers win.
  const Tokenizer tie = Tokenizer::train_bpe({"xyz xyz"}, {.vocabulary = 4, .byte_level = false});
  EXPECT_EQ(tie.token(3), "xy");
  // Overlapping pairs.
  const Tokenizer a = Tokenizer::train_bpe({"aaaaa aaaaa"}, {.vocabulary = 9, .byte_level = false});
  EXPECT_EQ(a.parts().vocabulary().tokens, (std::vector<std::string>{"a", "aa", "aaa", "aaaaa"}));
  EXPECT_EQ(a.encode("aaaaaaa").ids.size(), 2u);
}

TEST(Tokenizer, training_does_not_depend_on_the_order_of_texts) {
  const std::vector<std::string> ab = {"the cat sat on the mat", "a cat and a hat that sat"};
  const auto merged = [&](std::vector<std::string> texts) {
    return Tokenizer::train_bpe(texts, {.vocabulary = 290}).to_json();
  };
  EXPECT_EQ(merged(ab), merged({ab[1], ab[0]}));
  EXPECT_THROW(Tokenizer::train_bpe({""}, {}), ValueError);
  EXPECT_THROW(Tokenizer::train_bpe({"a"}, {.vocabulary = 0}), ValueError);
  EXPECT_THROW(Tokenizer::train_bpe({"\xC3"}, {}), ValueError);
}

TEST(Tokenizer, wordpiece_trains_and_covers_its_text) {
  const std::string text = "Unbelievable Café! unbeatable, believable table tables";
  const Tokenizer t = Tokenizer::train_wordpiece({text}, {.vocabulary = 60});
  EXPECT_STREQ(t.model(), "WordPiece");
  EXPECT_EQ(t.find("[MASK]"), 4);
  EXPECT_EQ(*t.pad(), 0);
  const Encoding e = t.encode("tables believable");
  EXPECT_EQ(e.ids.front(), 2);
  EXPECT_EQ(e.ids.back(), 3);
  EXPECT_EQ(t.decode(e.ids), "tables believable");
  EXPECT_EQ(std::count(e.ids.begin(), e.ids.end(), 1), 0);
  EXPECT_EQ(t.encode("zzz", {.special = false}).ids, std::vector<int64_t>{1});
}

TEST(Tokenizer, batches_are_padded_and_cut) {
  const Tokenizer t = Tokenizer::train_wordpiece({"a b c d e f g"}, {.vocabulary = 40});
  const BatchEncoding b = t.encode_batch({"a b c d", "e"}, {.max_length = 5, .multiple = 4});
  EXPECT_EQ(b.ids.sizes(), (Shape{2, 8}));
  const std::vector<double> mask = b.mask.to_vector();
  EXPECT_EQ(std::count(mask.begin(), mask.begin() + 8, 1.0), 5);
  EXPECT_EQ(std::count(mask.begin() + 8, mask.end(), 1.0), 3);
  EXPECT_EQ(b.ids.data<int64_t>()[4], 3);      // [SEP] stays when text is cut
  EXPECT_EQ(b.ids.data<int64_t>()[8 + 3], 0);  // [PAD]
  const BatchEncoding left = t.encode_batch({"a b", "c"}, {.pad_left = true});
  EXPECT_EQ(left.mask.data<int64_t>()[4], 0);
  EXPECT_EQ(left.mask.data<int64_t>()[5], 1);
  EXPECT_THROW(t.encode("a", {.max_length = 1}), ValueError);
  EXPECT_THROW(Tokenizer::bytes().encode_batch({"a", "bc"}), ValueError);
  EXPECT_EQ(t.encode_batch({}).ids.sizes(), (Shape{0, 0}));
}

TEST(Tokenizer, pairs_are_shortened_the_longer_first) {
  const Tokenizer t = Tokenizer::train_wordpiece({"a b c d e f g"}, {.vocabulary = 40});
  const Encoding e = t.encode_pair("a b c d e f", "g a", {.max_length = 8});
  EXPECT_EQ(t.decode(e.ids), "a b c g a");
  EXPECT_EQ(e.types, (std::vector<int64_t>{0, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(t.decode(t.encode_pair("a b c d", "e f g a", {.max_length = 7}).ids), "a b e f");
}

TEST(Tokenizer, vocab_txt_and_gpt2_files) {
  const Tokenizer t =
      Tokenizer::parse_vocabulary("v", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nrun\n##ning\r\n,\n");
  EXPECT_EQ(t.encode("Running, run").ids, (std::vector<int64_t>{2, 4, 5, 6, 4, 3}));
  EXPECT_NE(message_of([] { Tokenizer::parse_vocabulary("v", "[UNK]\na\na\n"); }).find("v:3"),
            std::string::npos);
  const Tokenizer g =
      Tokenizer::parse_gpt2("v", R"({"a":0,"b":1,"Ġ":2,"ab":3,"Ġab":4,"<|endoftext|>":5})", "m",
                            "#version: 0.2\na b\nĠ ab\n");
  EXPECT_EQ(g.encode("ab ab<|endoftext|>").ids, (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(g.decode({3, 4, 5}), "ab ab");
  EXPECT_EQ(g.decode({3, 5}, {.skip_special = false}), "ab<|endoftext|>");
  EXPECT_NE(message_of([] { Tokenizer::parse_gpt2("v", R"({"a":0})", "m", "a\n"); }).find("m:1"),
            std::string::npos);
}

TEST(Tokenizer, files_are_found_by_path) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("cutaway_tok_{}", ::getpid());
  fs::create_directories(folder);
  Tokenizer::train_bpe({"some text, some words"}, {.vocabulary = 262})
      .save((folder / "tokenizer.json").string());
  const Tokenizer t = Tokenizer::load(folder.string());
  EXPECT_EQ(t.decode(t.encode("some text").ids), "some text");
  fs::remove(folder / "tokenizer.json");
  EXPECT_THROW(Tokenizer::load(folder.string()), IoError);
  std::ofstream(folder / "vocab.json") << R"({"a":0,"b":1,"ab":2})";
  std::ofstream(folder / "merges.txt") << "a b\n";
  EXPECT_EQ(Tokenizer::load(folder.string()).encode("ab").ids, std::vector<int64_t>{2});
  fs::remove_all(folder);
  EXPECT_THROW(Tokenizer::load(folder.string()), IoError);
}

TEST(Tokenizer, errors_name_file_key_and_value) {
  const auto refusal = [](const std::string& json) {
    return message_of([&] { Tokenizer::parse("t.json", json); });
  };
  const auto has = [&](const std::string& json, const char* what) {
    const std::string message = refusal(json);
    EXPECT_NE(message.find(what), std::string::npos) << message;
    EXPECT_NE(message.find("t.json"), std::string::npos) << message;
  };
  has("{", "is not JSON");
  has("{}", "no \"model\"");
  has(R"({"model":{"type":"Unigram"}})", "model.type is \"Unigram\"; need BPE");
  has(R"({"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}})", "model.vocab[\"a\"] is -1");
  has(R"({"model":{"type":"BPE","vocab":{"a":9000000},"merges":[]}})", "need a number below 1026");
  has(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}})", "model.merges[0] is \"a b\"");
  has(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]}})", "result is a token");
  has(R"({"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}})", "need another number");
  has(R"({"pre_tokenizer":{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"},
          "model":{"type":"BPE","vocab":{"a":0},"merges":[]}})",
      "pre_tokenizer.pattern.Regex is \"(\"");
  has(R"({"decoder":{"type":"CTC"},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}})",
      "decoder.type is \"CTC\"");
  const Tokenizer t = Tokenizer::bytes();
  EXPECT_THROW(t.decode({256}), IndexError);
  EXPECT_THROW(t.token(-1), IndexError);
}

TEST(Tokenizer, a_pattern_that_explodes_is_refused) {
  const Tokenizer t = Tokenizer::parse("t", R"x({"pre_tokenizer":{"type":"Split","pattern":
      {"Regex":"(a+)+\\z"},"behavior":"Isolated"},"model":{"type":"BPE","unk_token":"a",
      "vocab":{"a":0},"merges":[]}})x");
  EXPECT_THROW(t.encode(std::string(60, 'a') + "b"), ValueError);
}

TEST(Tokenizer, long_words_take_little_longer_than_short_ones) {
  // A word of 200 000 characters: with a scan of the whole word per merge this would not end.
  const Tokenizer t =
      Tokenizer::train_bpe({"ab ab abab abab"}, {.vocabulary = 20, .byte_level = false});
  std::string word;
  for (int i = 0; i < 100'000; ++i) word += "ab";
  EXPECT_EQ(t.encode(word).ids.size(), 50'000u);
}

TEST(Tokenizer, threads_share_one) {
  const Tokenizer t = Tokenizer::train_bpe({"the cat sat on the mat"}, {.vocabulary = 270});
  const std::vector<int64_t> want = t.encode("the mat sat on the cat").ids;
  std::vector<std::thread> threads;
  std::vector<int> good(4);
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int r = 0; r < 200; ++r) good[i] += t.encode("the mat sat on the cat").ids == want;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int g : good) EXPECT_EQ(g, 200);
}

}  // namespace
}  // namespace cutaway::data
