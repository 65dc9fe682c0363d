#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cutaway::data {

// Unicode as tokenizers need it, from the tables of utf8proc.

// Place of the first byte that does not belong to valid UTF-8; npos when all do.
size_t find_not_utf8(std::string_view text);
// The character at `at` of valid UTF-8 text; moves `at` behind it.
char32_t next_character(std::string_view text, size_t& at);
void append_character(std::string& text, char32_t c);
// Number of characters of valid UTF-8 text.
int64_t count_characters(std::string_view text);

bool is_white_space(char32_t c);  // property White_Space
bool is_letter_or_mark(char32_t c);
bool is_number(char32_t c);           // categories N*
bool is_punctuation(char32_t c);      // categories P*, and the signs of ASCII
bool is_other(char32_t c);            // controls, formats, private ones
bool is_mark(char32_t c);             // categories M*
bool is_nonspacing_mark(char32_t c);  // category Mn
bool is_word_character(char32_t c);   // \w of regular expressions: letters, marks, digits, _
bool is_ideograph(char32_t c);        // Chinese characters, which BERT takes as words
// Whether normal forms cannot change across a boundary before c.
bool begins_segment(char32_t c);

// Adds the lower case of c, which may be two characters.
void append_lower(std::string& text, char32_t c);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
// A normal form (Unicode Standard Annex 15) of valid UTF-8 text.
std::string normal_form(std::string_view text, NormalForm form);

}  // namespace cutaway::data
