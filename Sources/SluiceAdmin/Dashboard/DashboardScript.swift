/// What the page does. Plain JavaScript, in parts that are put together into one function; each part uses those before it.
///
/// Nothing that comes from the broker is ever made into markup: it goes into the page as text.
enum DashboardScript {
  static var text: String {
    """
    (() => {
    "use strict";
    \(page)
    \(format)
    \(charts)
    \(model)
    \(figures)
    \(holds)
    \(topics)
    \(streams)
    \(detail)
    \(connections)
    \(events)
    })();
    """
  }

  /// Elements, and the theme.
  private static let page = #"""
    const $ = (id) => document.getElementById(id);

    // An element with attributes and children, which are elements or text.
    function make(name, attributes, ...children) {
      const element = document.createElement(name);
      for (const [key, value] of Object.entries(attributes || {})) {
        if (key === "class") element.className = value;
        else if (value === true) element.setAttribute(key, "");
        else if (value !== false && value !== undefined) element.setAttribute(key, value);
      }
      element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
      return element;
    }

    function setText(element, text) {
      if (element.textContent !== text) element.textContent = text;
    }

    function setAttribute(element, name, value) {
      if (element.getAttribute(name) !== value) element.setAttribute(name, value);
    }

    const themes = ["automatic", "light", "dark"];
    let theme = "automatic";
    function showTheme() {
      if (theme === "automatic") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = theme;
      setText($("theme"), `Theme: ${theme}`);
    }
    // A browser may keep pages from remembering anything.
    try { theme = localStorage.getItem("sluice-theme") || theme; } catch {}
    if (!themes.includes(theme)) theme = "automatic";
    showTheme();
    $("theme").addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      try { localStorage.setItem("sluice-theme", theme); } catch {}
      showTheme();
    });
    """#

  /// Numbers as people read them.
  private static let format = #"""
    // Null is any number; large numbers come as text.
    const number = (value) => (value === null ? Infinity : Number(value));
    const grouped = new Intl.NumberFormat("en");

    function scaled(value, step, units) {
      let index = 0;
      while (value >= step - 0.5 && index + 1 < units.length) { value /= step; index += 1; }
      const digits = index === 0 ? (value % 1 === 0 || value >= 100 ? 0 : 1) : value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
      return value.toFixed(digits) + units[index];
    }
    function count(value) {
      if (value === Infinity) return "any";
      return value < 100000 && value % 1 === 0 ? grouped.format(value) : scaled(value, 1000, ["", " k", " M", " G", " T"]);
    }
    const rate = (value) => (value > 0 && value < 0.05 ? "<0.1" : scaled(value, 1000, ["", " k", " M", " G", " T"]));
    const bytes = (value) => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
    function duration(seconds) {
      if (seconds < 0.95) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
      if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
      if (seconds < 90) return `${Math.round(seconds)} s`;
      if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
      if (seconds < 129600) return `${Math.round(seconds / 3600)} h`;
      return `${Math.round(seconds / 86400)} days`;
    }
    // For what has a beginning: 5 min 12 s.
    function since(seconds) {
      if (seconds < 60 || seconds >= 3600) return duration(seconds);
      return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
    }
    const short = (nanoseconds) =>
      nanoseconds >= 1e9 ? `${(nanoseconds / 1e9).toPrecision(2)} s`
        : nanoseconds >= 1e6 ? `${Number((nanoseconds / 1e6).toPrecision(2))} ms` : `${Math.round(nanoseconds / 1e3)} µs`;
    const plural = (value, one, many) => `${count(value)} ${value === 1 ? one : many}`;
    const who = (peer) => [peer.client || "a client without a name", peer.identity ? `(${peer.identity})` : ""].filter(Boolean).join(" ");
    """#

  /// Lines and columns.
  private static let charts = #"""
    // The last values of something, one a second.
    class Series {
      constructor(length) { this.values = new Float32Array(length); this.end = 0; this.count = 0; }
      push(value) {
        this.values[this.end] = value;
        this.end = (this.end + 1) % this.values.length;
        this.count = Math.min(this.count + 1, this.values.length);
      }
      // From the oldest on.
      at(index) { return this.values[(this.end - this.count + index + 2 * this.values.length) % this.values.length]; }
    }

    function drawLine(svg, series) {
      const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
      const length = series.values.length;
      let top = 0;
      for (let index = 0; index < series.count; index += 1) top = Math.max(top, series.at(index));
      const points = [];
      for (let index = 0; index < series.count; index += 1) {
        const x = ((length - series.count + index) / (length - 1)) * width;
        const y = height - 1 - (top > 0 ? series.at(index) / top : 0) * (height - 3);
        points.push(`${x.toFixed(1)},${y.toFixed(1)}`);
      }
      const line = points.length > 1 ? `M${points.join("L")}` : "";
      const start = points.length ? points[0].split(",")[0] : 0;
      svg.querySelector(".stroke")?.setAttribute("d", line);
      svg.querySelector(".area")?.setAttribute("d", line ? `${line}L${width},${height}L${start},${height}Z` : "");
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

    // The bound under which so large a share is; null for none at all.
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
        // The root shows what is rare beside what is common.
        element.children[index].style.height = each ? `${Math.max(6, Math.sqrt(each / top) * 100)}%` : "0";
      });
    }
    """#
}
