#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway::data {

// What a text becomes.
struct Encoding {
  std::vector<int64_t> ids;
  // Bytes [begin,end) of the text behind each token, when asked for; a token that ends inside a
  // character has the whole character, tokens that a template adds have [0,0).
  std::vector<std::pair<int64_t, int64_t>> offsets;
  std::vector<int64_t> types;    // 0 for the first text, 1 for the second of a pair
  std::vector<uint8_t> special;  // 1 for tokens that the template adds, as [CLS]
};
struct EncodeOptions {
  bool special = true;     // add the template's tokens
  bool offsets = false;    // fill Encoding::offsets
  int64_t max_length = 0;  // tokens kept, special ones among them; 0: all
};

struct BatchOptions {
  bool special = true;
  int64_t max_length = 0;  // longer texts are cut; 0: none is
  int64_t pad_to = 0;      // width; 0: that of the longest text
  int64_t multiple = 1;    // the width is raised to a multiple of this
  bool pad_left = false;
};
// Texts side by side: i64 [N,T] each. mask is 1 for tokens and 0 for padding.
struct BatchEncoding {
  Tensor ids, mask, types;
};

struct DecodeOptions {
  bool skip_special = true;  // leave out special tokens
};

// A token that is found in text before anything else is done to it.
struct AddedToken {
  std::string text;
  int64_t id = -1;  // −1: the next free one
  bool special = true;
  bool single_word = false;             // only between characters that are no letters, digits or _
  bool lstrip = false, rstrip = false;  // takes the white space beside it
  bool normalized = false;              // is looked for in normalised text
};

// How BPE and WordPiece tokenizers are trained.
struct TrainTokenizerOptions {
  int64_t vocabulary = 8192;         // tokens in all; fewer when nothing is left to merge
  int64_t min_count = 2;             // a pair seen less often is not merged
  std::vector<std::string> special;  // tokens with the first numbers, such as <|endoftext|>
  // BPE: bytes with GPT-2's words, or characters with words between white space (which is lost).
  bool byte_level = true;
  bool lowercase = true;  // WordPiece: BERT's uncased normaliser
};

struct TokenizerParts;

// Text to numbers and back. A value: copies share what is read only; all functions may be called
// from several threads.
class Tokenizer {
 public:
  // 256 tokens, one for each byte: any text, and any other bytes, round trip.
  static Tokenizer bytes();
  // One token for each different character, in the order of Unicode. Raises ValueError when there
  // is none, or the text is not UTF-8.
  static Tokenizer characters(std::string_view text);
  // Byte pair encoding (Sennrich et al. 2016). Each merge takes the most frequent pair, of equally
  // frequent ones that of the smallest numbers (left one first). Raises ValueError for options out
  // of range and text that is not UTF-8.
  static Tokenizer train_bpe(const std::vector<std::string>& texts,
                             const TrainTokenizerOptions& options = {});
  // BERT's words and normaliser with [PAD] [UNK] [CLS] [SEP] [MASK]; tokens by the merges of BPE
  // over characters, as above; inside words they begin with ##.
  static Tokenizer train_wordpiece(const std::vector<std::string>& texts,
                                   const TrainTokenizerOptions& options = {});
  // By path: tokenizer.json of Hugging Face (BPE, WordPiece, WordLevel), vocab.txt of BERT, or
  // vocab.json with merges.txt beside it; or a folder with one of them. Raises IoError naming file,
  // key and value.
  static Tokenizer load(const std::string& path);
  // A tokenizer.json in memory; `name` stands in messages.
  static Tokenizer parse(const std::string& name, std::string_view json);
  // vocab.txt: one token a line; lower: BERT's uncased normaliser.
  static Tokenizer parse_vocabulary(const std::string& name, std::string_view text,
                                    bool lower = true);
  // vocab.json and merges.txt of GPT-2.
  static Tokenizer parse_gpt2(const std::string& vocabulary_name, std::string_view vocabulary,
                              const std::string& merges_name, std::string_view merges);
  explicit Tokenizer(TokenizerParts parts);

  // As tokenizer.json; what is parsed from it encodes alike.
  std::string to_json() const;
  void save(const std::string& path) const;

  // Raises ValueError for text that is not UTF-8 (but for bytes()), text of 4 GiB or more, a
  // character that has no token when there is none for unknown ones, and a max_length below the
  // number of special tokens.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options = {}) const;
  // Raises ValueError as encode, and when padding is needed but there is no token for it.
  BatchEncoding encode_batch(const std::vector<std::string>& texts,
                             const BatchOptions& options = {}) const;
  // Bytes, which are not UTF-8 when tokens end inside a character. Raises IndexError for an id that
  // is no token.
  std::string decode(const std::vector<int64_t>& ids, const DecodeOptions& options = {}) const;

  int64_t vocabulary() const;  // one above the largest id
  // Raises IndexError.
  const std::string& token(int64_t id) const;
  std::optional<int64_t> find(std::string_view token) const;
  std::optional<int64_t> pad() const;
  // "BPE", "WordPiece" or "WordLevel".
  const char* model() const;
  int64_t merges() const;
  const TokenizerParts& parts() const { return *parts_; }

 private:
  std::shared_ptr<const TokenizerParts> parts_;
  struct Cache;
  std::shared_ptr<Cache> cache_;
};

}  // namespace cutaway::data
