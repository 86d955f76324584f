// Charts from the broker's history: axes, values under the pointer, ranges.
const ranges = [["10 min", 600], ["2 h", 7200], ["24 h", 86400]];
let chosenRange = 600;
const age = (seconds) => (seconds > 0 ? duration(seconds) : "0");

function shape(name, attributes, ...children) {
  const element = document.createElementNS(vector, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, visibleValue(key, value));
  element.append(...children.map((child) => (child instanceof Node ? child : visible(child))));
  return element;
}

// The charts of one page, which fetch their history every few seconds while they are shown.
class Charts {
  // - topic: null for the broker.
  // - plots: of each, its title, how values are written, its series (names in the history, and words), and optionally a function that returns its limit.
  constructor(parent, topic, plots) {
    this.topic = topic;
    this.plots = plots.map(([title, write, series, limit]) => new Plot(title, write, series, limit));
    this.note = make("p", { class: "quiet", role: "status" });
    this.buttons = ranges.map(([words, seconds]) => {
      const button = make("button", { type: "button", class: "plain" }, words);
      button.addEventListener("click", () => { chosenRange = seconds; this.load(); });
      return button;
    });
    parent.replaceChildren(
      make("div", { class: "ranges", role: "group", "aria-label": "Range of the charts" }, ...this.buttons), this.note,
      make("div", { class: "plots" }, ...this.plots.map((plot) => plot.element)));
    this.load();
    this.timer = setInterval(() => { if (!document.hidden) this.load(); }, 5000);
  }

  end() { clearInterval(this.timer); }

  async load() {
    this.buttons.forEach((button, index) => setAttribute(button, "aria-pressed", String(ranges[index][1] === chosenRange)));
    try {
      const topic = this.topic === null ? "" : `&topic=${encodeURIComponent(this.topic)}`;
      const response = await fetch(`/api/history?range=${chosenRange}${topic}`);
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.error || `status ${response.status}`);
      setText(this.note, "");
      for (const plot of this.plots) plot.draw(answer);
    } catch (error) { setText(this.note, `There are no charts: ${error.message}.`); }
  }
}

const [plotHeight, plotLeft, plotBottom, plotTop] = [180, 76, 22, 8];

// A chart. It is drawn in the width in which it is shown, so that its text has the same size everywhere.
class Plot {
  constructor(title, write, series, limit = () => null) {
    this.limit = limit;
    this.write = write;
    this.series = series;
    this.width = 520;
    this.svg = shape("svg", { viewBox: `0 0 ${this.width} ${plotHeight}`, role: "img", class: "plot", "aria-label": title });
    this.readout = make("p", { class: "readout quiet" }, " ");
    const legend = series.length > 1 ? series.map(([, words], index) => make("span", { class: `key key-${index}` }, words)) : [];
    this.element = make("figure", {}, make("figcaption", {}, title, " ", ...legend), this.svg, this.readout);
    for (const kind of ["pointermove", "pointerdown"]) this.svg.addEventListener(kind, (event) => this.hover(event));
    this.svg.addEventListener("pointerleave", () => this.leave());
    // In the next frame: drawing changes the size that is observed.
    new ResizeObserver(() => requestAnimationFrame(() => { if (this.history && this.shownWidth() !== this.width) this.draw(this.history); })).observe(this.svg);
  }

  // Keeps the former width while the chart isn't shown.
  shownWidth() { return Math.round(this.svg.getBoundingClientRect().width) || this.width; }

  draw(history) {
    this.history = history;
    this.width = this.shownWidth();
    setAttribute(this.svg, "viewBox", `0 0 ${this.width} ${plotHeight}`);
    const shown = this.series.map(([name]) => history.series[name] || []);
    let top = 0;
    for (const values of shown) for (const value of values) top = Math.max(top, value ?? 0);
    const limit = this.limit();
    // A limit far above the values would leave nothing of them to be seen: then an arrow points to it.
    const isLimitNear = limit !== null && top >= limit.value / 20;
    if (isLimitNear) top = Math.max(top, limit.value);
    else if (limit !== null) top *= 1.2;
    this.top = this.write === bytes ? niceBytes(top) : this.write === age ? niceAge(top) : this.write === count || this.write === rate ? niceCount(top) : nice(top);
    const parts = [];
    for (const share of [0, 0.5, 1]) {
      const y = this.y(this.top * share);
      parts.push(shape("line", { x1: plotLeft, x2: this.width, y1: y, y2: y, class: "grid" }));
      parts.push(shape("text", { x: plotLeft - 6, y: y + 4, "text-anchor": "end" }, this.write(this.top * share)));
    }
    for (const time of labelled(history.from, history.to, (this.width - plotLeft) / 58)) {
      const anchor = this.x(time) > this.width - 22 ? "end" : this.x(time) < plotLeft + 22 ? "start" : "middle";
      parts.push(shape("text", { x: this.x(time), y: plotHeight - 5, "text-anchor": anchor }, clock(time, false)));
    }
    if (limit !== null) parts.push(...this.limitShapes(limit, isLimitNear));
    shown.forEach((values, index) => parts.push(shape("path", { d: this.path(values), class: `series-${index}` })));
    this.mark = shape("line", { y1: plotTop, y2: plotHeight - plotBottom, class: "mark", visibility: "hidden" });
    parts.push(this.mark);
    this.svg.replaceChildren(...parts);
    if (this.time) this.show(this.time);
  }

