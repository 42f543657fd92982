#include "rl/report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include "rl/template/html.h"

namespace rl {
namespace {

// The drawing area in the SVG's own units.
constexpr double kWidth = 460, kHeight = 220, kLeft = 54, kRight = 10, kTop = 10, kBottom = 26;
constexpr std::size_t kPointsMax = 400;

std::string coordinate(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void add(double value) {
    if (!std::isfinite(value)) return;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool empty() const { return least > most; }
  // So that a constant has a line in the middle.
  void widen() {
    if (most > least) return;
    const double margin = least == 0 ? 1 : std::abs(least) * 0.1;
    least -= margin;
    most += margin;
  }
};

// Steps of 1, 2 or 5 times a power of ten, about `count` of them.
std::vector<double> ticks(const Range& range, int count) {
  const double rough = (range.most - range.least) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double part = rough / power;
  const double step = power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
  std::vector<double> out;
  for (double at = std::ceil(range.least / step) * step;
       at <= range.most + step * 1e-9 && out.size() < 20; at += step)
    out.push_back(std::abs(at) < step * 1e-9 ? 0 : at);
  return out;
}

class Frame {
 public:
  Frame(Range x, Range y) : x_(x), y_(y) {
    x_.widen();
    y_.widen();
  }
  double x(double value) const {
    return kLeft + (value - x_.least) / (x_.most - x_.least) * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kHeight - kBottom -
           (value - y_.least) / (y_.most - y_.least) * (kHeight - kTop - kBottom);
  }
  std::string point(double step, double value) const {
    return coordinate(x(step)) + "," + coordinate(y(value));
  }

  // `unit` follows the values on the left: " s".
  std::string axes(const std::string& unit = {}) const {
    std::string svg;
    for (const double tick : ticks(y_, 4)) {
      const std::string at = coordinate(y(tick));
      svg += "<line class='grid' x1='" + coordinate(kLeft) + "' x2='" +
             coordinate(kWidth - kRight) + "' y1='" + at + "' y2='" + at +
             "'/><text class='y' x='" + coordinate(kLeft - 5) + "' y='" + at + "'>" +
             axis_number(tick) + html_text(unit) + "</text>";
    }
    for (const double tick : ticks(x_, 6)) {
      if (tick != std::floor(tick)) continue;
      const bool at_end = x(tick) > kWidth - kRight - 12;  // half of a number would be cut off
      svg += "<text class='" + std::string(at_end ? "end" : "x") + "' x='" + coordinate(x(tick)) +
             "' y='" + coordinate(kHeight - 8) + "'>" + axis_number(tick) + "</text>";
    }
    return svg;
  }

 private:
  Range x_, y_;
};

std::string svg(const std::string& inside) {
  return "<svg viewBox='0 0 " + coordinate(kWidth) + " " + coordinate(kHeight) + "' role='img'>" +
         inside + "</svg>";
}

std::string legend(const std::vector<Series>& series) {
  if (series.size() < 2) return "";
  std::string html = "<div class='legend'>";
  for (std::size_t i = 0; i < series.size(); ++i)
    html += "<span><i style='background:" + series_color(i) + "'></i>" + html_text(series[i].name) +
            "</span>";
  return html + "</div>";
}

// Several steps as one point.
struct Point {
  double step = 0;
  double mean = 0;
  Range range;
};

// Runs of finite values, thinned.
std::vector<std::vector<Point>> runs(const Series& series) {
  const std::size_t bucket = (series.values.size() + kPointsMax - 1) / kPointsMax;
  std::vector<std::vector<Point>> out(1);
  for (std::size_t begin = 0; begin < series.values.size(); begin += bucket) {
    Point point;
    double count = 0;
    for (std::size_t i = begin; i < std::min(begin + bucket, series.values.size()); ++i) {
      if (!std::isfinite(series.values[i])) continue;
      point.step += series.steps[i];
      point.mean += series.values[i];
      point.range.add(series.values[i]);
      ++count;
    }
    if (count == 0) {
      if (!out.back().empty()) out.emplace_back();
      continue;
    }
    point.step /= count;
    point.mean /= count;
    out.back().push_back(point);
  }
  return out;
}

std::string draw(const Series& series, const std::string& color, const Frame& frame) {
  std::string out;
  for (const std::vector<Point>& run : runs(series)) {
    if (run.empty()) continue;
    if (run.size() == 1) {
      out += "<circle cx='" + coordinate(frame.x(run[0].step)) + "' cy='" +
             coordinate(frame.y(run[0].mean)) + "' r='2.5' fill='" + color + "'/>";
      continue;
    }
    std::string line, band, back;
    for (const Point& point : run) {
      line += frame.point(point.step, point.mean) + " ";
      band += frame.point(point.step, point.range.most) + " ";
      back = frame.point(point.step, point.range.least) + " " + back;
    }
    if (series.values.size() > kPointsMax)
      out += "<polygon points='" + band + back + "' fill='" + color + "' opacity='.15'/>";
    out += "<polyline points='" + line + "' stroke='" + color + "'/>";
  }
  return out;
}

}  // namespace

std::string axis_number(double value) {
  char text[32];
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-3 || size >= 1e6))
    std::snprintf(text, sizeof text, "%.2g", value);
  else
    std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string series_color(std::size_t index) {
  static constexpr std::array kColors = {"#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed",
                                         "#0891b2", "#be185d", "#65a30d", "#475569", "#b45309"};
  return kColors[index % kColors.size()];
}

std::string line_chart(const std::vector<Series>& series) {
  Range x, y;
  for (const Series& each : series) {
    for (std::size_t i = 0; i < each.values.size(); ++i) {
      if (!std::isfinite(each.values[i])) continue;
      x.add(each.steps[i]);
      y.add(each.values[i]);
    }
  }
  if (y.empty()) return "";
  const Frame frame(x, y);
  std::string inside = frame.axes();
  for (std::size_t i = 0; i < series.size(); ++i) inside += draw(series[i], series_color(i), frame);
  return svg(inside) + legend(series);
}

std::string stacked_chart(const std::vector<Series>& series, const std::string& unit) {
  std::set<double> all;
  std::vector<std::map<double, double>> layers(series.size());
  for (std::size_t i = 0; i < series.size(); ++i) {
    for (std::size_t j = 0; j < series[i].steps.size(); ++j) {
      all.insert(series[i].steps[j]);
      layers[i][series[i].steps[j]] = std::isfinite(series[i].values[j]) ? series[i].values[j] : 0;
    }
  }
  if (all.empty()) return "";
  const std::size_t every = (all.size() + kPointsMax - 1) / kPointsMax;
  std::vector<double> steps;
  std::size_t place = 0;
  for (const double step : all) {
    if (place++ % every == 0) steps.push_back(step);
  }
  if (steps.size() == 1) steps.push_back(steps[0] + 1);  // a step alone gets some width
  std::vector<double> top(steps.size(), 0.0);
  std::vector<std::vector<double>> tops;
  Range x, y;
  y.add(0);
  for (const auto& layer : layers) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto found = layer.find(all.size() == 1 ? steps[0] : steps[i]);
      if (found != layer.end()) top[i] += found->second;
      y.add(top[i]);
      x.add(steps[i]);
    }
    tops.push_back(top);
  }
  const Frame frame(x, y);
  std::string inside = frame.axes(" " + unit);
  for (std::size_t layer = 0; layer < tops.size(); ++layer) {
    std::string upper, lower;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      upper += frame.point(steps[i], tops[layer][i]) + " ";
      lower = frame.point(steps[i], layer == 0 ? 0 : tops[layer - 1][i]) + " " + lower;
    }
    inside += "<polygon points='" + upper + lower + "' fill='" + series_color(layer) +
              "' opacity='.75'/>";
  }
  return svg(inside) + legend(series);
}

