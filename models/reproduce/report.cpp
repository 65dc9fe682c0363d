#include <cutaway/models/reproduce/reproduce.h>

#include <fmt/format.h>

#include <cutaway/core/dispatch.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/parallel.h>
#include <cutaway/models/report/svg.h>

namespace cutaway::reproduce {
namespace {

constexpr const char* kStyle =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;"
    "color:#000;background:#fff}table{border-collapse:collapse}td,th{padding:.2rem 1rem .2rem 0;"
    "border-bottom:1px solid #ccc;text-align:left;vertical-align:top}code{background:#eee;"
    "padding:.1rem .3rem}figure{margin:1.5rem 0}figcaption{color:#333}.FAIL{font-weight:bold}";

std::string statement_rows(const std::vector<Statement>& statements) {
  std::string html =
      "<table>\n<tr><th>§</th><th></th><th>statement</th><th>measured</th>"
      "<th>bound</th><th>seeds</th></tr>\n";
  for (const Statement& s : statements) {
    html += fmt::format(
        "<tr><td>{}</td><td class=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>"
        "\n",
        report::escape(s.id), status_text(s.status), status_text(s.status),
        report::escape(s.text) +
            (s.note.empty() ? "" : "<br><small>" + report::escape(s.note) + "</small>"),
        report::escape(s.measured), report::escape(s.bound), fmt::join(s.seeds, " "));
  }
  return html + "</table>\n";
}

}  // namespace

void Run::write_report(const Study& study, double seconds) const {
  if (folder().empty()) return;
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<style>{1}</style></head><body>\n<h1>{2}</h1>\n"
      "<p><b>{3} passed, {4} failed, {5} skipped</b> ({6}, {7:.0f} s)</p>\n"
      "<p>Run again: <code>{8}</code></p>\n",
      study.slug, kStyle, report::escape(study.title), count(Status::pass), count(Status::fail),
      count(Status::skip), full() ? "full" : "quick", seconds, report::escape(options_.command));
  html += statement_rows(statements_);
  for (const std::string& r : remarks_) html += "<p>" + report::escape(r) + "</p>\n";
  for (const Picture& p : pictures_) {
    html += "<figure>" + p.svg + "<figcaption>" + report::escape(p.caption) +
            "</figcaption></figure>\n";
  }
  html += fmt::format("<p>cutaway {}, cpu {}, {} threads</p>\n</body></html>\n", CUTAWAY_VERSION,
                      cpu_variant(), num_threads());
  io::write_file_atomic(folder() + "/report.html", html);
}

}  // namespace cutaway::reproduce
