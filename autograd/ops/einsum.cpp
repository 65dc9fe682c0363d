#include <cutaway/autograd/ops/einsum.h>

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <map>

#include <cutaway/autograd/ops/matmul.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

// One index name: a letter, or a dimension of the ellipsis (-1 is its last one, -2 the one before).
using Name = int;
using Names = std::vector<Name>;

constexpr Name kEllipsis = 0;

bool contains(const Names& names, Name name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn, gnu::cold]] void throw_equation(const std::string& equation, const std::string& rule,
                                            const char* hint = "") {
  throw ValueError("einsum", fmt::format("{}; got '{}'", rule, equation), hint);
}

// A tensor and the name of each of its dimensions.
struct Term {
  Tensor x;
  Names names;

  int place(Name name) const {
    return int(std::find(names.begin(), names.end(), name) - names.begin());
  }
  int64_t size(Name name) const { return x.sizes()[place(name)]; }
};

// Equation taken apart; the ellipsis is still one name.
struct Equation {
  std::vector<Names> operands;
  Names result;
  bool explicit_result = false;
};

Names parse_names(const std::string& equation, const std::string& part) {
  Names names;
  for (size_t i = 0; i < part.size(); ++i) {
    const char c = part[i];
    if (c == ' ') continue;
    if (c == '.') {
      if (part.compare(i, 3, "...") != 0) {
        throw_equation(equation, "a dot is only allowed as part of '...'");
      }
      if (contains(names, kEllipsis))
        throw_equation(equation, "'...' may occur once in an operand");
      names.push_back(kEllipsis);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(c))) {
      names.push_back(c);
    } else {
      throw_equation(equation, fmt::format("'{}' is not an index name", c),
                     "names are single letters a … z, A … Z");
    }
  }
  return names;
}

Equation parse(const std::string& equation) {
  Equation e;
  std::string left = equation;
  const size_t arrow = equation.find("->");
  if (arrow != std::string::npos) {
    e.explicit_result = true;
    left = equation.substr(0, arrow);
    e.result = parse_names(equation, equation.substr(arrow + 2));
  }
  size_t begin = 0;
  while (true) {
    const size_t comma = left.find(',', begin);
    e.operands.push_back(parse_names(equation, left.substr(begin, comma - begin)));
    if (comma == std::string::npos) break;
    begin = comma + 1;
  }
  return e;
}

// Replaces the ellipsis by `count` names, -count … -1.
Names spread(const Names& names, int count) {
  Names out;
  for (Name n : names) {
    if (n != kEllipsis) {
      out.push_back(n);
      continue;
    }
    for (int i = count; i > 0; --i) out.push_back(-i);
  }
  return out;
}

// Names that occur once, alphabetically, behind `open` names of the ellipsis.
Names implicit_result(const Equation& e, int open) {
  std::map<Name, int> count;
  for (const Names& names : e.operands) {
    for (Name n : names) ++count[n];
  }
  Names out = spread({kEllipsis}, open);
  for (const auto& [name, times] : count) {
    if (name != kEllipsis && times == 1) out.push_back(name);
  }
  return out;
}

std::string spell(Name name) {
  return name < 0 ? std::string("...") : std::string(1, static_cast<char>(name));
}

// A name that is used twice in one operand takes the diagonal.
void take_diagonals(const std::string& equation, Term& t) {
  for (size_t i = 0; i < t.names.size(); ++i) {
    for (size_t j = i + 1; j < t.names.size(); ++j) {
      if (t.names[i] != t.names[j]) continue;
      const Name name = t.names[i];
      if (t.x.sizes()[int(i)] != t.x.sizes()[int(j)]) {
        throw ShapeError("einsum", fmt::format("dimensions of one name must have equal sizes; got "
                                               "'{}' of {} in '{}'",
                                               spell(name), to_string(t.x.sizes()), equation));
      }
      t.x = diagonal(t.x, {.dim1 = int64_t(i), .dim2 = int64_t(j)});
      t.names.erase(t.names.begin() + int64_t(j));
      t.names.erase(t.names.begin() + int64_t(i));
      t.names.push_back(name);
      return take_diagonals(equation, t);
    }
  }
}

