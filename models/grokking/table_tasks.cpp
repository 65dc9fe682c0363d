// Tables of a binary operation: modular arithmetic, S_5, random, and the user's own.
#include <cutaway/models/grokking/task.h>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <numeric>

#include <cutaway/core/error.h>

namespace cutaway::grokking {
namespace {

int64_t mod(int64_t x, int64_t p) { return (x % p + p) % p; }

struct Rule {
  const char* name;
  int64_t (*answer)(int64_t x, int64_t y);  // before reduction mod p
  bool prime;                               // p must be a prime
};
constexpr Rule kRules[] = {
    {"add", [](int64_t x, int64_t y) { return x + y; }, false},
    {"sub", [](int64_t x, int64_t y) { return x - y; }, false},
    {"sq", [](int64_t x, int64_t y) { return (x + y) * (x + y); }, false},
    {"cube", [](int64_t x, int64_t y) { return (x + y) * (x + y) * (x + y); }, false},
    {"mul", [](int64_t x, int64_t y) { return x * y; }, true},
    {"affine", [](int64_t x, int64_t y) { return x + x * y + y; }, true},
    {"quad", [](int64_t x, int64_t y) { return x * x + x * y + y * y; }, false},
};

void name_numbers(Task& t, int64_t n) {
  t.entities = n;
  for (int64_t i = 0; i < n; ++i) t.tokens.push_back(std::to_string(i));
  t.classes = t.tokens;
}

// The circle of the theory: Z_p in natural order, or by discrete logarithm.
void set_order(Task& t, const std::string& name, int64_t p) {
  t.modulus = p;
  if (name == "mul" || name == "affine") {
    const int64_t shift = name == "affine";
    t.order.resize(size_t(p - 1));
    const auto log = discrete_log(p);
    for (int64_t x = 1; x < p; ++x) t.order[size_t(log[size_t(x)])] = mod(x - shift, p);
  } else if (name == "add" || name == "sub" || name == "sq" || name == "cube") {
    t.order.resize(size_t(p));
    std::iota(t.order.begin(), t.order.end(), 0);
  }
}

// Pairs with equal answers, by the law: the table of section 3.
void set_modular_laws(Task& t, const Rule& rule, bool unchecked) {
  const std::string name = rule.name;
  const int64_t p = t.entities;
  const bool sub = name == "sub", sum = name == "sq" || name == "cube";
  t.laws = {Law::commutativity};
  if (name != "quad") t.laws.push_back(Law::associativity);
  const auto answer = rule.answer;
  const auto inner = [=](int64_t x, int64_t y) { return mod(sum ? x + y : answer(x, y), p); };
  const bool proxy = sub && !unchecked;
  t.instance = [=](Law law, const int64_t* v, int64_t* rows) {
    const int64_t x = v[0], y = v[1], z = v[2];
    if (law == Law::commutativity) {
      rows[0] = x * p + (proxy ? mod(-y, p) : y);
      rows[1] = y * p + (proxy ? mod(-x, p) : x);
    } else {
      rows[0] = inner(x, y) * p + z;
      rows[1] = x * p + (sub ? mod(y + z, p) : inner(y, z));
    }
    return true;
  };
  // Soft associativity needs the inner term as a prediction: x − (y + z) has it as y − (−z).
  if (!sum && name != "quad") t.second = [=](int64_t z) { return sub ? mod(-z, p) : z; };
}

// The first x, y, z at which (x∘y)∘z and x∘(y∘z) differ, for messages.
std::string broken_triple(const Task& t) {
  const auto at = [&](int64_t x, int64_t y) { return t.answers[size_t(t.row(x, y))]; };
  const int64_t n = t.entities;
  for (int64_t i = 0; i < n * n * n; ++i) {
    const int64_t x = i / (n * n), y = i / n % n, z = i % n;
    const int64_t left = at(at(x, y), z), right = at(x, at(y, z));
    if (left != right) {
      return fmt::format("(x∘y)∘z = {}, x∘(y∘z) = {} for x, y, z = {}, {}, {}", left, right, x, y,
                         z);
    }
  }
  return "";
}

using Table = std::vector<std::vector<int64_t>>;

// Laws that a table fulfils, found by trying all of them.
void set_table_laws(Task& t, const Table& table, bool unchecked) {
  const int64_t n = t.entities;
  const auto at = [&](int64_t x, int64_t y) { return table[size_t(x)][size_t(y)]; };
  bool commutes = true, closed = true;
  for (int64_t x = 0; x < n; ++x) {
    for (int64_t y = 0; y < n; ++y) {
      commutes &= at(x, y) == at(y, x);
      closed &= at(x, y) < n;
    }
  }
  if (commutes || unchecked) t.laws.push_back(Law::commutativity);
  const std::string broken = closed ? broken_triple(t) : "answers are no entities";
  t.offence = broken;
  if (broken.empty()) {
    t.laws.push_back(Law::associativity);
    t.second = [](int64_t z) { return z; };
  }
  t.instance = [n, table](Law law, const int64_t* v, int64_t* rows) {
    const int64_t x = v[0], y = v[1], z = v[2];
    if (law == Law::commutativity) {
      rows[0] = x * n + y;
      rows[1] = y * n + x;
    } else {
      rows[0] = table[size_t(x)][size_t(y)] * n + z;
      rows[1] = x * n + table[size_t(y)][size_t(z)];
    }
    return true;
  };
}

Task from_table(const std::string& name, const Table& table, int64_t classes, bool unchecked) {
  Task t{.name = name};
  name_numbers(t, int64_t(table.size()));
  t.classes.clear();
  for (int64_t c = 0; c < classes; ++c) t.classes.push_back(std::to_string(c));
  fill_pairs(t, [&](int64_t a, int64_t b) { return table[size_t(a)][size_t(b)]; });
  set_table_laws(t, table, unchecked);
  return t;
}

Task random_table(const TaskOptions& o) {
  Generator g{.seed = o.seed, .stream = 23};
  Table table(size_t(o.p), std::vector<int64_t>(size_t(o.p)));
  for (auto& row : table) {
    for (int64_t& v : row) v = draw_below(g, o.p);
  }
  return from_table(o.name, table, o.p, o.unchecked);
}

Task s5(const TaskOptions& o) {
  using Permutation = std::array<int, 5>;
  std::vector<Permutation> all;
  Permutation now = {0, 1, 2, 3, 4};
  do all.push_back(now);
  while (std::next_permutation(now.begin(), now.end()));
  Table table(all.size(), std::vector<int64_t>(all.size()));
  for (size_t a = 0; a < all.size(); ++a) {
    for (size_t b = 0; b < all.size(); ++b) {
      Permutation c;
      for (size_t i = 0; i < 5; ++i) c[i] = all[a][size_t(all[b][i])];
      table[a][b] = std::lower_bound(all.begin(), all.end(), c) - all.begin();
    }
  }
  Task t = from_table(o.name, table, int64_t(all.size()), o.unchecked);
  for (size_t a = 0; a < all.size(); ++a) {
    std::string name;
    for (int i : all[a]) name += char('1' + i);
    t.tokens[a] = t.classes[a] = name;
  }
  return t;
}

Task table_file(const TaskOptions& o) {
  const std::string path = o.name.substr(6);
  const auto lines = read_fields(path, ",");
  Table table;
  int64_t classes = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].size() != lines.size()) {
      throw ValueError("grok",
                       fmt::format("{}: row {} has {} fields; need a square table, {} rows "
                                   "of {}",
                                   path, i + 1, lines[i].size(), lines.size(), lines.size()));
    }
    std::vector<int64_t> row;
    for (size_t j = 0; j < lines[i].size(); ++j) {
      const int64_t v =
          whole_number(lines[i][j], fmt::format("{}: row {}, column {}", path, i + 1, j + 1));
      if (v < 0 || v > 9999) {
        throw ValueError("grok", fmt::format("{}: row {}, column {}: {} is out of range; need 0 to "
                                             "9999",
                                             path, i + 1, j + 1, v));
      }
      classes = std::max(classes, v + 1);
      row.push_back(v);
    }
    table.push_back(row);
  }
  if (table.size() < 2) throw ValueError("grok", path + ": need at least 2 rows");
  return from_table(o.name, table, std::max(classes, int64_t(table.size())), o.unchecked);
}

}  // namespace

Task table_task(const TaskOptions& o) {
  if (o.name == "s5") return s5(o);
  if (o.name.starts_with("table:")) return table_file(o);
  if (o.p < 3 || o.p > 1000) {
    throw ValueError("grok", fmt::format("--p must lie between 3 and 1000; got {}", o.p));
  }
  if (o.name == "random") return random_table(o);
  for (const Rule& rule : kRules) {
    if (o.name != rule.name) continue;
    if (rule.prime && !is_prime(o.p)) {
      throw ValueError("grok", fmt::format("task {} needs a prime --p; {} is none", o.name, o.p));
    }
    Task t{.name = o.name};
    name_numbers(t, o.p);
    fill_pairs(t, [&](int64_t x, int64_t y) { return mod(rule.answer(x, y), o.p); });
    set_order(t, o.name, o.p);
    set_modular_laws(t, rule, o.unchecked);
    if (o.name == "quad") t.offence = broken_triple(t);
    return t;
  }
  std::string names;
  for (const auto& [name, about] : known_tasks()) names += (names.empty() ? "" : ", ") + name;
  throw ValueError("grok", fmt::format("there is no task \"{}\"; known are {}", o.name, names));
}

}  // namespace cutaway::grokking
