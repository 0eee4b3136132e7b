"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const wantsDark = matchMedia("(prefers-color-scheme: dark)");
  const recall = () => { try { return localStorage.getItem("explicate-theme"); } catch { return null; } };
  const keep = (name) => { try { localStorage.setItem("explicate-theme", name); } catch { /* a page may have no storage */ } };
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : wantsDark.matches;
  const recolour = () => {
    if (theme) {
      theme.textContent = isDark() ? "Light" : "Dark";
      theme.title = "switch to " + theme.textContent.toLowerCase() + " colours";
    }
    charts.redraw();
  };
  if (theme) {
    if (recall()) root.dataset.theme = recall();
    theme.hidden = false;
    theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; keep(root.dataset.theme); recolour(); });
  }
  wantsDark.addEventListener("change", recolour);
  recolour();

  for (const button of document.querySelectorAll(".copy")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector("pre").textContent);
      button.textContent = "Copied";
    });
  }

  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") === "false";
      button.setAttribute("aria-pressed", String(shown));
      charts.toggle(button.closest(".figure"), button.dataset.series, shown);
    });
  }

  // Each figure gives its data and its picture.
  const save = (name, blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob); link.download = name; link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const quoted = (text) => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : String(text);
  const table = (figure) => {
    const rows = [["panel", "series", "x", "y", "low", "high"]];
    for (const box of figure.querySelectorAll(".chart")) {
      const { series = [], bars = [] } = charts.all.get(box).data, caption = box.closest(".panel")?.querySelector("h3")?.textContent ?? "";
      for (const one of series) one.x.forEach((x, i) => rows.push([caption, one.name, x, one.y[i] ?? "", one.low?.[i] ?? "", one.high?.[i] ?? ""]));
      bars.forEach((bar, i) => rows.push([caption, bar.name, i + 1, bar.value ?? "", "", ""]));
    }
    return new Blob([rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n"], { type: "text/csv" });
  };
  for (const figure of document.querySelectorAll(".figure")) {
    const boxes = [...figure.querySelectorAll(".chart")];
    if (!boxes.length || !boxes.every((box) => charts.all.has(box))) continue;
    const tools = document.createElement("p"), name = figure.id || "figure";
    tools.className = "tools";
    const tool = (text, label, act, kind = "") => {
      const button = document.createElement("button");
      button.type = "button"; button.textContent = text; button.setAttribute("aria-label", label); button.className = kind; button.addEventListener("click", act);
      tools.append(button);
      return button;
    };
    tool("CSV", `save the data of ${name}`, () => save(`${name}.csv`, table(figure)));
    tool("PNG", `save the picture of ${name}`, async () => save(`${name}.png`, await charts.picture(figure)));
    tool("Show all", `undo the zoom of ${name}`, () => boxes.forEach((box) => charts.all.get(box).whole()), "reset").hidden = true;
    figure.querySelector("h2")?.after(tools);
  }

  // Paper is white, and shows what can be opened.
  let opened = [], chosen;
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
    chosen = root.dataset.theme;
    root.dataset.theme = "light";
    charts.redraw();
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
    if (chosen) root.dataset.theme = chosen; else delete root.dataset.theme;
    charts.redraw();
  });
})();
