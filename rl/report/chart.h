// Charts as SVG. Pure functions of their numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rl {

/// Values at ascending steps; one that is not finite is a gap.
struct Series {
  std::string name;
  std::vector<double> steps;
  std::vector<double> values;
};

/// Lines over the steps with axes and, for more than one, a legend. More points than pixels are
/// drawn as means of their neighbours with the range that they cover behind them. Empty where no
/// value is finite.
std::string line_chart(const std::vector<Series>& series);

/// Layers on top of each other: where a step's time went. A series that lacks a step counts as 0
/// there.
std::string stacked_chart(const std::vector<Series>& series, const std::string& unit);

/// How the values of each step are spread. There is a column a step, and a row for each of twenty
/// ranges from least to most. A cell is darker where more values are in its range.
struct Distribution {
  std::int64_t step = 0;
  std::vector<double> values;
};
std::string distribution_chart(const std::vector<Distribution>& steps);

/// "0.0012", "1.5e-07", "12300": what fits next to an axis.
std::string axis_number(double value);

/// The colour of a series, the same for the same place in a list.
std::string series_color(std::size_t index);

}  // namespace rl
