"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const wantsDark = matchMedia("(prefers-color-scheme: dark)");
  const recall = () => { try { return localStorage.getItem("explicate-theme"); } catch { return null; } };
  const keep = (name) => { try { localStorage.setItem("explicate-theme", name); } catch { /* a page may have no storage */ } };
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : wantsDark.matches;
  const plots = [], drawn = new Map();
  const recolour = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.title = "switch to " + theme.textContent.toLowerCase() + " colours";
    for (const plot of plots) plot.redraw(false, true);
  };
  if (recall()) root.dataset.theme = recall();
  theme.hidden = false;
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; keep(root.dataset.theme); recolour(); });
  wantsDark.addEventListener("change", recolour);

  for (const button of document.querySelectorAll(".copy")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector("pre").textContent);
      button.textContent = "Copied";
    });
  }

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const digits = (value) => value == null ? "–" : Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4, useGrouping: false });
  const pair = (text) => text.split(" ").map(Number);
  const DASHES = [[], [7, 2.5], [2.5, 2], [9, 2.5, 2, 2.5]];

  // The drawn chart stays for print and without script; on a screen uPlot takes its place.
  const banded = (one) => one.l && !one.dots;
  const series = (one) => {
    const stroke = () => colour(`--s${one.p}`), edge = { label: "", class: "edge", stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
    const own = { label: one.n, stroke, width: one.p >= 4 ? 2.75 : 1.75, dash: DASHES[one.p % 4], spanGaps: true,
      points: { show: Boolean(one.dots), size: 6, fill: stroke }, value: (_, value) => digits(value) };
    if (one.dots) own.paths = () => null;
    return banded(one) ? [own, edge, { ...edge }] : [own];
  };
  const home = (svg) => svg.closest(".figure") ?? svg.parentElement;
  // Charts of a figure keep equal heights: that of the highest line that is shown, in the part that is zoomed to.
  const data = new WeakMap();
  const linesOf = (svg) => { if (!data.has(svg)) data.set(svg, JSON.parse(svg.dataset.chart)); return data.get(svg); };
  const heights = (svg, plot, bottom, top) => {
    const figure = home(svg), [left, right] = pair(svg.dataset.x), { min, max } = plot.scales.x;
    const hidden = new Set([...figure.querySelectorAll('.legend [aria-pressed="false"]')].map((button) => Number(button.dataset.series)));
    if (hidden.size === 0 && !(min > left || max < right)) return [bottom, top];
    let peak = -Infinity;
    for (const other of figure.querySelectorAll("svg.chart.lines[data-chart]")) {
      if (other.dataset.yLabel !== svg.dataset.yLabel) continue;
      for (const one of linesOf(other).s) if (!hidden.has(one.p)) one.x.forEach((x, i) => { if (x >= min && x <= max) peak = Math.max(peak, one.y[i] ?? peak, one.h?.[i] ?? peak); });
    }
    return [bottom, peak > bottom ? bottom + (peak - bottom) * 1.05 : top];
  };
  const build = (svg, host) => {
    const { s: lines, b: shade } = linesOf(svg), [left, right] = pair(svg.dataset.x), [bottom, top] = pair(svg.dataset.y);
    const log = svg.dataset.log, places = [], columns = [null], bands = [];
    for (const one of lines) {
      const made = series(one), at = columns.length;
      places.push({ place: one.p, of: made.map((_, i) => at + i) });
      if (made.length > 1) bands.push({ series: [at + 2, at + 1], fill: () => colour(`--s${one.p}`) + "29" });
      columns.push(...made);
    }
    const axis = { stroke: () => colour("--soft"), grid: { stroke: () => colour("--rule"), width: 0.75 }, ticks: { stroke: () => colour("--rule") }, font: "12px system-ui, sans-serif" };
    const over = svg.dataset.xLabel === "time (s)";
    const plot = new uPlot({
      width: Math.max(host.clientWidth, 200), height: Math.round(Math.max(host.clientWidth, 200) * 0.52),
      scales: { x: { time: false, distr: log.includes("x") ? 3 : 1, range: (_, low, high) => [low, high] },
        y: { distr: log.includes("y") ? 3 : 1, range: (u) => heights(svg, u, bottom, top) } },
      axes: [{ ...axis, label: svg.dataset.xLabel, labelSize: 20, size: 34, labelFont: "12px system-ui, sans-serif", grid: { show: false } }, { ...axis, size: 52 }],
      series: [{ label: svg.dataset.xLabel, value: (_, value) => digits(value) }, ...columns.slice(1)],
      bands, legend: { live: true },
      cursor: { drag: { x: true, y: false }, y: false, ...(over ? { sync: { key: "time" } } : {}) },
      hooks: {
        drawClear: [(u) => {
          if (!shade) return;
          const from = u.valToPos(Math.max(shade[0], u.scales.x.min), "x", true), to = u.valToPos(Math.min(shade[1], u.scales.x.max), "x", true);
          u.ctx.fillStyle = colour("--shade");
          if (to > from) u.ctx.fillRect(from, u.bbox.top, to - from, u.bbox.height);
        }],
        draw: [(u) => {
          lines.forEach((one, k) => {
            if (!one.dots || !one.l || !u.series[places[k].of[0]].show) return;
            u.ctx.strokeStyle = colour(`--s${one.p}`); u.ctx.lineWidth = 1.25 * devicePixelRatio; u.ctx.beginPath();
            one.x.forEach((x, i) => { const at = u.valToPos(x, "x", true); u.ctx.moveTo(at, u.valToPos(one.l[i], "y", true)); u.ctx.lineTo(at, u.valToPos(one.h[i], "y", true)); });
            u.ctx.stroke();
          });
        }],
        setScale: [(u, key) => {
          if (key !== "x") return;
          const whole = u.data[0], zoomed = u.scales.x.min > whole[0] || u.scales.x.max < whole[whole.length - 1]
          const [low, high] = heights(svg, u, bottom, top);
          u.setScale("y", { min: low, max: high });
          home(svg).querySelectorAll(".reset").forEach((button) => { button.hidden = !zoomed; });
        }],
      },
    }, uPlot.join(lines.map((one) => banded(one) ? [one.x, one.y, one.l, one.h] : [one.x, one.y])), host);
    plot.setScale("x", { min: Math.min(left, plot.data[0][0]), max: Math.max(right, plot.data[0][plot.data[0].length - 1]) });
    const own = () => plot.setScale("x", { min: left, max: right });
    // Charts over time are zoomed together, and shown whole together.
    return { plot, places, over, own, whole: () => over ? [...drawn.values()].filter((one) => one.over).forEach((one) => one.own()) : own() };
  };
  const keyboard = (host, { plot, whole }) => {
    host.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], { min, max } = plot.scales.x;
      if (event.key === "Escape") whole();
      if (event.key === "+" || event.key === "-") {
        const centre = plot.cursor.idx == null ? (min + max) / 2 : plot.data[0][plot.cursor.idx], factor = event.key === "+" ? 0.5 : 2;
        plot.setScale("x", { min: centre - (centre - min) * factor, max: centre + (max - centre) * factor });
      }
      if (!step) return;
      event.preventDefault();
      const last = plot.data[0].length - 1, from = plot.cursor.idx ?? (last >> 1), by = Math.max(1, Math.round(last / 100));
      const index = Math.min(Math.max(from + step * by, 0), last);
      host.querySelector(".u-legend").setAttribute("aria-live", "polite");
      plot.setCursor({ left: plot.valToPos(plot.data[0][index], "x"), top: 10 });
    });
    host.addEventListener("pointermove", () => host.querySelector(".u-legend").removeAttribute("aria-live"));
  };
  const draw = (svg) => {
    const host = document.createElement("div"), label = document.createElement("div");
    label.className = "label"; label.textContent = svg.dataset.yLabel; label.setAttribute("aria-hidden", "true");
    host.className = "plot"; host.tabIndex = 0; host.setAttribute("role", "group");
    host.setAttribute("aria-label", `${svg.getAttribute("aria-label")} Arrow keys read values, + and - zoom, Escape shows all.`);
    host.append(label);
    svg.after(host); svg.classList.add("still"); svg.tabIndex = -1;
    const made = build(svg, host);
    plots.push(made.plot); drawn.set(svg, made); keyboard(host, made);
    new ResizeObserver(() => {
      if (host.clientWidth > 0 && Math.abs(host.clientWidth - made.plot.width) > 1) made.plot.setSize({ width: host.clientWidth, height: Math.round(host.clientWidth * 0.52) });
    }).observe(host);
  };
  if (typeof uPlot === "function") {
    for (const svg of document.querySelectorAll("svg.chart.lines[data-chart]")) if (!svg.dataset.still) draw(svg);
  }
  recolour();

  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") === "false", figure = button.closest(".figure");
      button.setAttribute("aria-pressed", String(shown));
      for (const mark of figure.querySelectorAll(`.chart .s${button.dataset.series}`)) mark.classList.toggle("off", !shown);
      for (const svg of figure.querySelectorAll(".chart")) {
        const made = drawn.get(svg);
        for (const { place, of } of made ? made.places : []) {
          if (String(place) === button.dataset.series) made.plot.batch(() => { for (const index of of) made.plot.setSeries(index, { show: shown }); });
        }
      }
    });
  }

  // Each figure gives its data and its picture.
  const save = (name, type, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type })); link.download = name; link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const quoted = (text) => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : String(text);
  const captions = (svg) => svg.closest(".panel")?.querySelector("h3")?.textContent ?? "";
  const table = (figure) => {
    const rows = [["panel", "series", "x", "y", "low", "high"]];
    for (const svg of figure.querySelectorAll(".chart[data-chart]")) {
      for (const one of linesOf(svg).s) one.x.forEach((x, i) => rows.push([captions(svg), one.n, x, one.y[i] ?? "", one.l?.[i] ?? "", one.h?.[i] ?? ""]));
    }
    return rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  };
  const picture = (figure) => {
    const charts = [...figure.querySelectorAll("svg.chart")], box = charts[0].viewBox.baseVal, across = charts.length > 1 ? 2 : 1;
    const placed = charts.map((svg, i) => {
      const copy = svg.cloneNode(true);
      for (const name of [...copy.attributes].map((one) => one.name)) if (name.startsWith("data-") || name === "tabindex") copy.removeAttribute(name);
      copy.classList.remove("still");
      copy.setAttribute("x", (i % across) * box.width); copy.setAttribute("y", Math.floor(i / across) * (box.height + 18) + 18);
      copy.setAttribute("width", box.width); copy.setAttribute("height", box.height);
      const caption = document.createElementNS(charts[0].namespaceURI, "text");
      caption.setAttribute("x", (i % across) * box.width + 4); caption.setAttribute("y", Math.floor(i / across) * (box.height + 18) + 14);
      caption.textContent = captions(svg);
      return new XMLSerializer().serializeToString(caption) + new XMLSerializer().serializeToString(copy);
    });
    const width = box.width * across, height = (box.height + 18) * Math.ceil(charts.length / across), style = document.querySelector("style").textContent;
    return `<svg xmlns="${charts[0].namespaceURI}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><style>${style.replaceAll("<", "&lt;")} svg{background:var(--page)} text{font-family:system-ui,sans-serif}</style>${placed.join("")}</svg>\n`;
  };
  for (const figure of document.querySelectorAll(".figure")) {
    const charts = figure.querySelectorAll(".chart[data-chart]");
    if (!charts.length) continue;
    const tools = document.createElement("p"), name = figure.id || "figure";
    tools.className = "tools";
    const tool = (text, label, act, kind = "") => {
      const button = document.createElement("button");
      button.type = "button"; button.textContent = text; button.setAttribute("aria-label", label); button.className = kind; button.addEventListener("click", act);
      tools.append(button);
      return button;
    };
    tool("CSV", `save the data of ${name}`, () => save(`${name}.csv`, "text/csv", table(figure)));
    tool("SVG", `save the picture of ${name}`, () => save(`${name}.svg`, "image/svg+xml", picture(figure)));
    tool("Show all", `undo the zoom of ${name}`, () => { for (const svg of charts) drawn.get(svg)?.whole(); }, "reset").hidden = true;
    figure.querySelector("h2")?.after(tools);
  }

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
})();
