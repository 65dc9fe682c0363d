#include <cutaway/models/grokking/task.h>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cmath>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>

namespace cutaway::grokking {

const char* law_name(Law law) {
  switch (law) {
    case Law::commutativity:
      return "commutativity";
    case Law::associativity:
      return "associativity";
    case Law::triangle:
      return "triangle";
    default:
      return "transitivity";
  }
}

bool Task::has(Law law) const { return std::find(laws.begin(), laws.end(), law) != laws.end(); }

std::string Task::describe(int64_t row) const {
  std::string s;
  for (int64_t i = 0; i < length; ++i) {
    s += (i ? ", " : "(") + tokens[size_t(inputs[size_t(row * length + i)])];
  }
  return s + ") = " + classes[size_t(answers[size_t(row)])];
}

void fill_pairs(Task& task, const std::function<int64_t(int64_t, int64_t)>& answer) {
  const int64_t n = task.entities;
  task.length = 2;
  for (int64_t a = 0; a < n; ++a) {
    for (int64_t b = 0; b < n; ++b) {
      task.inputs.insert(task.inputs.end(), {a, b});
      task.answers.push_back(answer(a, b));
      task.pool.push_back(a * n + b);
      task.mirror.push_back(b * n + a);
    }
  }
  for (int i = 0; i < 3; ++i) task.ranges[i] = n;
  task.row = [n](int64_t a, int64_t b) { return a * n + b; };
}

int64_t draw_below(Generator& generator, int64_t n) {
  // SplitMix64 of the position: the generator only counts.
  uint64_t z = generator.seed * 0xD1342543DE82EF95u + generator.stream * 0x9E3779B97F4A7C15u +
               generator.reserve(1) * 0xBF58476D1CE4E5B9u;
  for (int i = 0; i < 2; ++i) {
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
  }
  return int64_t((unsigned __int128)(z)*uint64_t(n) >> 64);
}

bool is_prime(int64_t p) {
  if (p < 2) return false;
  for (int64_t q = 2; q * q <= p; ++q) {
    if (p % q == 0) return false;
  }
  return true;
}

int64_t primitive_root(int64_t p) {
  for (int64_t g = 1; g < p; ++g) {
    int64_t x = g, order = 1;
    for (; x != 1; x = x * g % p) ++order;
    if (order == p - 1) return g;
  }
  return 1;
}

std::vector<int64_t> discrete_log(int64_t p) {
  std::vector<int64_t> log(size_t(p), 0);
  const int64_t g = primitive_root(p);
  for (int64_t k = 0, x = 1; k < p - 1; ++k, x = x * g % p) log[size_t(x)] = k;
  return log;
}

std::vector<std::vector<std::string>> read_fields(const std::string& path, const char* separators) {
  const io::Bytes bytes = io::read_file(path);
  const std::string text(bytes.begin(), bytes.end()), all(separators);
  std::vector<std::vector<std::string>> lines;
  size_t from = 0;
  while (from < text.size()) {
    const size_t end = std::min(text.find('\n', from), text.size());
    std::vector<std::string> fields;
    const bool list = all.find(',') != std::string::npos;
    size_t at = from;
    while (at <= end) {
      const size_t stop = std::min(text.find_first_of(all + "\n", at), end);
      std::string field = text.substr(at, stop - at);
      while (!field.empty() && (field.back() == '\r' || field.back() == ' ')) field.pop_back();
      while (!field.empty() && field.front() == ' ') field.erase(0, 1);
      if (list || !field.empty()) fields.push_back(field);
      at = stop + 1;
    }
    from = end + 1;
    const bool empty = fields.empty() || (fields.size() == 1 && fields[0].empty());
    if (!empty && fields[0].front() != '#') lines.push_back(fields);
  }
  if (lines.empty()) throw IoError("grok", path + " holds no line");
  return lines;
}

int64_t whole_number(const std::string& text, const std::string& where) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    throw ValueError("grok", fmt::format("{}: \"{}\" is not a whole number", where, text));
  }
  return value;
}

