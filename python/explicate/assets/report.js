"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const wantsDark = matchMedia("(prefers-color-scheme: dark)");
  const recall = () => { try { return localStorage.getItem("explicate-theme"); } catch { return null; } };
  const keep = (name) => { try { localStorage.setItem("explicate-theme", name); } catch { /* a page may have no storage */ } };
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : wantsDark.matches;
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; theme.title = "switch to " + theme.textContent.toLowerCase() + " colours"; };
  if (recall()) root.dataset.theme = recall();
  theme.hidden = false;
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; keep(root.dataset.theme); nameTheme(); });
  wantsDark.addEventListener("change", nameTheme);
  nameTheme();

  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") === "false";
      button.setAttribute("aria-pressed", String(shown));
      const marks = button.closest(".figure").querySelectorAll(`.chart .s${button.dataset.series}`);
      for (const mark of marks) mark.classList.toggle("off", !shown);
    });
  }

  for (const button of document.querySelectorAll(".copy")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector("pre").textContent);
      button.textContent = "Copied";
    });
  }

  // Values under the pointer are read back from the drawn positions: the page carries every number once.
  const tip = document.getElementById("tip");
  const digits = (value) => Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3, useGrouping: false });
  const pair = (text) => text.split(" ").map(Number);
  const along = ([low, high], share, log) => log ? low * (high / low) ** share : low + (high - low) * share;
  const parsed = new WeakMap();
  const pointsOf = (path) => {
    if (!parsed.has(path)) parsed.set(path, path.getAttribute("d").slice(1).split("L").map(pair));
    return parsed.get(path);
  };
  const nearest = (points, x) => {
    let low = 0, high = points.length - 1;
    while (high - low > 1) { const middle = (low + high) >> 1; if (points[middle][0] <= x) low = middle; else high = middle; }
    return Math.abs(points[low][0] - x) <= Math.abs(points[high][0] - x) ? points[low] : points[high];
  };

  const read = (svg, x) => {
    const [left, top, width, height] = pair(svg.dataset.box), log = svg.dataset.log || "";
    const bars = [...svg.querySelectorAll(".bar:not(.off)")];
    if (bars.length) {
      const centre = (bar) => Number(bar.getAttribute("x")) + Number(bar.getAttribute("width")) / 2;
      const bar = bars.reduce((best, next) => Math.abs(centre(next) - x) < Math.abs(centre(best) - x) ? next : best);
      return { x: centre(bar), text: `${bar.dataset.name}\n${svg.dataset.yLabel}: ${bar.dataset.value}` };
    }
    const lines = [`${svg.dataset.xLabel}: ${digits(along(pair(svg.dataset.x), (x - left) / width, log.includes("x")))}`];
    for (const path of svg.querySelectorAll(".line:not(.off)")) {
      const points = pointsOf(path), [px, py] = nearest(points, x);
      if (Math.abs(px - x) <= Math.max(4, width / points.length)) {
        lines.push(`${path.dataset.name}: ${digits(along(pair(svg.dataset.y), (top + height - py) / height, log.includes("y")))}`);
      }
    }
    return { x, text: lines.join("\n") };
  };

  const show = (svg, x) => {
    const [left, , width] = pair(svg.dataset.box);
    const at = read(svg, Math.min(Math.max(x, left), left + width));
    const cursor = svg.querySelector(".cursor"), box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
    cursor.setAttribute("x1", at.x); cursor.setAttribute("x2", at.x);
    svg.dataset.at = at.x;
    tip.textContent = at.text; tip.hidden = false;
    const room = root.clientWidth - tip.offsetWidth - 8, wanted = box.left + at.x * scale + 12;
    tip.style.left = `${scrollX + Math.max(4, Math.min(wanted, room))}px`;
    tip.style.top = `${scrollY + box.top + 4}px`;
  };
  const hide = (svg) => { tip.hidden = true; for (const end of ["x1", "x2"]) svg.querySelector(".cursor").setAttribute(end, -9); };

  for (const svg of document.querySelectorAll(".chart")) {
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      show(svg, (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width);
    });
    svg.addEventListener("pointerleave", () => hide(svg));
    svg.addEventListener("blur", () => hide(svg));
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") hide(svg);
      if (!step) return;
      event.preventDefault();
      const [left, , width] = pair(svg.dataset.box), bars = svg.querySelectorAll(".bar").length;
      const from = svg.dataset.at === undefined ? left + width / 2 : Number(svg.dataset.at);
      show(svg, from + step * (bars ? width / bars : width / 50));
    });
  }

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
})();
