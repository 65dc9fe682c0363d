#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway::data {

// One sequence of a FASTA file: ">name description", then lines of letters, joined here.
struct FastaRecord {
  std::string name, description;
  std::string sequence;  // as it stands there; small letters are soft-masked repeats
};
enum class FastaAlphabet {
  dna,      // IUPAC codes of DNA and RNA: A C G T U R Y S W K M B D H V N, and - for a gap
  protein,  // the 20 amino acids, B J O U X Z, * for a stop and - for a gap
  any       // all letters, * and -
};
struct FastaOptions {
  FastaAlphabet alphabet = FastaAlphabet::dna;
};
// FASTA, plain or gzipped; blank lines and lines that begin with ; are left out. Raises IoError
// naming file, line and letter for one outside the alphabet, text before the first >, a record
// without a name or without letters, and a name that stands there twice.
std::vector<FastaRecord> load_fasta(const std::string& path, const FastaOptions& options = {});
std::vector<FastaRecord> parse_fasta(const std::string& name, std::string_view text,
                                     const FastaOptions& options = {});

// DNA letters as numbers, i64 [n]: A 0, C 1, G 2, T and U 3, all others (ambiguous or gaps) 4.
// Raises ValueError for what is no IUPAC code.
Tensor dna_tokens(std::string_view sequence);
// DNA letters as rows of A, C, G, T, f32 [n,4]: ambiguous ones share 1 among their bases (R: ½ A, ½
// G; N: ¼ each), gaps are 0. Raises ValueError for what is no IUPAC code.
Tensor dna_one_hot(std::string_view sequence);
// Where letters are small, u8 [n].
Tensor soft_mask(std::string_view sequence);

}  // namespace cutaway::data
