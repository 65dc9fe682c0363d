#pragma once
#include <string>
#include <vector>

namespace cutaway::report {

struct Line {
  std::string label;
  std::vector<double> x, y;
  bool dashed = false;
  bool points = false;             // marks at the points instead of a line
  bool marked = false;             // marks at the points of the line
  std::vector<double> low, high;   // intervals of y as bars, where given
  int shade = -1;                  // one of six greys; -1: by the place in the list
  std::vector<std::string> names;  // of points, beside them
};
// A range of x, shaded, its name above.
struct Span {
  std::string label;
  double from = 0, to = 0;
};
struct PlotOptions {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;
  bool equal = false;   // one unit is as long in x as in y
  bool legend = false;  // labels in a list at the right, for series that lie on each other
  int width = 640, height = 400;
  std::vector<Span> spans;
};
// A line plot as SVG: axes with names, labels at the ends of the lines or in a list, grey values
// and dashes that survive printing. Names of points that would lie on another name are left out.
std::string line_plot(const std::vector<Line>& lines, const PlotOptions& options);

struct Bar {
  std::string label, detail;  // left of the bar, and at its end
  double value = 0;
  bool pale = false;  // not to be relied on
};
struct BarOptions {
  std::string title, subtitle, x_label;
  bool log = false;  // bars start at the smallest power of ten, or at `mark`
  double mark = 0;   // a line to compare with; bars grow from it to both sides. 0: none
  int width = 720;
};
// Horizontal bars, one below the other. Values that are not finite, and with log those not above 0,
// have no bar.
std::string bar_chart(const std::vector<Bar>& bars, const BarOptions& options);

// Counts by true class (rows) and predicted class (columns) as a table of grey cells.
std::string confusion_plot(const std::vector<std::vector<int64_t>>& counts,
                           const std::vector<std::string>& classes);

// Grey images side by side with two lines of text below each; `pixels` in [0, 1], row-major.
struct Picture {
  int width = 0, height = 0;
  std::vector<float> pixels;
  std::string caption, detail;
  bool marked = false;  // framed: worth a look, such as a wrong prediction
};
std::string picture_grid(const std::vector<Picture>& pictures, int columns,
                         const std::string& title);

// Text for use inside SVG or HTML.
std::string escape(const std::string& text);
std::string base64(const unsigned char* data, size_t bytes);

}  // namespace cutaway::report
