"use strict";
// Draws by uPlot what the attribute `data-chart` of each element `.chart` holds.
const charts = (() => {
  const all = new Map();
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const ink = (place) => colour(`--s${place}`);
  const digits = (value) => value == null ? "–" : Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4, useGrouping: false });
  const dash = (place) => [[], [7, 2.5], [2.5, 2], [9, 2.5, 2, 2.5]][place % 4].map((length) => length * devicePixelRatio);
  const FONT = "12px system-ui, sans-serif";
  const SHAPE = 0.52, LOWEST = 220, FEW = 24;
  const devicePixelRatio = Math.max(2, globalThis.devicePixelRatio); // as uPlot sees it: see report.py

  // Wide lines come first, so that they hide no thin ones.
  const parsed = (data) => { data.series?.sort((a, b) => wide(b.place) - wide(a.place)); return data; };
  const dataOf = (box) => all.get(box)?.data ?? parsed(JSON.parse(box.dataset.chart));
  const figureOf = (box) => box.closest(".figure") ?? box.parentElement;
  const wide = (place) => place >= 4 ? 2.75 : 1.75;

  // What uPlot takes: a column of each line, two more of a band, and which columns belong to which place.
  const line = (one) => ({
    place: one.place,
    columns: one.low && one.kind === "line" ? [one.y, one.low, one.high] : [one.y],
    x: one.x,
    series: { label: one.name, stroke: () => ink(one.place), width: wide(one.place), dash: dash(one.place), spanGaps: true,
      points: { show: one.kind === "line" && one.x.length <= FEW, size: 5, fill: () => ink(one.place) }, value: (_, value) => digits(value), ...(one.kind === "line" ? {} : { paths: () => null }) },
  });
  const sorted = (part) => {
    const order = [...new Map(part.x.map((x, i) => [x, i])).values()].filter((i) => part.x[i] != null).sort((a, b) => part.x[a] - part.x[b]);
    return [order.map((i) => part.x[i]), ...part.columns.map((column) => order.map((i) => column[i]))];
  };
  const bars = (box, data) => [...new Set(data.bars.map((bar) => bar.place))].map((place) => {
    const x = data.bars.map((_, i) => i + 0.5);
    return {
      place, x, columns: [data.bars.map((bar) => bar.place === place ? bar.value : null)],
      series: { label: figureOf(box).querySelector(`.legend [data-series="${place}"]`)?.textContent ?? data.y.label, stroke: () => ink(place), fill: () => ink(place),
        width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.72, 100] }), value: (_, value) => digits(value) },
    };
  });
  const edge = { label: "", class: "edge", stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };

  // Dots with their intervals, and paths that may go back, are drawn here: uPlot's lines only go forward.
  const dotted = (u, one) => {
    const at = (x, y) => [u.valToPos(x, "x", true), u.valToPos(y, "y", true)], pixels = devicePixelRatio;
    u.ctx.strokeStyle = u.ctx.fillStyle = ink(one.place);
    u.ctx.lineWidth = 1.25 * pixels;
    if (one.kind === "path") u.ctx.setLineDash(dash(one.place));
    u.ctx.beginPath();
    one.x.forEach((x, i) => {
      if (x == null || one.y[i] == null) return;
      if (one.kind === "path") { u.ctx[i ? "lineTo" : "moveTo"](...at(x, one.y[i])); return; }
      if (!one.low) return;
      u.ctx.moveTo(...at(x, one.low[i]));
      u.ctx.lineTo(...at(x, one.high[i]));
    });
    u.ctx.stroke();
    u.ctx.setLineDash([]);
    if (one.kind !== "dots") return;
    for (let i = 0; i < one.x.length; i++) {
      if (one.x[i] == null || one.y[i] == null) continue;
      u.ctx.beginPath();
      u.ctx.arc(...at(one.x[i], one.y[i]), 3 * pixels, 0, 2 * Math.PI);
      u.ctx.fill();
    }
  };
  const within = (u, act) => {
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    u.ctx.clip();
    act();
    u.ctx.restore();
  };

  // Charts of a figure keep equal heights: that of the highest line that is shown, in the part that is zoomed to.
  const heights = (box, data, plot) => {
    const [left, right] = data.x.range, [bottom, top] = data.y.range, figure = figureOf(box);
    const min = plot.scales.x.min ?? left, max = plot.scales.x.max ?? right; // uPlot asks before it has set them
    const hidden = new Set([...figure.querySelectorAll('.legend [aria-pressed="false"]')].map((button) => Number(button.dataset.series)));
    if (hidden.size === 0 && !(min > left || max < right)) return [bottom, top];
    let peak = -Infinity;
    const seen = (place, x, ...values) => { if (!hidden.has(place) && x >= min && x <= max) peak = Math.max(peak, ...values.map((value) => value ?? peak)); };
    for (const other of figure.querySelectorAll(".chart")) {
      const its = dataOf(other);
      if (its.y.label !== data.y.label) continue;
      for (const one of its.series ?? []) one.x.forEach((x, i) => seen(one.place, x, one.y[i], one.high?.[i]));
      (its.bars ?? []).forEach((bar, i) => seen(bar.place, i + 0.5, bar.value));
    }
    return [bottom, peak > bottom ? bottom + (peak - bottom) * 1.05 : top];
  };

  // Small values of a logarithmic axis are written as powers of ten; with many decades these alone have lines.
  const isPower = (value) => value != null && Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-6;
  const written = (value) => value == null ? "" : value < 1e-3 ? value.toExponential() : digits(value);
  const labels = ({ log }) => log ? { values: (_, splits) => splits.map(written) } : {};
  const lines = ({ log, range: [low, high] }, { grid, ticks }) => {
    const filter = (_, splits) => splits.map((value) => isPower(value) ? value : null);
    return log && high / low > 1e4 ? { grid: { ...grid, filter }, ticks: { ...ticks, filter } } : {};
  };
  const axes = (data) => {
    const rule = () => colour("--rule"), common = { stroke: () => colour("--soft"), grid: { stroke: rule, width: 0.75 }, ticks: { stroke: rule }, font: FONT };
    const named = data.x.names ? { splits: () => data.x.names.map(([at]) => at), values: () => data.x.names.map(([, name]) => name) } : {};
    return [{ ...common, ...labels(data.x), ...named, label: data.x.label, labelSize: 20, size: 34, labelFont: FONT, grid: { show: false } }, { ...common, ...labels(data.y), ...lines(data.y, common), size: (_, texts) => 24 + 7 * Math.max(3, ...(texts ?? []).map((text) => String(text ?? "").length)) }];
  };
  const shaded = (u, shade) => {
    const [from, to] = [Math.max(shade[0], u.scales.x.min), Math.min(shade[1], u.scales.x.max)].map((at) => u.valToPos(at, "x", true));
    u.ctx.fillStyle = colour("--shade");
    if (to > from) u.ctx.fillRect(from, u.bbox.top, to - from, u.bbox.height);
  };
  const size = (box) => { const width = Math.max(box.clientWidth, 200); return { width, height: Math.max(Math.round(width * SHAPE), LOWEST) }; };

  const build = (box, data) => {
    const parts = data.bars ? bars(box, data) : data.series.map(line), columns = [{ label: data.x.label, value: (_, value, __, i) => data.bars?.[i]?.name ?? digits(value) }];
    const bands = [], places = parts.map((part) => {
      const at = columns.length, more = part.columns.length > 1;
      if (more) bands.push({ series: [at + 2, at + 1], fill: () => ink(part.place) + "29" });
      columns.push(part.series, ...(more ? [edge, { ...edge }] : []));
      return { place: part.place, of: more ? [at, at + 1, at + 2] : [at] };
    });
    const [left, right] = data.x.range, overTime = data.x.label === "time (s)";
    const still = data.series?.some((one) => one.kind === "path") ?? false;
    const plot = new uPlot({
      ...size(box), axes: axes(data), series: columns, bands,
      scales: { x: { time: false, distr: data.x.log ? 3 : 1, range: (_, low, high) => [low, high] }, y: { distr: data.y.log ? 3 : 1, range: (u) => heights(box, data, u) } },
      legend: { show: !still, live: true },
      cursor: { show: !still, drag: { x: !data.bars, y: false }, y: false, ...(overTime ? { sync: { key: "time" } } : {}) },
      hooks: {
        drawClear: data.shade ? [(u) => shaded(u, data.shade)] : [],
        draw: [(u) => within(u, () => (data.series ?? []).forEach((one, i) => { if (one.kind !== "line" && u.series[places[i].of[0]].show) dotted(u, one); }))],
        setScale: [(u, key) => {
          if (key !== "x") return;
          const [low, high] = heights(box, data, u), zoomed = u.scales.x.min > left || u.scales.x.max < right;
          u.setScale("y", { min: low, max: high });
          figureOf(box).querySelectorAll(".reset").forEach((button) => { button.hidden = !zoomed; });
        }],
      },
    }, uPlot.join(parts.map(sorted)), box);
    const own = () => plot.setScale("x", { min: left, max: right });
    own();
    // Charts over time are zoomed together, and shown whole together.
    const whole = () => overTime ? [...all.values()].filter((one) => one.overTime).forEach((one) => one.own()) : own();
    return { plot, data, places, overTime, own, whole, still };
  };

  const keyboard = (box, { plot, whole }) => {
    box.addEventListener("keydown", (event) => {
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
      box.querySelector(".u-legend").setAttribute("aria-live", "polite");
      plot.setCursor({ left: plot.valToPos(plot.data[0][index], "x"), top: 10 });
    });
    box.addEventListener("pointermove", () => box.querySelector(".u-legend").removeAttribute("aria-live"));
  };
  const draw = (box) => {
    const data = dataOf(box), label = document.createElement("div");
    label.className = "label"; label.textContent = data.y.label; label.setAttribute("aria-hidden", "true");
    box.append(label);
    const made = build(box, data);
    all.set(box, made);
    if (!made.still) {
      box.tabIndex = 0; box.setAttribute("role", "group");
      box.setAttribute("aria-label", `${box.getAttribute("aria-label")} Arrow keys read values, + and - zoom, Escape shows all.`);
      keyboard(box, made);
    }
    new ResizeObserver(() => { if (box.clientWidth > 0 && Math.abs(box.clientWidth - made.plot.width) > 1) made.plot.setSize(size(box)); }).observe(box);
  };
  if (typeof uPlot === "function") {
    document.querySelector(".undrawn")?.remove();
    document.querySelectorAll(".chart[data-chart]").forEach(draw);
  }

  const toggle = (figure, place, show) => {
    for (const box of figure.querySelectorAll(".chart")) {
      const { plot, places } = all.get(box) ?? { places: [] };
      for (const one of places) if (String(one.place) === place) plot.batch(() => one.of.forEach((index) => plot.setSeries(index, { show })));
    }
  };

  // All charts of a figure on one canvas, two in a row, each below its caption and the label of its axis.
  const picture = (figure) => {
    const boxes = [...figure.querySelectorAll(".chart")], drawn = boxes.map((box) => all.get(box).plot.ctx.canvas), canvas = document.createElement("canvas");
    const across = Math.min(drawn.length, 2), above = 40 * devicePixelRatio;
    const [width, height] = ["width", "height"].map((side) => Math.max(...drawn.map((one) => one[side])));
    canvas.width = width * across; canvas.height = (height + above) * Math.ceil(drawn.length / across);
    const ctx = canvas.getContext("2d");
    ctx.fillStyle = colour("--page"); ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.fillStyle = colour("--ink"); ctx.font = `${13 * devicePixelRatio}px system-ui, sans-serif`;
    drawn.forEach((one, i) => {
      const x = (i % across) * width, y = Math.floor(i / across) * (height + above), caption = boxes[i].closest(".panel")?.querySelector("h3")?.textContent ?? "";
      [caption, all.get(boxes[i]).data.y.label].forEach((text, row) => ctx.fillText(text, x + 8 * devicePixelRatio, y + (15 + 18 * row) * devicePixelRatio));
      ctx.drawImage(one, x, y + above);
    });
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  };
  // Bars keep the colour that their paths were made with; before the first drawing there are no paths.
  const redraw = () => { for (const { plot } of all.values()) plot.redraw(plot.scales.x.min != null, true); };
  return { all, picture, redraw, toggle };
})();
