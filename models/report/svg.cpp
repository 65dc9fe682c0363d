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

constexpr double kLetter = 6.6;  // widths of a letter of the labels, on the average
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
  void widen(double share) {
    const double more = share * (high - low);
    low -= more;
    high += more;
  }
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
    if (log && high - low < 1.5) return ticks_in_decades();
    if (log) step = std::max(1.0, std::round(step));
    std::vector<double> list;
    for (double t = std::ceil(low / step) * step; t <= high + 1e-9 * step; t += step) {
      list.push_back(log ? std::pow(10, t) : std::fabs(t) < 1e-9 * step ? 0 : t);
    }
    return list;
  }
  // 1, 2, 5 of each decade (all digits for less than half of one).
  std::vector<double> ticks_in_decades() const {
    std::vector<double> list;
    for (double decade = std::floor(low); decade <= high; ++decade) {
      for (int digit = 1; digit < 10; ++digit) {
        const double t = decade + std::log10(digit);
        const bool round = digit == 1 || digit == 2 || digit == 5;
        if ((round || high - low < 0.5) && t >= low - 1e-9 && t <= high + 1e-9) {
          list.push_back(std::pow(10, decade) * digit);
        }
      }
    }
    return list;
  }
};

// The shorter axis gets a wider range, so that a unit of x is as long as one of y.
void equalise(Axis& x, Axis& y, double width, double height) {
  const double unit = std::max((x.high - x.low) / width, (y.high - y.low) / height);
  const auto widen = [unit](Axis& axis, double length) {
    const double more = (unit * length - (axis.high - axis.low)) / 2;
    axis.low -= more;
    axis.high += more;
  };
  widen(x, width);
  widen(y, height);
}

// Marks that differ in form, so that series can be told apart without colours.
std::string marker(double x, double y, size_t series, const char* shade) {
  const std::string colour = series % 2 ? fmt::format("fill=\"#fff\" stroke=\"{}\"", shade)
                                        : fmt::format("fill=\"{}\"", shade);
  switch (series % 6 / 2) {
    case 0:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" {}/>\n", x, y, colour);
    case 1:
      return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"6\" height=\"6\" {}/>\n", x - 3,
                         y - 3, colour);
    default:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l4 7h-8z\" {}/>\n", x, y - 4, colour);
  }
}

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

namespace {

// The area between the axes, and where a value lies in it.
struct Area {
  Axis x, y;
  double left, right, top, bottom;
  double px(double v) const { return left + (right - left) * x.map(v); }
  double py(double v) const { return bottom - (bottom - top) * y.map(v); }
};

// Grid, ticks, axes and their names.
std::string axes(const Area& a, const PlotOptions& o) {
  std::string s;
  for (double t : a.x.ticks()) {
    s += fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#ddd\"/>\n", a.px(t), a.top,
                     a.bottom);
    s += text(a.px(t), a.bottom + 16, fmt::format("{:.4g}", t), "middle");
  }
  for (double t : a.y.ticks()) {
    s += fmt::format("<path d=\"M{0:.1f} {1:.1f}H{2:.1f}\" stroke=\"#ddd\"/>\n", a.left, a.py(t),
                     a.right);
    s += text(a.left - 6, a.py(t) + 4, fmt::format("{:.4g}", t), "end");
  }
  s += fmt::format("<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"#000\"/>\n", a.left, a.top,
                   a.bottom, a.right);
  s += text((a.left + a.right) / 2, o.height - 10, o.x_label, "middle");
  const std::string turn =
      fmt::format("transform=\"translate(16,{:.1f}) rotate(-90)\"", (a.top + a.bottom) / 2);
  return s + text(0, 0, o.y_label, "middle", turn.c_str());
}

// Ranges of x as pale areas; every second one is darker, names stand above, in turn on two lines.
std::string shaded(const Area& a, const std::vector<Span>& spans) {
  std::string s, names;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (!a.x.shows(spans[i].from) || !a.x.shows(spans[i].to)) continue;
    const double from = std::max(a.px(spans[i].from), a.left);
    const double to = std::min(a.px(spans[i].to), a.right);
    if (to <= from) continue;
    s += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", from,
        a.top, to - from, a.bottom - a.top, i % 2 ? "#e2e2e2" : "#f2f2f2");
    names += text((from + to) / 2, a.top - 18 + 13 * double(i % 2), spans[i].label, "middle",
                  "fill=\"#555\" font-style=\"italic\"");
  }
  return s + names;
}

