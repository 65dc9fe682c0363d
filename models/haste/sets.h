#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <cutaway/models/haste/data.h>

namespace cutaway::haste {

// A sample before its words and labels are numbered.
struct Document {
  std::string name, text;
  std::vector<std::string> labels;
  bool test = false;
};
struct BuildOptions {
  int64_t min_positives = 2;  // labels with fewer training samples are dropped
  int64_t min_words = 3;      // words in fewer training texts are dropped
};
// Numbers labels by training frequency (ties by name) and words by fit_vectorizer; samples that
// keep no label are dropped. ValueError when no training or no test sample is left.
XmcSet build_set(const std::string& name, const std::vector<Document>& documents,
                 const BuildOptions& options = {});

// A record of a Debian package index.
struct DebianRecord {
  std::string package, source, description;  // source: the package itself unless given
  std::vector<std::string>
      depends;  // Depends and Pre-Depends: first alternatives, bare names, once
  std::vector<std::string> tags;
};
// Paragraphs "Field: value" between blank lines, continued by lines that begin with a blank.
// IoError names file, line and value: a line that is no field, a paragraph without Package, a
// field that is there twice.
std::vector<DebianRecord> parse_packages(const std::string& name, std::string_view text);
// One file, plain, .gz or .lz4; or the index of this machine (/var/lib/apt/lists) for "": all its
// *_Packages* files, a package of several by the first. IoError when there is none.
std::vector<DebianRecord> read_packages(const std::string& path = "");
// The same, back as paragraphs.
std::string packages_text(const std::vector<DebianRecord>& records);
// About `count` records: whole sources, by the hash of their name.
std::vector<DebianRecord> extract(const std::vector<DebianRecord>& records, int64_t count);

enum class Split : uint8_t { source, name };
struct DebianOptions {
  Split split = Split::source;  // what stays on one side: all packages of a source, or each alone
  bool tags = false;            // labels are debtags instead of dependencies
  double test = 0.2;            // share of names whose hash puts them into the test part
  int64_t limit = 0;            // at most so many records with labels (by hash of the name); 0: all
};
// Text: the words of the package name and the short description.
std::vector<Document> debian_documents(const std::vector<DebianRecord>& records,
                                       const DebianOptions& options = {});

// Nouns of WordNet's data.noun: text = gloss and lemmas; labels = all hypernyms up to the root and
// the domains (topic, region, usage) of the synset, as "lemma.n.offset". One sixth is the test
// part, by hash of the name. IoError names file, line and value.
std::vector<Document> parse_wordnet(const std::string& name, std::string_view text);

// "row label" pairs, one a line, of a set with these sizes. IoError names file, line and value.
Csr parse_filter(const std::string& name, std::string_view text, int64_t rows, int64_t labels);

// Folders of the Extreme Classification Repository, each file plain or .gz:
//   sparse     train.txt and test.txt; words.txt and labels.txt with names, one a line, if there
//   raw text   train_raw_texts.txt, train_labels.txt and the same for test: a line a sample
//   JSON lines trn.json (train.json), tst.json (test.json), lbl.json: title, content, target_ind
// filter_labels_test.txt beside them is read. IoError names file, line and value.
XmcSet read_folder(const std::string& folder);

enum class FolderFormat : uint8_t { sparse, raw, json };
// Writes a set in one of these layouts, so that read_folder gives it back: sparse with names of
// words and labels; raw and json from the texts, with names of labels. With `packed` the files end
// in .gz. ValueError when raw or json are asked of a set without texts.
void write_folder(const XmcSet& set, const std::string& folder, FolderFormat format,
                  bool packed = false);

struct SetOptions {
  // synth; debian-deps, debian-tags (the index of this machine, or debian-deps:FILE);
  // debian-sample, debian-sample-tags, wordnet-sample (shipped); wordnet (package wordnet-base, or
  // wordnet:FILE); a folder (read_folder); or a sparse text file, with `test` for its other part.
  std::string name = "synth";
  std::string test;    // sparse text file
  std::string filter;  // file of pairs; "": that of the folder, if any
  SynthOptions synth;
  DebianOptions debian;
  BuildOptions build;
  bool weigh = true;  // turn whole-number counts of sparse files into tf-idf
};
// Reads the set and its vectorizer; sample sets keep words, names and texts. IoError or ValueError
// says what is missing and which package brings it.
XmcSet open_set(const SetOptions& options);

}  // namespace cutaway::haste
