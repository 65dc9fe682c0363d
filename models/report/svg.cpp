#include <cutaway/models/report/svg.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdint>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <stb_image_write.h>
#pragma GCC diagnostic pop

namespace cutaway::report {
namespace {

constexpr const char* kShades[] = {"#000", "#777", "#444", "#999", "#222", "#bbb"};

std::string head(int width, int height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#fff\"/>\n",
      width, height);
}

std::string text(double x, double y, const std::string& s, const char* anchor = "start",
                 const char* extra = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y,
                     anchor, extra, escape(s));
}

// One axis: data range, and positions for "round" ticks.
struct Axis {
  bool log;
  double low = INFINITY, high = -INFINITY;
  double map(double v) const {
    const double t = log ? std::log10(v) : v;
    return (t - low) / (high - low);
  }
  void include(double v) {
    if (!std::isfinite(v) || (log && v <= 0)) return;
    const double t = log ? std::log10(v) : v;
    low = std::min(low, t);
    high = std::max(high, t);
  }
  bool shows(double v) const { return std::isfinite(v) && (!log || v > 0); }
  void finish() {
    if (!(low <= high)) low = 0, high = 1;
    if (high - low < 1e-12) low -= 0.5, high += 0.5;
  }
  std::vector<double> ticks() const {
    const double rough = (high - low) / 5, power = std::pow(10, std::floor(std::log10(rough)));
    double step = power;
    for (double m : {1.0, 2.0, 5.0, 10.0}) {
      if (m * power >= rough) {
        step = m * power;
        break;
      }
    }
    if (log) step = std::max(1.0, std::round(step));
    std::vector<double> list;
    for (double t = std::ceil(low / step) * step; t <= high + 1e-9 * step; t += step) {
      list.push_back(log ? std::pow(10, t) : std::fabs(t) < 1e-9 * step ? 0 : t);
    }
    return list;
  }
};

}  // namespace

std::string escape(const std::string& s) {
  std::string out;
  for (char c : s) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string base64(const unsigned char* data, size_t n) {
  static const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < n; i += 3) {
    const uint32_t v = uint32_t(data[i]) << 16 | (i + 1 < n ? uint32_t(data[i + 1]) << 8 : 0) |
                       (i + 2 < n ? uint32_t(data[i + 2]) : 0);
    out += kDigits[v >> 18];
    out += kDigits[v >> 12 & 63];
    out += i + 1 < n ? kDigits[v >> 6 & 63] : '=';
    out += i + 2 < n ? kDigits[v & 63] : '=';
  }
  return out;
}

std::string line_plot(const std::vector<Line>& lines, const PlotOptions& o) {
  const double left = 64, right = o.width - 110, top = 36, bottom = o.height - 48;
  Axis x{o.log_x}, y{o.log_y};
  for (const Line& l : lines) {
    for (double v : l.x) x.include(v);
    for (double v : l.y) y.include(v);
  }
  x.finish();
  y.finish();
  const auto px = [&](double v) { return left + (right - left) * x.map(v); };
  const auto py = [&](double v) { return bottom - (bottom - top) * y.map(v); };
  std::string s =
      head(o.width, o.height) + text(left, 20, o.title, "start", "font-weight=\"bold\"");
  for (double t : x.ticks()) {
    s +=
        fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#ddd\"/>\n", px(t), top, bottom);
    s += text(px(t), bottom + 16, fmt::format("{:.4g}", t), "middle");
  }
  for (double t : y.ticks()) {
    s +=
        fmt::format("<path d=\"M{0:.1f} {1:.1f}H{2:.1f}\" stroke=\"#ddd\"/>\n", left, py(t), right);
    s += text(left - 6, py(t) + 4, fmt::format("{:.4g}", t), "end");
  }
  s += fmt::format("<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"#000\"/>\n", left, top,
                   bottom, right);
  s += text((left + right) / 2, o.height - 10, o.x_label, "middle");
  s += text(
      0, 0, o.y_label, "middle",
      fmt::format("transform=\"translate(16,{:.1f}) rotate(-90)\"", (top + bottom) / 2).c_str());
  std::vector<double> label_rows;
  for (size_t k = 0; k < lines.size(); ++k) {
    const Line& l = lines[k];
    std::string path;
    double end_x = left, end_y = bottom;
    for (size_t i = 0; i < l.x.size() && i < l.y.size(); ++i) {
      if (!x.shows(l.x[i]) || !y.shows(l.y[i])) continue;
      end_x = px(l.x[i]);
      end_y = py(l.y[i]);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", end_x, end_y);
    }
    if (path.empty()) continue;
    s += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"{}/>\n", path,
                     kShades[k % 6], l.dashed ? " stroke-dasharray=\"5 3\"" : "");
    for (double row : label_rows) {
      if (std::fabs(row - end_y) < 14) end_y = row + 14;
    }
    label_rows.push_back(end_y);
    s += text(end_x + 6, end_y + 4, l.label);
  }
  return s + "</svg>\n";
}