std::string distribution_chart(const std::vector<Distribution>& steps) {
  constexpr int kRows = 20;
  Range x, y;
  for (const Distribution& step : steps) {
    x.add(static_cast<double>(step.step));
    for (const double value : step.values) y.add(value);
  }
  if (y.empty()) return "";
  y.widen();
  Range wide = x;
  wide.least -= 0.5;
  wide.most += 0.5;
  const Frame frame(wide, y);
  const double width =
      std::max(1.0, (kWidth - kLeft - kRight) / std::max<double>(1, x.most - x.least + 1));
  const double height = (kHeight - kTop - kBottom) / kRows;
  std::string inside;
  for (const Distribution& step : steps) {
    std::array<double, kRows> counts{};
    double finite = 0;
    for (const double value : step.values) {
      if (!std::isfinite(value)) continue;
      ++counts[static_cast<std::size_t>(
          std::min<double>(kRows - 1, std::floor((value - y.least) / (y.most - y.least) * kRows)))];
      ++finite;
    }
    for (int row = 0; row < kRows; ++row) {
      const double share = finite == 0 ? 0 : counts[static_cast<std::size_t>(row)] / finite;
      if (share == 0) continue;
      char opacity[16];
      std::snprintf(opacity, sizeof opacity, "%.2f", 0.15 + 0.85 * share);
      inside += "<rect x='" + coordinate(frame.x(static_cast<double>(step.step)) - width / 2) +
                "' y='" + coordinate(kHeight - kBottom - (row + 1) * height) + "' width='" +
                coordinate(width) + "' height='" + coordinate(height) + "' fill='" +
                series_color(0) + "' opacity='" + opacity + "'><title>step " +
                std::to_string(step.step) + ": " + axis_number(100 * share) + " % from " +
                axis_number(y.least + (y.most - y.least) * row / kRows) + " to " +
                axis_number(y.least + (y.most - y.least) * (row + 1) / kRows) + "</title></rect>";
    }
  }
  return svg(frame.axes() + inside);
}

}  // namespace rl
