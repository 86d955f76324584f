// Lines and columns.

// The last values of a series, one per second.
class Series {
  constructor(length) { this.values = new Float32Array(length); this.end = 0; this.count = 0; }
  push(value) {
    this.values[this.end] = value;
    this.end = (this.end + 1) % this.values.length;
    this.count = Math.min(this.count + 1, this.values.length);
  }
  // Oldest first.
  at(index) { return this.values[(this.end - this.count + index + 2 * this.values.length) % this.values.length]; }
}

function drawLine(svg, series) {
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  let top = 0;
  for (let index = 0; index < series.count; index += 1) top = Math.max(top, series.at(index));
  const points = [];
  for (let index = 0; series.count > 1 && index < series.count; index += 1) {
    // As wide as its place, however few seconds it has.
    const x = (index / (series.count - 1)) * width;
    const y = height - 1 - (top > 0 ? series.at(index) / top : 0) * (height - 3);
    points.push(`${x.toFixed(1)},${y.toFixed(1)}`);
  }
  const line = points.length ? `M${points.join("L")}` : "";
  svg.querySelector(".stroke")?.setAttribute("d", line);
  svg.querySelector(".area")?.setAttribute("d", line ? `${line}L${width},${height}L0,${height}Z` : "");
}

const vector = "http://www.w3.org/2000/svg";
function makeLine() {
  const svg = document.createElementNS(vector, "svg");
  svg.setAttribute("viewBox", "0 0 110 22");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "line");
  svg.setAttribute("aria-hidden", "true");
  for (const name of ["area", "stroke"]) {
    const path = document.createElementNS(vector, "path");
    path.setAttribute("class", name);
    svg.append(path);
  }
  return svg;
}

// The upper bound of that share of the counts; null without counts.
function quantile(histogram, share) {
  const total = histogram.counts.reduce((sum, each) => sum + each, 0);
  if (!total) return null;
  let seen = 0;
  for (const [index, each] of histogram.counts.entries()) {
    seen += each;
    if (seen >= total * share) return histogram.bounds[Math.min(index, histogram.bounds.length - 1)];
  }
  return null;
}

function drawColumns(element, counts) {
  const shown = counts.slice(0, 22);
  while (element.children.length < shown.length) element.append(make("i"));
  const top = Math.max(...shown, 1);
  shown.forEach((each, index) => {
    // The square root keeps rare durations visible next to common ones.
    element.children[index].style.height = each ? `${Math.max(6, Math.sqrt(each / top) * 100)}%` : "0";
  });
}