Split split(const Task& task, const SplitOptions& options) {
  if (!(options.fraction > 0 && options.fraction < 1)) {
    throw ValueError(
        "grok", fmt::format("--train-frac must lie between 0 and 1; got {}", options.fraction));
  }
  Generator generator{.seed = options.seed, .stream = 11};
  Split s;
  s.in_train.assign(size_t(task.rows()), 0);
  // Units that stay together: single inputs, or an input and its mirror image.
  std::vector<int64_t> units;
  const bool pairs = options.unordered && !task.mirror.empty();
  for (int64_t row : task.pool) {
    if (!pairs || row <= task.mirror[size_t(row)]) units.push_back(row);
  }
  std::vector<uint8_t> wanted(size_t(task.rows()), 0);
  for (int64_t row : task.pool) wanted[size_t(row)] = 1;
  const auto order = permutation(int64_t(units.size()), generator);
  const auto train_units = size_t(std::llround(options.fraction * double(units.size())));
  for (size_t i = 0; i < units.size(); ++i) {
    const int64_t row = units[size_t(order[i])];
    auto& side = i < train_units ? s.train : s.test;
    side.push_back(row);
    const int64_t other = pairs ? task.mirror[size_t(row)] : row;
    if (other != row && wanted[size_t(other)]) side.push_back(other);
  }
  for (auto* side : {&s.train, &s.test}) std::sort(side->begin(), side->end());
  for (int64_t row : s.train) s.in_train[size_t(row)] = 1;
  if (s.train.empty() || s.test.empty()) {
    throw ValueError(
        "grok", fmt::format("--train-frac {} leaves {} training and {} test inputs of {}",
                            options.fraction, s.train.size(), s.test.size(), task.pool.size()));
  }
  return s;
}

Tuples sample(const Task& task, Law law, Generator& generator, const SampleOptions& options) {
  Tuples t{.law = law};
  t.width = law == Law::commutativity || law == Law::associativity ? 2 : task.binary ? 6 : 3;
  if (!task.has(law)) {
    throw ValueError("grok", fmt::format("{} does not hold for task {}", law_name(law), task.name));
  }
  int64_t rows[6];
  for (int64_t tries = 0; t.count() < options.count; ++tries) {
    if (tries > 2000 * (options.count + 10)) {
      throw ValueError("grok", fmt::format("found only {} instances of {} in task {}", t.count(),
                                           law_name(law), task.name));
    }
    int64_t v[4];
    for (int i = 0; i < 4; ++i) v[i] = draw_below(generator, task.ranges[i]);
    if (!task.instance(law, v, rows)) continue;
    bool touches = options.touch == nullptr;
    for (int i = 0; i < t.width && !touches; ++i) {
      touches = options.touch->in_train[size_t(rows[i])];
    }
    if (touches) t.rows.insert(t.rows.end(), rows, rows + t.width);
  }
  return t;
}

std::vector<std::pair<std::string, std::string>> known_tasks() {
  return {{"add", "x + y mod p"},
          {"sub", "x − y mod p"},
          {"sq", "(x + y)² mod p"},
          {"cube", "(x + y)³ mod p"},
          {"mul", "x y mod p"},
          {"affine", "x + x y + y mod p"},
          {"quad", "x² + x y + y² mod p: commutative, not associative"},
          {"s5", "composition of permutations of 5: associative, not commutative"},
          {"random", "a random p × p table: no symmetry"},
          {"table:FILE", "a square table of whole numbers, comma-separated"},
          {"graph:NAME",
           "hop distances of path, cycle, cylinder, hypercube, lattice, lattice3d, "
           "karate"},
          {"graph:FILE", "distances of an edge list: u v [weight]"},
          {"compare:2d|3d", "order of entities on a grid of attributes"},
          {"compare:FILE", "a table name,attribute,… with numbers"}};
}

Task make_task(const TaskOptions& options) {
  if (options.name.starts_with("graph:")) return graph_task(options);
  if (options.name.starts_with("compare:")) return compare_task(options);
  return table_task(options);
}

}  // namespace cutaway::grokking
