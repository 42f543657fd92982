#!/usr/bin/env bash
# Draws one metric of a run as an SVG picture: a dot per step and a running mean.
#   examples/plot.sh METRICS.jsonl [METRIC] [WINDOW] > curve.svg      default critic/score/mean, a mean over ten steps
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,3s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
file=${1:?usage: examples/plot.sh METRICS.jsonl [METRIC] [WINDOW] > curve.svg}
metric=${2:-critic/score/mean} window=${3:-10}
[ -r "$file" ] || { echo "plot.sh: cannot read $file" >&2; exit 1; }
[[ $window =~ ^[1-9][0-9]*$ ]] || { echo "plot.sh: the window is a number of steps, not '$window'" >&2; exit 1; }

awk -v metric="$metric" -v window="$window" '
function field(line, key,    at, rest) {       # the number after "key": in one JSON line, or ""
  at = index(line, "\"" key "\":")
  if (!at) return ""
  rest = substr(line, at + length(key) + 3)
  return match(rest, /^ *-?[0-9.]+([eE][-+]?[0-9]+)?/) ? substr(rest, 1, RLENGTH) + 0 : ""
}
function x(step) { return 60 + 560 * (last > first ? (step - first) / (last - first) : 0.5) }
function y(value) { return 260 - 220 * (high > low ? (value - low) / (high - low) : 0.5) }
{
  step = field($0, "step"); value = field($0, metric)
  if (step == "" || value == "") next
  n++; steps[n] = step; values[n] = value
  if (n == 1) { low = high = value }
  if (value < low) low = value
  if (value > high) high = value
}
END {
  if (!n) { print "plot.sh: no step has the metric " metric > "/dev/stderr"; exit 1 }
  first = steps[1]; last = steps[n]
  print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 320\" font-family=\"sans-serif\" font-size=\"12\">"
  print "<rect width=\"640\" height=\"320\" fill=\"white\"/>"
  printf "<text x=\"60\" y=\"24\" font-size=\"14\">%s (dots) and its mean over %d steps (line)</text>\n", metric, window
  for (i = 0; i <= 4; i++) {
    v = low + (high - low) * i / 4
    printf "<line x1=\"60\" x2=\"620\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"52\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n", y(v), y(v), y(v) + 4, v
  }
  for (i = 0; i <= 4; i++) {
    s = int(first + (last - first) * i / 4 + 0.5)
    printf "<text x=\"%.1f\" y=\"280\" text-anchor=\"middle\">%d</text>\n", x(s), s
  }
  print "<text x=\"340\" y=\"304\" text-anchor=\"middle\">step</text>"
  for (i = 1; i <= n; i++) printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"#9bb\"/>\n", x(steps[i]), y(values[i])
  printf "<polyline fill=\"none\" stroke=\"#136\" stroke-width=\"2\" points=\""
  for (i = 1; i <= n; i++) {
    sum += values[i]
    if (i > window) sum -= values[i - window]
    printf "%.1f,%.1f ", x(steps[i]), y(sum / (i < window ? i : window))
  }
  print "\"/>\n</svg>"
}' "$file"