struct Place {
  double x, y;
};
// The name of a point, unless it would lie on one of those before.
std::string point_name(const std::string& name, Place at, std::vector<Place>& named) {
  const double width = 6.5 * double(name.size());
  for (const Place& p : named) {
    if (std::fabs(p.x - at.x) < width && std::fabs(p.y - at.y) < 10) return "";
  }
  named.push_back(at);
  return text(at.x + 5, at.y - 4, name, "start", "font-size=\"10\"");
}
const char* shade_of(const Line& l, size_t k) {
  return kShades[(l.shade < 0 ? k : size_t(l.shade)) % 6];
}

// One series without its label; `end` becomes the place of its last point.
std::string series(const Area& a, const Line& l, size_t k, Place& end) {
  const char* shade = shade_of(l, k);
  std::vector<Place> named;
  std::string path, marks;
  for (size_t i = 0; i < l.x.size() && i < l.y.size(); ++i) {
    if (!a.x.shows(l.x[i]) || !a.y.shows(l.y[i])) continue;
    end = {a.px(l.x[i]), a.py(l.y[i])};
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", end.x, end.y);
    if (l.points || l.marked) marks += marker(end.x, end.y, k, shade);
    if (i < l.names.size()) marks += point_name(l.names[i], end, named);
    const bool bar = i < l.low.size() && i < l.high.size();
    if (!bar || !a.y.shows(l.low[i]) || !a.y.shows(l.high[i])) continue;
    marks += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {1:.1f}h6M{3:.1f} {2:.1f}h6\" "
        "stroke=\"{4}\"/>\n",
        end.x, a.py(l.low[i]), a.py(l.high[i]), end.x - 3, shade);
  }
  if (path.empty() || l.points) return marks;
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"{}/>\n", path,
                     shade, l.dashed ? " stroke-dasharray=\"5 3\"" : "") +
         marks;
}

// Labels below each other at the right of the plot, each with its mark or a piece of its line.
std::string legend(const Area& a, const std::vector<Line>& lines) {
  std::string s;
  double y = a.top + 8;
  for (size_t k = 0; k < lines.size(); ++k) {
    if (lines[k].label.empty()) continue;
    const Line& l = lines[k];
    const char* shade = shade_of(l, k);
    if (!l.points) {
      s += fmt::format("<path d=\"M{:.1f} {:.1f}h18\" stroke=\"{}\" stroke-width=\"1.6\"{}/>\n",
                       a.right + 9, y, shade, l.dashed ? " stroke-dasharray=\"5 3\"" : "");
    }
    if (l.points || l.marked) s += marker(a.right + 18, y, k, shade);
    s += text(a.right + 32, y + 4, lines[k].label);
    y += 18;
  }
  return s;
}

}  // namespace

std::string line_plot(const std::vector<Line>& lines, const PlotOptions& o) {
  double beside = o.legend ? 140 : 110;
  for (const Line& l : lines) {
    beside = std::max(beside, (o.legend ? 36 : 10) + kLetter * double(l.label.size()));
  }
  Area a{
      {o.log_x},     {o.log_y}, o.log_y ? 76. : 64., o.width - beside, o.spans.empty() ? 36. : 62.,
      o.height - 48.};
  bool points = false;
  for (const Line& l : lines) {
    points |= l.points;
    for (double v : l.x) a.x.include(v);
    for (const auto* list : {&l.y, &l.low, &l.high}) {
      for (double v : *list) a.y.include(v);
    }
  }
  a.x.finish();
  a.y.finish();
  if (points) {  // marks keep off the frame
    a.x.widen(0.02);
    a.y.widen(0.02);
  }
  if (o.equal) equalise(a.x, a.y, a.right - a.left, a.bottom - a.top);
  std::string s = head(o.width, o.height) +
                  text(a.left, 20, o.title, "start", "font-weight=\"bold\"") + shaded(a, o.spans) +
                  axes(a, o);
  std::vector<double> label_rows;
  for (size_t k = 0; k < lines.size(); ++k) {
    Place end{-1, 0};
    s += series(a, lines[k], k, end);
    if (end.x < 0 || lines[k].label.empty() || o.legend) continue;
    for (double row : label_rows) {
      if (std::fabs(row - end.y) < 14) end.y = row + 14;
    }
    label_rows.push_back(end.y);
    s += text(end.x + 6, end.y + 4, lines[k].label);
  }
  if (o.legend) s += legend(a, lines);
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