  limitShapes(limit, isNear) {
    const y = isNear ? this.y(limit.value) : plotTop;
    const words = shape("text", { x: this.width - 4, y: isNear && y < plotTop + 12 ? y + 14 : isNear ? y - 5 : y + 12, "text-anchor": "end", class: "limit-text" }, isNear ? limit.words : `↑ ${limit.words}`);
    return isNear ? [shape("line", { x1: plotLeft, x2: this.width, y1: y, y2: y, class: "limit" }), words] : [words];
  }

  x(time) { return plotLeft + ((time - this.history.from) / (this.history.to - this.history.from)) * (this.width - plotLeft); }
  y(value) { return plotHeight - plotBottom - (value / this.top) * (plotHeight - plotBottom - plotTop); }
  timeOf(index) { return this.history.start + index * this.history.stepSeconds * 1000; }

  // A gap in the line needs more than two steps, and more than 15 seconds, without a sample: a busy machine takes some late.
  path(values) {
    const joined = Math.max(3, 15 / this.history.stepSeconds);
    let path = "";
    let last = -Infinity;
    values.forEach((value, index) => {
      if (value === null) return;
      const point = `${this.x(this.timeOf(index)).toFixed(1)},${this.y(value).toFixed(1)}`;
      // A single value is a short line.
      path += index - last <= joined ? `L${point}` : `M${point}h2`;
      last = index;
    });
    return path;
  }

  hover(event) {
    if (!this.history) return;
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * this.width;
    this.show(this.history.from + ((x - plotLeft) / (this.width - plotLeft)) * (this.history.to - this.history.from));
  }

  show(time) {
    this.time = time;
    const index = Math.round((time - this.history.start) / (this.history.stepSeconds * 1000));
    const texts = this.series.map(([name, words]) => {
      const value = (this.history.series[name] || [])[index];
      return value === null || value === undefined ? null : `${this.series.length > 1 ? `${words} ` : ""}${this.write(value)}`;
    }).filter(Boolean);
    setText(this.readout, texts.length ? `${clock(this.timeOf(index), true)}: ${texts.join(", ")}` : " ");
    const x = this.x(this.timeOf(index));
    this.mark.setAttribute("visibility", texts.length ? "visible" : "hidden");
    this.mark.setAttribute("x1", x);
    this.mark.setAttribute("x2", x);
  }

  leave() {
    this.time = null;
    setText(this.readout, " ");
    this.mark?.setAttribute("visibility", "hidden");
  }
}

// The smallest of 1, 2 or 5 with zeroes that isn't below the value.
function nice(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999);
}

// The same for counts, whose half is whole too.
const niceCount = (value) => (value <= 2 ? 2 : value <= 4 ? 4 : Math.max(10, nice(value)));

// Seconds of which the half can be written, too.
const niceAges = [2, 10, 20, 60, 120, 240, 600, 1200, 2400, 3600, 7200, 14400, 28800, 43200, 86400];
function niceAge(value) {
  return value <= 1 ? nice(value) : niceAges.find((each) => each >= value) ?? Math.ceil(value / 172800) * 172800;
}

function niceBytes(value) {
  if (value < 1024) return 1024;
  const unit = 1024 ** Math.max(0, Math.floor(Math.log(Math.max(value, 1)) / Math.log(1024)));
  return nice(value / unit) * unit;
}

// The times under a chart: whole minutes or hours of the local time, as many as fit.
function labelled(from, to, room) {
  const step = [60000, 120000, 300000, 600000, 1800000, 3600000, 21600000].find((each) => (to - from) / each <= Math.min(5.5, room)) ?? 86400000;
  const offset = new Date(to).getTimezoneOffset() * 60000;
  const times = [];
  for (let time = Math.ceil((from - offset) / step) * step + offset; time <= to; time += step) times.push(time);
  return times;
}

const clock = (time, hasSeconds) => new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: hasSeconds ? "2-digit" : undefined, hour12: false });

// Fills the lines of the figures with values from before the page was loaded.
async function seed() {
  try {
    const response = await fetch(`/api/history?range=${historyLength}&step=1`);
    if (!response.ok) return;
    const { series } = await response.json();
    for (const [line, name] of [[history.in, "received"], [history.out, "sent"], [history.connections, "connections"]]) {
      const live = Array.from({ length: line.count }, (_, index) => line.at(index));
      line.count = 0;
      let last = 0;
      for (const value of series[name].slice(0, series[name].length - live.length)) line.push(last = value ?? last);
      for (const value of live) line.push(value);
    }
  } catch {}
}
