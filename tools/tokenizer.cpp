// tokenizer: train, apply and show tokenizers.
#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <iostream>
#include <iterator>
#include <sstream>

#include <cutaway/core/error.h>
#include <cutaway/core/io/json.h>
#include <cutaway/datasets/text/text_files.h>
#include <cutaway/datasets/text/tokenizer.h>

#include <tools/commands.h>

namespace cutaway::tools {
namespace {

struct TokenizerArgs {
  std::vector<std::string> data;
  data::TrainTokenizerOptions options;
  std::string kind = "bpe", out = "tokenizer.json", file, text, input;
  std::vector<std::string> ids;
  bool cased = false, plain = false, tokens = false, no_special = false;
};

std::string standard_input() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

std::string shown(const std::string& token) { return io::json_string(token); }

data::Tokenizer trained(const TokenizerArgs& a, const std::vector<std::string>& texts) {
  if (a.kind == "byte") return data::Tokenizer::bytes();
  if (a.kind == "char") {
    std::string all;
    for (const std::string& t : texts) all += t;
    return data::Tokenizer::characters(all);
  }
  data::TrainTokenizerOptions o = a.options;
  o.byte_level = !a.plain;
  o.lowercase = !a.cased;
  return a.kind == "bpe" ? data::Tokenizer::train_bpe(texts, o)
                         : data::Tokenizer::train_wordpiece(texts, o);
}

int run_train(const TokenizerArgs& a) {
  std::vector<std::string> texts;
  int64_t bytes = 0, tokens = 0;
  for (const std::string& name : a.data) {
    for (auto& [file, text] : data::open_corpus(name).files) {
      bytes += int64_t(text.size());
      texts.push_back(std::move(text));
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  const data::Tokenizer t = trained(a, texts);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  t.save(a.out);
  for (const std::string& text : texts) {
    tokens += int64_t(t.encode(text, {.special = false}).ids.size());
  }
  fmt::print("{}   {} tokens, {} merges   from {} bytes in {} files, {:.2f} s\n", t.model(),
             t.vocabulary(), t.merges(), bytes, texts.size(), seconds);
  fmt::print("{:.2f} bytes a token on this text\n",
             double(bytes) / double(std::max<int64_t>(tokens, 1)));
  fmt::print("written  {}\n", a.out);
  return 0;
}

int run_encode(const TokenizerArgs& a) {
  const data::Tokenizer t = data::Tokenizer::load(a.file);
  const std::string text = !a.input.empty()  ? data::load_text(a.input)
                           : !a.text.empty() ? a.text
                                             : standard_input();
  const data::Encoding e = t.encode(text, {.special = !a.no_special, .offsets = a.tokens});
  if (!a.tokens) {
    std::string line;
    for (const int64_t id : e.ids) line += fmt::format("{}{}", line.empty() ? "" : " ", id);
    fmt::print("{}\n", line);
    return 0;
  }
  for (size_t i = 0; i < e.ids.size(); ++i) {
    const auto [from, to] = e.offsets[i];
    fmt::print("{:>7}  {:<20} {:>6}..{:<6} {}\n", e.ids[i], shown(t.token(e.ids[i])), from, to,
               e.special[i] ? "special" : shown(text.substr(size_t(from), size_t(to - from))));
  }
  return 0;
}

std::vector<int64_t> parse_ids(const std::vector<std::string>& words) {
  std::vector<int64_t> ids;
  for (const std::string& all : words) {
    std::istringstream in(all);
    for (std::string w; in >> w;) {
      int64_t id = 0;
      const auto [end, error] = std::from_chars(w.data(), w.data() + w.size(), id);
      if (error != std::errc() || end != w.data() + w.size()) {
        throw ValueError("tokenizer", fmt::format("\"{}\" is not the number of a token", w));
      }
      ids.push_back(id);
    }
  }
  return ids;
}

int run_decode(const TokenizerArgs& a) {
  const data::Tokenizer t = data::Tokenizer::load(a.file);
  const auto ids = parse_ids(a.ids.empty() ? std::vector<std::string>{standard_input()} : a.ids);
  fmt::print("{}\n", t.decode(ids, {.skip_special = !a.no_special}));
  return 0;
}

int run_inspect(const TokenizerArgs& a) {
  const data::Tokenizer t = data::Tokenizer::load(a.file);
  fmt::print("{}   {} tokens   {} merges   padding {}\n", t.model(), t.vocabulary(), t.merges(),
             t.pad() ? shown(t.token(*t.pad())) : "none");
  std::vector<std::pair<size_t, int64_t>> longest;
  int64_t gaps = 0;
  for (int64_t id = 0; id < t.vocabulary(); ++id) {
    try {
      longest.emplace_back(t.token(id).size(), id);
    } catch (const IndexError&) {
      ++gaps;
    }
  }
  if (gaps > 0) fmt::print("{} numbers have no token\n", gaps);
  const auto row = [&](const char* title, size_t n, auto number) {
    std::string line;
    for (size_t i = 0; i < n; ++i) line += " " + shown(t.token(number(i)));
    fmt::print("{:<8}{}\n", title, line);
  };
  const size_t n = std::min<size_t>(12, longest.size());
  row("first", n, [&](size_t i) { return longest[i].second; });
  row("last", n, [&](size_t i) { return longest[longest.size() - n + i].second; });
  std::vector<std::pair<size_t, int64_t>> sorted = longest;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  row("longest", n, [&](size_t i) { return sorted[i].second; });
  return 0;
}

void add_train_part(CLI::App& app, const std::shared_ptr<TokenizerArgs>& a, int& status) {
  CLI::App* c = app.add_subcommand("train", "Make a tokenizer from text");
  c->footer(
      "Examples:\n"
      "  cutaway tokenizer train austen --vocabulary 2000 --out austen.json\n"
      "  cutaway tokenizer train book.txt more/ --kind wordpiece");
  c->add_option("text", a->data, "Text sets (austen), .txt or .txt.gz files, or folders")
      ->required();
  c->add_option("--kind", a->kind, "bpe, wordpiece, char or byte")
      ->capture_default_str()
      ->check(CLI::IsMember({"bpe", "wordpiece", "char", "byte"}));
  c->add_option("--vocabulary", a->options.vocabulary, "Tokens in all")->capture_default_str();
  c->add_option("--min-count", a->options.min_count, "Rarer pairs are not merged")
      ->capture_default_str();
  c->add_option("--special", a->options.special, "Special tokens, as '<|endoftext|>'");
  c->add_flag("--plain", a->plain, "bpe: characters and words, not bytes; white space is lost");
  c->add_flag("--cased", a->cased, "wordpiece: keep capitals and accents");
  c->add_option("--out", a->out, "File to write, as tokenizer.json")->capture_default_str();
  c->callback([a, &status] { status = run_train(*a); });
}

CLI::App* add_part(CLI::App& app, const char* name, const char* about, TokenizerArgs& a) {
  CLI::App* c = app.add_subcommand(name, about);
  c->add_option("tokenizer", a.file, "tokenizer.json, vocab.txt, vocab.json, or their folder")
      ->required();
  return c;
}

}  // namespace

void add_tokenizer(CLI::App& app, int& status) {
  auto a = std::make_shared<TokenizerArgs>();
  CLI::App* c = app.add_subcommand("tokenizer", "Train, apply and show tokenizers");
  c->footer(
      "Example:\n"
      "  cutaway tokenizer train austen --vocabulary 1000 --out austen.json\n"
      "  cutaway tokenizer encode austen.json 'Anne was there.' --tokens\n"
      "  cutaway train --model gpt --data austen --tokenizer austen.json\n"
      "Files are those of Hugging Face; those of BPE, WordPiece and WordLevel models are read.");
  c->require_subcommand(1);
  add_train_part(*c, a, status);
  CLI::App* encode = add_part(*c, "encode", "Text to numbers", *a);
  encode->footer("Example:\n  cutaway tokenizer encode austen.json 'Anne was there.' --tokens");
  encode->add_option("text", a->text, "Text; else --file, else standard input");
  encode->add_option("--file", a->input, "Text file");
  encode->add_flag("--tokens", a->tokens, "One token a line, with the bytes behind it");
  encode->add_flag("--no-special", a->no_special, "Without [CLS] and the like");
  encode->callback([a, &status] { status = run_encode(*a); });
  CLI::App* decode = add_part(*c, "decode", "Numbers to text", *a);
  decode->footer("Example:\n  cutaway tokenizer decode austen.json 36 290 17");
  decode->add_option("ids", a->ids, "Numbers; else standard input");
  decode->add_flag("--special", a->no_special, "Show special tokens");
  decode->callback([a, &status] { status = run_decode(*a); });
  CLI::App* inspect = add_part(*c, "inspect", "What a tokenizer consists of", *a);
  inspect->callback([a, &status] { status = run_inspect(*a); });
}

}  // namespace cutaway::tools