std::vector<Term> make_terms(const std::string& equation, const Equation& e,
                             const Tensors& operands) {
  if (e.operands.size() != operands.size()) {
    throw_equation(equation, fmt::format("the equation names {} operands, there are {}",
                                         e.operands.size(), operands.size()));
  }
  std::vector<Term> terms;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Names& names = e.operands[i];
    const bool open = contains(names, kEllipsis);
    const int named = int(names.size()) - open, rank = operands[i].dim();
    if (open ? rank < named : rank != named) {
      throw ShapeError("einsum", fmt::format("operand {} needs {}{} dimensions in '{}'; got {}", i,
                                             open ? "at least " : "", named, equation,
                                             to_string(operands[i].sizes())));
    }
    terms.push_back({operands[i], spread(names, rank - named)});
    take_diagonals(equation, terms.back());
  }
  return terms;
}

void check_sizes(const std::string& equation, const std::vector<Term>& terms) {
  std::map<Name, int64_t> sizes;
  for (const Term& t : terms) {
    for (Name n : t.names) {
      int64_t& have = sizes.try_emplace(n, 1).first->second;
      const int64_t now = t.size(n);
      if (have != 1 && now != 1 && have != now) {
        throw ShapeError("einsum", fmt::format("'{}' has sizes {} and {} in '{}'", spell(n), have,
                                               now, equation));
      }
      if (now != 1) have = now;
    }
  }
}

Names result_names(const std::string& equation, const Equation& e, const std::vector<Term>& terms) {
  int open = 0;  // dimensions of the ellipsis
  for (const Term& t : terms) {
    for (Name n : t.names) open = std::max(open, -n);
  }
  if (!e.explicit_result) return implicit_result(e, open);
  const Names out = spread(e.result, open);
  for (size_t i = 0; i < out.size(); ++i) {
    bool known = false;
    for (const Term& t : terms) known = known || contains(t.names, out[i]);
    if (!known) {
      throw_equation(equation,
                     fmt::format("'{}' of the result occurs in no operand", spell(out[i])));
    }
    if (std::count(out.begin(), out.end(), out[i]) > 1) {
      throw_equation(equation, fmt::format("'{}' occurs twice in the result", spell(out[i])));
    }
  }
  if (open > 0 && !contains(e.result, kEllipsis)) {
    throw_equation(equation, "the result must name '...' as the operands do");
  }
  return out;
}

// Sums the dimensions that are not in `needed`.
void sum_out(Term& t, const Names& needed) {
  Shape dims;
  Names kept;
  for (int d = 0; d < int(t.names.size()); ++d) {
    if (contains(needed, t.names[size_t(d)])) {
      kept.push_back(t.names[size_t(d)]);
    } else {
      dims.push_back(d);
    }
  }
  if (dims.empty()) return;
  const DType type = t.x.dtype();
  t.x = sum(t.x, dims);
  if (t.x.dtype() != type) t.x = t.x.to(type);  // integers keep their type, as products do
  t.names = kept;
}

// A dimension of size 1 that the other operand has longer only repeats: it is dropped.
void drop_repeated(Term& t, const Term& other) {
  for (size_t d = 0; d < t.names.size(); ++d) {
    const Name n = t.names[d];
    if (t.x.sizes()[int(d)] != 1 || !contains(other.names, n) || other.size(n) == 1) continue;
    t.x = t.x.squeeze(int64_t(d));
    t.names.erase(t.names.begin() + int64_t(d));
    return drop_repeated(t, other);
  }
}

Tensor arrange(const Term& t, const Names& order) {
  Shape dims;
  for (Name n : order) dims.push_back(t.place(n));
  for (int d = 0; d < dims.rank(); ++d) {
    if (dims[d] != d) return t.x.permute(dims);
  }
  return t.x;
}

// Product without a common sum: dimensions aligned by name.
Term multiply_aligned(const Term& a, const Term& b) {
  Names all = a.names;
  for (Name n : b.names) {
    if (!contains(all, n)) all.push_back(n);
  }
  const auto align = [&](const Term& t) {
    Names own;
    Shape sizes;
    for (Name n : all) {
      const bool has = contains(t.names, n);
      if (has) own.push_back(n);
      sizes.push_back(has ? t.size(n) : 1);
    }
    return arrange(t, own).reshape(sizes);
  };
  return {mul(align(a), align(b)), all};
}

int64_t total_size(const Term& t, const Names& names) {
  int64_t n = 1;
  for (Name name : names) n *= t.size(name);
  return n;
}

