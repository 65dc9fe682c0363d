#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <cutaway/core/rng.h>

namespace cutaway::grokking {

// The symmetries of section 3: laws that tie predictions for different inputs together.
enum class Law : uint8_t { commutativity, associativity, triangle, transitivity };
const char* law_name(Law law);

// Inputs whose predictions one instance of a law compares, as rows of Task::inputs.
//   commutativity, associativity: two inputs with equal answers
//   triangle: ab, bc, ac with d(a,b) + d(b,c) = d(a,c)
//   transitivity: ab, bc, ac of strictly ordered entities; in the binary form each at ">" and "<"
struct Tuples {
  Law law = Law::commutativity;
  int width = 0;              // rows of one instance
  std::vector<int64_t> rows;  // [count, width]
  int64_t count() const { return width ? int64_t(rows.size()) / width : 0; }
};

// A finite table to learn: every input of `length` tokens has one answer.
struct Task {
  std::string name;
  int64_t entities = 0;             // tokens 0 … entities−1 are the things themselves
  std::vector<std::string> tokens;  // names: entities, then attributes or relations; "=" is implied
  std::vector<std::string> classes;
  int64_t length = 2;
  std::vector<int64_t> inputs;   // [rows, length]
  std::vector<int64_t> answers;  // [rows]
  std::vector<int64_t> pool;     // rows that are split into training and test inputs
  std::vector<Law> laws;         // those that hold
  int64_t modulus = 0;           // of modular tasks, else 0
  std::vector<int64_t> order;    // entities along the circle the theory predicts; empty: none
  std::vector<std::vector<double>> places;  // true coordinates of entities; empty: none
  std::vector<int64_t> mirror;              // row of (b,a) for row (a,b); empty when there is none
  std::string offence;                      // why associativity does not hold, for messages
  bool binary = false;                      // comparison with answers true and false

  int64_t rows() const { return int64_t(answers.size()); }
  int64_t vocabulary() const { return int64_t(tokens.size()) + 1; }
  bool has(Law law) const;
  // The rows of one instance of a law, from numbers v[i] below ranges[i] (entities, and the
  // attribute of a comparison); false when these numbers make none, such as three nodes not on a
  // shortest way. Knows the rule of the task, not which inputs are test inputs.
  std::function<bool(Law, const int64_t* v, int64_t* rows)> instance;
  int64_t ranges[4] = {1, 1, 1, 1};
  std::function<int64_t(int64_t, int64_t)> row;  // of the input (a, b), for length 2
  // z' with (y, z') ↦ the inner term of x ∘ (y ∘ z): soft associativity. Empty: not to be had.
  std::function<int64_t(int64_t)> second;
  std::string describe(int64_t row) const;  // "3 + 4 = 7" by names
};

struct TaskOptions {
  std::string name = "add";
  int64_t p = 47;
  int64_t pairs_max = 20000;  // of graphs: pairs beyond this many are sampled
  bool binary = false;        // comparison: the paper's form with true and false
  bool unchecked = false;     // commutativity as (x,y), (y,x) although the task lacks it
  uint64_t seed = 1;          // of the random table and of sampled pairs
};
// add sub sq cube mul affine quad random s5,
// graph:{path,cycle,cylinder,hypercube,lattice,lattice3d, karate,FILE}, compare:{2d,3d,FILE},
// table:FILE. Raises ValueError or IoError with one line that says what is wrong: p not prime where
// the task needs it, disconnected graphs, ragged tables, …
Task make_task(const TaskOptions& options);
// Names and one line each, for lists.
std::vector<std::pair<std::string, std::string>> known_tasks();

// The parts, in files of their own.
Task table_task(const TaskOptions& options);
Task graph_task(const TaskOptions& options);
Task compare_task(const TaskOptions& options);

// Adds an input with its answer; for length 2 all n² pairs in row-major order.
void fill_pairs(Task& task, const std::function<int64_t(int64_t, int64_t)>& answer);
// A whole number from 0 to n − 1; takes four numbers of the generator.
int64_t draw_below(Generator& generator, int64_t n);
bool is_prime(int64_t p);
// Smallest generator of the multiplicative group mod a prime, and the discrete logarithm to it
// (log[x] for x = 1 … p−1).
int64_t primitive_root(int64_t p);
std::vector<int64_t> discrete_log(int64_t p);
// Fields of a comma-separated file; lines without any are skipped. Raises IoError.
std::vector<std::vector<std::string>> read_fields(const std::string& path, const char* separators);
// A whole number; raises ValueError naming file and line.
int64_t whole_number(const std::string& text, const std::string& where);

// Which rows train. Raises ValueError when a side is empty.
struct Split {
  std::vector<int64_t> train, test;
  std::vector<uint8_t> in_train;  // [rows]
};
struct SplitOptions {
  double fraction = 0.5;
  uint64_t seed = 1;
  bool unordered = false;  // (b,a) stays on the side of (a,b)
};
Split split(const Task& task, const SplitOptions& options);

struct SampleOptions {
  int64_t count = 512;
  const Split* touch = nullptr;  // only instances with at least one training input
};
// Instances of a law. Raises ValueError when the task lacks the law, or none is found.
Tuples sample(const Task& task, Law law, Generator& generator, const SampleOptions& options);

}  // namespace cutaway::grokking
