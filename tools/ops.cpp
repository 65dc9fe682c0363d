#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cutaway/autograd/check.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>

#include <tools/commands.h>
#include <tools/op_pages.h>

namespace cutaway::tools {
namespace {

struct OpsArgs {
  std::string name, json, markdown, pages, device = "cpu";
  bool check = false, quiet = false;
};

void print_record(const OpRecord& op) {
  fmt::print("{}\n  {}\n  {}\n  {}\n", op.signature, op.meaning, op.formula, op.shapes);
  fmt::print("  types {}   {}   autocast {}\n", to_string(op.dtypes), op.determinism,
             compute_name(op.compute));
  if (op.backward) {
    fmt::print("  saves {}\n  backward  {}{}\n", saved_text(op), op.backward_text,
               op.fast_backward ? "   (fused kernel for the first order)" : "");
  } else {
    fmt::print("  no derivative: {}\n", op.no_gradient ? op.no_gradient : "");
  }
  fmt::print("  source {}\n", source_text(op));
}

// Runs the checks of some records; prints every failure, and unless quiet a line each.
int check(const std::vector<const OpRecord*>& ops, Device device, bool quiet) {
  int failed_ops = 0;
  size_t checks = 0;
  for (const OpRecord* op : ops) {
    int failures = 0;
    double worst_gradient = 0;
    const auto results = check_op(*op, device);
    for (const CheckResult& r : results) {
      if (r.check == "gradcheck") worst_gradient = std::max(worst_gradient, r.worst);
      if (r.ok) continue;
      ++failures;
      fmt::print("  FAIL {} {} \"{}\": {}\n", op->name, r.check, r.sample, r.message);
    }
    checks += results.size();
    failed_ops += failures > 0;
    if (quiet && failures == 0) continue;
    fmt::print("{} {:<24} {:>4} checks   gradcheck worst {:.1e}\n", failures ? "FAIL" : "PASS",
               op->name, results.size(), worst_gradient);
  }
  fmt::print("{} ops, {} checks, {} ops failed\n", ops.size(), checks, failed_ops);
  return failed_ops ? 1 : 0;
}

nlohmann::json record_json(const OpRecord& op) {
  return {{"name", op.name},
          {"signature", op.signature},
          {"meaning", op.meaning},
          {"formula", op.formula},
          {"shapes", op.shapes},
          {"dtypes", to_string(op.dtypes)},
          {"determinism", op.determinism},
          {"autocast", compute_name(op.compute)},
          {"backward", op.backward ? op.backward_text : ""},
          {"no_gradient", op.no_gradient ? op.no_gradient : ""},
          {"source", source_text(op)}};
}

std::string markdown(const std::vector<const OpRecord*>& ops) {
  std::string text = "# Ops\n\nMade from the op records by `cutaway ops --markdown FILE`.\n";
  for (const OpRecord* op : ops) {
    text +=
        fmt::format("\n## {}\n\n`{}`\n\n{}\n\n- formula: `{}`\n- shapes: `{}`\n- types: {}\n- {}\n",
                    op->name, op->signature, op->meaning, op->formula, op->shapes,
                    to_string(op->dtypes), op->determinism);
    text += op->backward
                ? fmt::format("- derivative: `{}`; saves {}\n", op->backward_text, saved_text(*op))
                : fmt::format("- no derivative: {}\n", op->no_gradient ? op->no_gradient : "");
    text += fmt::format("- source: `{}`\n", source_text(*op));
  }
  return text;
}

int run_ops(const OpsArgs& a) {
  std::vector<const OpRecord*> ops = op_records();
  if (!a.name.empty()) {
    ops.clear();
    std::string near;
    for (const OpRecord* op : op_records()) {
      if (a.name == op->name) ops.push_back(op);
      if (std::string(op->name).find(a.name) != std::string::npos)
        near += std::string(" ") + op->name;
    }
    if (ops.empty()) {
      throw ValueError("ops", fmt::format("there is no op \"{}\"", a.name),
                       near.empty() ? "cutaway ops lists them" : "near it:" + near);
    }
  }
  if (!a.json.empty()) {
    auto list = nlohmann::json::array();
    for (const OpRecord* op : ops) list.push_back(record_json(*op));
    io::write_file_atomic(a.json, list.dump(2) + "\n");
  }
  if (!a.markdown.empty()) io::write_file_atomic(a.markdown, markdown(ops));
  if (!a.pages.empty()) write_op_pages(ops, a.pages);
  if (a.check) return check(ops, device_from_name(a.device), a.quiet);
  if (!a.json.empty() || !a.markdown.empty() || !a.pages.empty()) return 0;
  if (!a.name.empty()) {
    print_record(*ops.front());
    return 0;
  }
  for (const OpRecord* op : ops) fmt::print("{:<24} {}\n", op->name, op->meaning);
  fmt::print("{} ops\n", ops.size());
  return 0;
}

}  // namespace

void add_ops(CLI::App& app, int& status) {
  auto a = std::make_shared<OpsArgs>();
  CLI::App* c = app.add_subcommand("ops", "Show the op records, and run their checks");
  c->footer(
      "Example:\n  cutaway ops softmax\n  cutaway ops softmax --check\n  cutaway ops --pages "
      "build/docs/ops");
  c->add_option("name", a->name, "One op; without it all are listed");
  c->add_flag("--check", a->check,
              "Run values, types, strides, threads, first and second derivatives, errors");
  c->add_option("--device", a->device, "Where the checks run: cpu, cuda or emu");
  c->add_flag("--quiet", a->quiet, "With --check: only what fails, and the sum");
  c->add_option("--json", a->json, "Write the records to this file");
  c->add_option("--markdown", a->markdown, "Write all records to this file, as one page");
  c->add_option("--pages", a->pages, "Write a page an op, and an index, into this folder");
  c->callback([a, &status] { status = run_ops(*a); });
}

}  // namespace cutaway::tools