Names joined(Names a, const Names& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// a and b as one matrix product for each index of the names that both have and that stay.
Term contract(Term a, Term b, const Names& needed) {
  drop_repeated(a, b);
  drop_repeated(b, a);
  sum_out(a, joined(needed, b.names));
  sum_out(b, joined(needed, a.names));
  Names batch, inner, rows, columns;
  for (Name n : a.names) {
    const bool shared = contains(b.names, n);
    (!shared ? rows : contains(needed, n) ? batch : inner).push_back(n);
  }
  for (Name n : b.names) {
    if (!contains(a.names, n)) columns.push_back(n);
  }
  if (inner.empty()) return multiply_aligned(a, b);
  const int64_t count = total_size(a, batch), k = total_size(a, inner);
  const int64_t m = total_size(a, rows), n = total_size(b, columns);
  const Tensor left = arrange(a, joined(joined(batch, rows), inner)).reshape({count, m, k});
  const Tensor right = arrange(b, joined(joined(batch, inner), columns)).reshape({count, k, n});
  Term out{{}, joined(joined(batch, rows), columns)};
  Shape sizes;
  for (Name name : batch) sizes.push_back(a.size(name));
  for (Name name : rows) sizes.push_back(a.size(name));
  for (Name name : columns) sizes.push_back(b.size(name));
  out.x = (batch.empty() ? matmul(left.squeeze(0), right.squeeze(0)) : matmul(left, right))
              .reshape(sizes);
  return out;
}

}  // namespace

Tensor einsum(const std::string& equation, const Tensors& operands, std::source_location at) {
  CallScope scope(at);
  const Equation e = parse(equation);
  std::vector<Term> terms = make_terms(equation, e, operands);
  check_sizes(equation, terms);
  const Names result = result_names(equation, e, terms);
  Term y = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    Names needed = result;
    for (size_t j = i + 1; j < terms.size(); ++j) needed = joined(needed, terms[j].names);
    y = contract(y, terms[i], needed);
  }
  sum_out(y, result);
  return arrange(y, result);
}

Tensor tensordot(TensorArg a, TensorArg b, const Shape& dims_a, const Shape& dims_b) {
  CallScope scope(a.site);
  if (dims_a.rank() != dims_b.rank()) {
    throw ValueError("tensordot", fmt::format("as many dimensions of a as of b; got {} and {}",
                                              to_string(dims_a), to_string(dims_b)));
  }
  Term left{*a, {}}, right{*b, {}};
  for (int d = 0; d < a->dim(); ++d) left.names.push_back(1 + d);
  for (int d = 0; d < b->dim(); ++d) right.names.push_back(1 + kMaxRank + d);
  for (int i = 0; i < dims_a.rank(); ++i) {
    const int da = normalize_dim("tensordot", dims_a[i], a->dim());
    const int db = normalize_dim("tensordot", dims_b[i], b->dim());
    if (a->size(da) != b->size(db)) {
      throw ShapeError("tensordot",
                       fmt::format("sizes of paired dimensions must be equal; got a {} at {}, b {} "
                                   "at {}",
                                   to_string(a->sizes()), da, to_string(b->sizes()), db));
    }
    if (right.names[size_t(db)] <= kMaxRank) {
      throw ValueError("tensordot", fmt::format("dimension {} of b is named twice", db));
    }
    right.names[size_t(db)] = 1 + da;
  }
  Names result;
  for (Name n : left.names) {
    if (!contains(right.names, n)) result.push_back(n);
  }
  for (Name n : right.names) {
    if (n > kMaxRank) result.push_back(n);
  }
  Term y = contract(left, right, result);
  return arrange(y, result);
}

Tensor tensordot(TensorArg a, TensorArg b, int64_t n) {
  if (n < 0 || n > a->dim() || n > b->dim()) {
    throw ValueError("tensordot",
                     fmt::format("the number of dimensions must fit both operands; got "
                                 "{} for a {}, b {}",
                                 n, to_string(a->sizes()), to_string(b->sizes())));
  }
  Shape dims_a, dims_b;
  for (int64_t i = 0; i < n; ++i) {
    dims_a.push_back(a->dim() - n + i);
    dims_b.push_back(i);
  }
  return tensordot(a, b, dims_a, dims_b);
}

Tensor kron(TensorArg a, TensorArg b) {
  CallScope scope(a.site);
  if (a->dim() != 2 || b->dim() != 2) {
    throw ShapeError("kron", fmt::format("a and b must be matrices; got a {}, b {}",
                                         to_string(a->sizes()), to_string(b->sizes())));
  }
  const int64_t m = a->size(0), n = a->size(1), p = b->size(0), q = b->size(1);
  return mul(a->reshape({m, 1, n, 1}), b->reshape({1, p, 1, q})).reshape({m * p, n * q});
}

}  // namespace cutaway
