// The list of studies: a paper is one declaration and one line.
#include <cutaway/models/reproduce/reproduce.h>

#include <cutaway/core/error.h>
#include <cutaway/models/bayes_attention/statements.h>
#include <cutaway/models/depth_law/statements.h>
#include <cutaway/models/grokking/reproduce.h>
#include <cutaway/models/haste/statements.h>

namespace cutaway::reproduce {

const std::vector<Study>& studies() {
  static const std::vector<Study> list = {grokking::kStudy, bayes::kStudy, depth::kStudy,
                                          haste::kStudy};
  return list;
}

const Study& study(const std::string& slug) {
  std::string known;
  for (const Study& s : studies()) {
    if (slug == s.slug) return s;
    known += (known.empty() ? "" : ", ") + std::string(s.slug);
  }
  throw ValueError("reproduce", "there is no study \"" + slug + "\"; known are: " + known);
}

}  // namespace cutaway::reproduce
