#pragma once
#include <string>
#include <vector>

#include <cutaway/autograd/op.h>

namespace cutaway::tools {

// What a record says, as words: what it keeps for backward, the type under autocast, where it
// stands ("autograd/ops/softmax.cpp:69").
std::string saved_text(const OpRecord& op);
const char* compute_name(Compute c);
std::string source_text(const OpRecord& op);
// Name of the family a record belongs to, after its source file: "cross entropy".
std::string op_family(const OpRecord& op);

// The page of an op: what it computes, shapes, types, derivative, small cases with their values,
// and the messages of its errors. The cases are those of its tests.
std::string op_page(const OpRecord& op);
// Writes a page for every record, NAME.md, and README.md that lists them by family. Raises IoError.
void write_op_pages(const std::vector<const OpRecord*>& ops, const std::string& folder);

}  // namespace cutaway::tools
