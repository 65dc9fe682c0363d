#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/datasets/dataset.h>
#include <cutaway/models/zoo/graph.h>

namespace cutaway::zoo {
namespace {

struct City {
  std::string name;
  double north = 0, west = 0;  // degrees · 100
};
struct Miles {
  std::vector<City> cities;
  std::vector<std::vector<double>> roads;  // roads[i][j], j < i
};

[[noreturn]] void damaged(const std::string& path, int64_t line, const char* what) {
  throw IoError("miles_task", fmt::format("{} line {}: {}", path, line, what));
}

// A number at the start of `text`, which it is taken from.
bool take_number(std::string_view& text, double& value) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc()) return false;
  text.remove_prefix(size_t(end - text.data()));
  value = double(n);
  return true;
}

// "Youngstown, OH[4110,8065]115436"
bool read_city(std::string_view line, City& city) {
  const size_t open = line.find('[');
  if (open == std::string_view::npos) return false;
  city.name = line.substr(0, open);
  std::string_view rest = line.substr(open + 1);
  if (!take_number(rest, city.north) || !rest.starts_with(",")) return false;
  rest.remove_prefix(1);
  return take_number(rest, city.west) && rest.starts_with("]");
}

// Each city with the distances to those before it, the last one first; "*" begins a remark.
Miles read_miles(const std::string& path) {
  const io::Bytes bytes = io::read_maybe_gzip(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Miles m;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line[0] == '*') continue;
    if (std::isalpha(static_cast<unsigned char>(line[0]))) {
      City city;
      if (!read_city(line, city)) damaged(path, number, "a city must be name[north,west]people");
      m.cities.push_back(std::move(city));
      m.roads.emplace_back();
      continue;
    }
    if (m.cities.empty()) damaged(path, number, "distances before a city");
    while (!line.empty()) {
      double miles = 0;
      if (!take_number(line, miles)) damaged(path, number, "a distance must be a whole number");
      m.roads.back().push_back(miles);
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    }
  }
  for (size_t i = 0; i < m.roads.size(); ++i) {
    if (m.roads[i].size() != i) damaged(path, 0, "a city lacks distances");
    std::reverse(m.roads[i].begin(), m.roads[i].end());
  }
  if (m.cities.size() < 2) damaged(path, 0, "there are no cities");
  return m;
}

Edges nearest(const Miles& m, int64_t neighbours) {
  const size_t n = m.cities.size();
  const auto miles = [&](size_t a, size_t b) { return a > b ? m.roads[a][b] : m.roads[b][a]; };
  std::vector<std::vector<bool>> joined(n, std::vector<bool>(n));
  for (size_t i = 0; i < n; ++i) {
    std::vector<size_t> others;
    for (size_t j = 0; j < n; ++j) {
      if (j != i) others.push_back(j);
    }
    std::stable_sort(others.begin(), others.end(),
                     [&](size_t a, size_t b) { return miles(i, a) < miles(i, b); });
    const size_t most = std::min(others.size(), size_t(std::max<int64_t>(neighbours, 0)));
    for (size_t k = 0; k < most; ++k) joined[i][others[k]] = joined[others[k]][i] = true;
  }
  std::vector<int64_t> from, to;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      if (!joined[i][j]) continue;
      from.push_back(int64_t(i));
      to.push_back(int64_t(j));
    }
  }
  return {index_tensor(from), index_tensor(to), int64_t(n)};
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + int64_t(v.size() / 2), v.end());
  return v[v.size() / 2];
}

}  // namespace

NodeTask miles_task(int64_t neighbours) {
  const Miles m = read_miles(data::samples_folder() + "/graph/sgb_miles.txt.gz");
  NodeTask task{.name = "miles", .edges = nearest(m, neighbours)};
  task.classes = {"north-east", "north-west", "south-east", "south-west"};
  std::vector<double> north, west;
  for (const City& c : m.cities) {
    north.push_back(c.north);
    west.push_back(c.west);
  }
  const double middle = median(north), centre = median(west);
  std::vector<int64_t> labels, told_of(task.classes.size());
  constexpr int64_t kTold = 5;
  for (size_t i = 0; i < m.cities.size(); ++i) {
    const int64_t label = (m.cities[i].north < middle ? 2 : 0) + (m.cities[i].west > centre);
    labels.push_back(label);
    (told_of[size_t(label)]++ < kTold ? task.told : task.asked).push_back(int64_t(i));
    task.nodes.push_back(m.cities[i].name);
  }
  task.labels = index_tensor(labels);
  task.features = eye(int64_t(m.cities.size()));
  return task;
}

}  // namespace cutaway::zoo