std::string bar_chart(const std::vector<Bar>& bars, const BarOptions& o) {
  constexpr double kRow = 18;
  const double left = 170, right = o.width - 150, top = 48;
  const double bottom = top + kRow * double(bars.size()) + 4;
  Axis axis{o.log};
  if (!o.log) axis.include(0);
  if (o.mark > 0) axis.include(o.mark);
  for (const Bar& b : bars) axis.include(b.value);
  axis.finish();
  if (o.log) axis.low = std::floor(axis.low), axis.high = std::ceil(axis.high);
  const auto px = [&](double v) { return left + (right - left) * axis.map(v); };
  std::string s = head(o.width, int(bottom) + 48) +
                  text(8, 20, o.title, "start", "font-weight=\"bold\"") +
                  text(8, 36, o.subtitle, "start", "fill=\"#555\"");
  for (double t : axis.ticks()) {
    s +=
        fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#ddd\"/>\n", px(t), top, bottom);
    s += text(px(t), bottom + 16, fmt::format("{:.4g}", t), "middle");
  }
  s += text((left + right) / 2, bottom + 38, o.x_label, "middle");
  const double base = o.mark > 0 ? px(o.mark) : left;
  for (size_t i = 0; i < bars.size(); ++i) {
    const double y = top + kRow * double(i) + 4;
    s += text(left - 6, y + 11, bars[i].label, "end");
    if (!axis.shows(bars[i].value)) continue;
    const double end = px(bars[i].value);
    s += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>\n",
        std::min(base, end), y, std::max(std::fabs(end - base), 1.0), kRow - 4,
        bars[i].pale ? "#ccc"
        : end < base ? "#999"
                     : "#444");
    s += text(std::max(base, end) + 4, y + 11, bars[i].detail);
  }
  if (o.mark > 0) {
    s += fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#000\"/>\n", base, top, bottom);
  }
  return s + "</svg>\n";
}

std::string confusion_plot(const std::vector<std::vector<int64_t>>& counts,
                           const std::vector<std::string>& classes) {
  const int n = int(counts.size()), cell = 44, left = 96, top = 96;
  int64_t most = 1;
  for (const auto& row : counts) {
    for (int64_t c : row) most = std::max(most, c);
  }
  std::string s = head(left + n * cell + 48, top + n * cell + 40);
  s += text(left, 20, "Confusion: rows are true classes, columns predictions", "start",
            "font-weight=\"bold\"");
  for (int i = 0; i < n; ++i) {
    const std::string name = i < int(classes.size()) ? classes[size_t(i)] : std::to_string(i);
    s += text(left - 6, top + i * cell + cell / 2 + 4, name, "end");
    const std::string turn = fmt::format("transform=\"translate({},{}) rotate(-45)\"",
                                         left + i * cell + cell / 2, top - 6);
    s += text(0, 0, name, "start", turn.c_str());
    for (int j = 0; j < n; ++j) {
      const int64_t c = counts[size_t(i)][size_t(j)];
      // Square root: off-diagonal counts stay visible beside the diagonal.
      const int grey = 255 - int(205 * std::sqrt(double(c) / double(most)));
      s += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"rgb({},{},{})\" "
          "stroke=\"#fff\"/>\n",
          left + j * cell, top + i * cell, cell, cell, grey, grey, grey);
      if (c) {
        s += text(left + j * cell + cell / 2, top + i * cell + cell / 2 + 4, std::to_string(c),
                  "middle", grey < 128 ? "fill=\"#fff\"" : "");
      }
    }
  }
  return s + "</svg>\n";
}

std::string picture_grid(const std::vector<Picture>& pictures, int columns,
                         const std::string& title) {
  const int cell = 112, side = 96, row_height = side + 42;
  const int rows = (int(pictures.size()) + columns - 1) / columns;
  std::string s = head(columns * cell + 16, rows * row_height + 44);
  s += text(8, 20, title, "start", "font-weight=\"bold\"");
  for (size_t k = 0; k < pictures.size(); ++k) {
    const Picture& p = pictures[k];
    const int x = 8 + int(k) % columns * cell, y = 34 + int(k) / columns * row_height;
    std::vector<unsigned char> grey;
    for (float v : p.pixels)
      grey.push_back((unsigned char)(std::lround(255 * std::clamp(v, 0.f, 1.f))));
    std::vector<unsigned char> png;
    const auto append = [](void* out, void* data, int n) {
      auto* bytes = static_cast<unsigned char*>(data);
      static_cast<std::vector<unsigned char>*>(out)->insert(
          static_cast<std::vector<unsigned char>*>(out)->end(), bytes, bytes + n);
    };
    stbi_write_png_to_func(append, &png, p.width, p.height, 1, grey.data(), p.width);
    s += fmt::format(
        "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" style=\"image-rendering:pixelated\" "
        "href=\"data:image/png;base64,{}\"/>\n",
        x, y, side, side, base64(png.data(), png.size()));
    s += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#000\" "
        "stroke-width=\"{}\"/>\n",
        x, y, side, side, p.marked ? 3 : 0.5);
    s += text(x, y + side + 14, p.caption) +
         text(x, y + side + 28, p.detail, "start", "fill=\"#555\"");
  }
  return s + "</svg>\n";
}

}  // namespace cutaway::report
