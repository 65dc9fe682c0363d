#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cutaway::data {

// Hash that lets maps of strings be asked with string views.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
};
template <class T>
using TextMap = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

// Tokens and their numbers; a number without a token has an empty one.
struct Vocabulary {
  std::vector<std::string> tokens;
  TextMap<int32_t> ids;

  // Gives the token the next number, or the one that it has.
  int32_t add(const std::string& token);
  // −1 when there is none.
  int32_t find(std::string_view token) const;
};

// A token of a word: bytes [begin,end) of it.
struct Piece {
  int32_t id;
  uint32_t begin, end;
};
// What splits words into tokens says of a character it cannot express.
inline constexpr int32_t kUnknownPiece = -1;

// Byte pair encoding (Sennrich et al. 2016): a word begins as its characters, or bytes, and the
// pair of neighbours that was learnt first is merged until none is left. Of equal pairs the left
// one goes first.
struct Bpe {
  struct Merge {
    int32_t left, right;
  };
  Vocabulary vocabulary;
  std::vector<Merge> merges;  // in the order learnt
  int32_t unknown = -1;
  std::string prefix, suffix;  // of tokens that do not begin, and that end, a word
  bool fuse_unknown = false, byte_fallback = false, whole_words = false;
  bool byte_level = false;  // characters are bytes, under names of GPT-2

  // Fills the tables below; false with the place of the first merge whose result is no token.
  bool prepare(size_t* bad_merge);
  // Adds the tokens of a word; kUnknownPiece for what has none.
  void split(std::string_view word, std::vector<Piece>& pieces) const;

 private:
  struct Result {
    int32_t rank, id;
  };
  void first_symbols(std::string_view word, std::vector<Piece>& symbols) const;
  void merge(std::vector<Piece>& symbols, std::vector<Piece>& pieces) const;
  std::unordered_map<uint64_t, Result> results_;
  std::array<int32_t, 256> byte_ids_{};      // byte_level
  std::array<int32_t, 256> fallback_ids_{};  // <0x00> …
};

// WordPiece as BERT applies it: the longest token that begins the word, then the longest that goes
// on, with `prefix`; a word that cannot be covered, or is too long, is unknown as a whole.
struct WordPiece {
  Vocabulary vocabulary;
  int32_t unknown = -1;
  std::string prefix = "##";
  int64_t longest_word = 100;  // characters

  void split(std::string_view word, std::vector<Piece>& pieces) const;
};

// A whole word is a token or unknown.
struct WordLevel {
  Vocabulary vocabulary;
  int32_t unknown = -1;

  void split(std::string_view word, std::vector<Piece>& pieces) const;
};

// GPT-2's name of a byte, one character; and the byte of such a character, −1 for others.
const std::string& byte_name(uint8_t byte);
int byte_of_name(char32_t c);

}  // namespace cutaway::data
