#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cutaway/autograd/op.h>
#include <cutaway/core/io/file.h>
#include <cutaway/models/train/run_data.h>
#include <cutaway/models/zoo/zoo.h>

#include <tools/commands.h>

namespace cutaway::tools {
namespace {

void print_section(const std::string& title,
                   const std::vector<std::pair<std::string, std::string>>& rows) {
  fmt::print("{}\n", title);
  for (const auto& [name, about] : rows) fmt::print("  {:<18} {}\n", name, about);
}

nlohmann::json as_json(const std::vector<std::pair<std::string, std::string>>& rows) {
  auto list = nlohmann::json::array();
  for (const auto& [name, about] : rows) list.push_back({{"name", name}, {"about", about}});
  return list;
}

int run_list(const std::string& json) {
  const auto models = zoo::known_models();
  using zoo::Kind;
  const std::pair<const char*, Kind> kinds[] = {{"examples and pictures", Kind::classifier},
                                                {"text, for language models", Kind::language},
                                                {"texts with classes", Kind::text},
                                                {"graphs", Kind::graph}};
  if (!json.empty()) {
    auto ops = nlohmann::json::array();
    for (const OpRecord* op : op_records())
      ops.push_back({{"name", op->name}, {"about", op->meaning}});
    auto datasets = nlohmann::json::array();
    for (const auto& [title, kind] : kinds) {
      for (auto& row : as_json(train::known_data(kind))) {
        row["kind"] = title;
        datasets.push_back(row);
      }
    }
    const nlohmann::json all = {{"models", as_json(models)}, {"datasets", datasets}, {"ops", ops}};
    io::write_file_atomic(json, all.dump(2) + "\n");
    return 0;
  }
  print_section("models    (cutaway train --model NAME)", models);
  fmt::print("data sets (cutaway train --data NAME)\n");
  for (const auto& [title, kind] : kinds) {
    print_section(fmt::format(" {}", title), train::known_data(kind));
  }
  fmt::print("ops       {}; cutaway ops lists them\n", op_records().size());
  return 0;
}

}  // namespace

void add_list(CLI::App& app, int& status) {
  auto json = std::make_shared<std::string>();
  CLI::App* c = app.add_subcommand("list", "List models, data sets and ops");
  c->footer("Example:\n  cutaway list");
  c->add_option("--json", *json, "Write the list to this file");
  c->callback([json, &status] { status = run_list(*json); });
}

}  // namespace cutaway::tools
