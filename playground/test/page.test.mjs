/** The page as a visitor meets it. */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { deflateRawSync, gzipSync, inflateRawSync } from "node:zlib";
import { PATIENCE, browser, clock, later, open, serve, slide, stands } from "./page.mjs";
import { ROOT, explicate, text } from "./wasm.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

let server;
let chromium;
before(async () => {
  server = await serve();
  chromium = await browser();
});
after(async () => {
  await chromium?.close();
  server?.close();
});

async function visit(address, options, work) {
  const context = await chromium.newContext({ viewport: DESKTOP, acceptDownloads: true, ...options });
  try {
    const { page, problems } = await open(context, server.address + address);
    await work(page);
    assert.deepEqual(problems, []);
  } finally {
    await context.close();
  }
}

/** Hashes of the tables, in the order of the lanes. */
async function hashes(page) {
  await page.click("#download");
  await page.waitForFunction(() => document.querySelector("#tables-about").textContent.startsWith("Computed"));
  return page.$$eval("#tables-list code", (all) => all.map((code) => code.textContent));
}

test("all files together have at most 1.2 MB compressed", () => {
  const dist = join(ROOT, "playground", "dist");
  const files = readdirSync(dist, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const size = files.reduce((sum, file) => sum + gzipSync(readFileSync(join(file.parentPath, file.name)), { level: 9 }).length, 0);
  console.log(`${(size / 1000).toFixed(0)} kB compressed`);
  assert.ok(size <= 1.2e6, `${size}`);
});

test("the first picture has something drawn", async () => {
  await visit("", {}, async (page) => {
    const drawn = await page.$eval(".lane canvas", (canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return data.some((value) => value > 0);
    });
    assert.ok(drawn, "nothing is drawn");
    assert.equal(await page.textContent("#note"), "", "the page's own scenarios need no warning");
  });
});

test("50 flows at 100 Mbit/s go on", async () => {
  await visit("", {}, async (page) => {
    await slide(page, "Flows", 7);
    await slide(page, "Rate", 5);
    assert.equal(await page.locator('input[data-name="Flows"]').getAttribute("aria-valuetext"), "50");
    assert.equal(await page.locator('input[data-name="Rate"]').getAttribute("aria-valuetext"), "100 Mbit/s");
    await later(page, 0.5);
  });
});

test("play, pause, step and speed, by keyboard too", async () => {
  await visit("", {}, async (page) => {
    await page.waitForFunction(() => Number.parseFloat(document.querySelector("#clock").textContent) > 0.1);
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press("Space");
    await page.waitForFunction(() => document.querySelector("#play").textContent === "Play");
    const paused = await stands(page);
    await page.keyboard.press(".");
    await page.waitForFunction((from) => Number.parseFloat(document.querySelector("#clock").textContent) !== from, paused);
    assert.ok(Math.abs((await clock(page)) - paused - 0.02) < 0.011, "a step is 20 ms");
    await page.selectOption("#speed", "20");
    await page.click("#play");
    await page.waitForFunction((from) => Number.parseFloat(document.querySelector("#clock").textContent) > from + 4, paused);
  });
});

test("a change has its effect at once, and the link repeats it", async () => {
  let link;
  let first;
  let at;
  await visit("", {}, async (page) => {
    await page.selectOption("#speed", "5");
    await page.waitForFunction(() => Number.parseFloat(document.querySelector("#clock").textContent) > 4);
    await slide(page, "Rate", -3);
    at = await clock(page);
    await page.waitForFunction((t) => Number.parseFloat(document.querySelector("#clock").textContent) > t + 3, at);
    const throughput = await page.textContent(".lane dd");
    assert.ok(Number.parseFloat(throughput) < 8.5, `XCP at 8 Mbit/s has ${throughput}`);
    await slide(page, "Loss", 4);
    await slide(page, "Round trip", 2);
    await slide(page, "Buffer", -4);
    await page.waitForFunction(() => document.querySelector("#controls .note").textContent.includes("changes so far"));
    await page.click("#share");
    await page.waitForFunction(() => location.hash.startsWith("#s="));
    link = new URL(page.url()).hash;
    first = await hashes(page);
  });
  assert.equal(first.length, 4);
  assert.equal(new Set(first).size, 4);
  await visit(link, {}, async (page) => assert.deepEqual(await hashes(page), first));
  // Without its changes the run is another one.
  await visit("", {}, async (page) => assert.notDeepEqual(await hashes(page), first));
});

test("be the router: what is set is given, and XCP's own is shown", async () => {
  await visit("?router", {}, async (page) => {
    await page.selectOption("#speed", "5");
    await page.waitForFunction(() => Number.parseFloat(document.querySelector("#clock").textContent) > 3);
    await slide(page, "Feedback", -4);
    await page.waitForFunction(() => Number.parseFloat(document.querySelector("#clock").textContent) > 6);
    await later(page, 12);
    const label = await page.locator(".curve", { hasText: "Feedback" }).locator("[role=img]").getAttribute("aria-label");
    const [, you, xcp] = /you (-?[\d.]+), what XCP would do (-?[\d.]+)/.exec(label).map(Number);
    assert.ok(Math.abs(you + 10) < 1.5, label);
    assert.ok(xcp > 0, label);
    const [mine, theirs] = await page.$$eval(".lane", (all) => all.map((lane) => Number.parseFloat(lane.querySelector("dd").textContent)));
    assert.ok(mine < theirs / 2, `${mine} and ${theirs} Mbit/s`);
  });
});

test("the law's constants can be changed", async () => {
  await visit("?router", {}, async (page) => {
    await page.click("button:text-is('Law')");
    await slide(page, "Alpha", 4);
    await page.waitForFunction(() => document.querySelector(".lane h2").textContent.includes("α 1"));
  });
});

test("a scenario is opened by drop, with its trace, and has the tables of the command line", async () => {
  const files = { "traces.toml": text("scenarios/traces.toml"), "steps.trace": text("scenarios/steps.trace") };
  await visit("", {}, async (page) => {
    const transfer = await page.evaluateHandle((all) => {
      const data = new DataTransfer();
      for (const [name, contents] of Object.entries(all)) data.items.add(new File([contents], name));
      return data;
    }, files);
    await page.dispatchEvent("main", "drop", { dataTransfer: transfer });
    await page.waitForFunction(() => document.querySelector(".lane h2")?.textContent === "traces.toml");
    const [hash] = await hashes(page);
    const beside = JSON.stringify({ "steps.trace": files["steps.trace"] });
    assert.equal(hash, explicate.hash(files["traces.toml"], "traces.toml", beside, "", ""));
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("a:text-is('links.csv')")]);
    const csv = readFileSync(await download.path(), "utf8");
    assert.match(csv, /^run,link,utilisation,/);
    assert.ok(csv.split("\n").length > 5);
  });
});

test("links of an opened scenario change too, where that is possible", async () => {
  await visit("", {}, async (page) => {
    const toml = (name) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text(`scenarios/${name}`)) });
    const titled = (name) => page.waitForFunction((n) => document.querySelector(".lane h2")?.textContent === n, name);
    await page.setInputFiles("#file", [toml("traces.toml"), toml("steps.trace")]);
    await titled("traces.toml");
    const names = () => page.$$eval("#controls input", (all) => all.map((input) => input.dataset.name));
    assert.deepEqual(await names(), ["Delay", "More loss", "Buffer"]);
    await page.setInputFiles("#file", toml("long-fat-pipe.toml"));
    await titled("long-fat-pipe.toml");
    assert.deepEqual(await names(), ["Rate", "Delay", "More loss", "Buffer"]);
    await page.selectOption("#speed", "5");
    await page.waitForFunction(() => Number.parseFloat(document.querySelector("#clock").textContent) > 6);
    await slide(page, "Rate", -2);
    await page.waitForFunction(() => Number.parseFloat(document.querySelector("#clock").textContent) > 12);
    const throughput = Number.parseFloat(await page.textContent(".lane dd"));
    assert.equal(await page.locator('input[data-name="Rate"]').getAttribute("aria-valuetext"), "100 Mbit/s");
    assert.ok(throughput > 60 && throughput < 101, `${throughput} of 100 Mbit/s`);
  });
});

test("a scenario with a mistake is explained, with its line", async () => {
  await visit("", {}, async (page) => {
    await page.setInputFiles("#file", { name: "mine.toml", mimeType: "text/plain", buffer: Buffer.from('duration = "5 apples"\n') });
    await page.waitForFunction(() => document.querySelector("#message").textContent.includes("mine.toml:1"));
    assert.ok(await page.isVisible("#message"));
  });
});

test("a scene that takes long gives way to another one", async () => {
  const large = text("crates/explicate-scenario/templates/dumbbell.toml").replace(/^rate = .*$|rate = "[^"]*"/gm, 'rate = "10Gbit/s"').replace(/duration = "[^"]*"/, 'duration = "1000s"');
  await visit("", {}, async (page) => {
    await page.setInputFiles("#file", { name: "large.toml", mimeType: "text/plain", buffer: Buffer.from(large) });
    await page.waitForFunction(() => document.querySelector(".lane h2")?.textContent === "large.toml");
    await page.click("#download");
    await page.waitForTimeout(1500);
    await page.keyboard.press("Escape");
    await page.click("button:text-is('Compare')");
    await page.waitForFunction(() => document.querySelectorAll(".lane").length === 4);
    await page.waitForFunction(() => Number.parseFloat(document.querySelector("#clock").textContent) > 0.2);
  });
});

test("every paper has a scene that runs", async () => {
  for (const paper of ["N", "I", "Y", "D", "K"]) {
    await visit(`?paper=${paper}`, {}, async (page) => {
      assert.equal(await page.locator("#story p").count(), 3);
      await page.waitForFunction(() => Number.parseFloat(document.querySelector("#clock").textContent) > 0.2);
    });
  }
});

test("?run names protocols; a wrong one is explained", async () => {
  await visit("?run=xcp_r,reno", {}, async (page) => {
    assert.deepEqual(await page.$$eval(".lane h2", (all) => all.map((h) => h.textContent)), ["xcp_r", "reno"]);
  });
  const context = await chromium.newContext();
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  await page.goto(`${server.address}?run=nonsense`);
  await page.waitForFunction(() => document.querySelector("#message").textContent.includes("nonsense"));
  await context.close();
});

test("the stack is chosen beside the protocols, and the link and the scenario have it", async () => {
  const tables = async (address, stack) => {
    let link;
    let all;
    await visit(address, {}, async (page) => {
      if (stack) await page.selectOption('select[data-name="TCP"]', stack);
      await page.click("#share");
      await page.waitForFunction(() => location.hash.startsWith("#s="));
      link = new URL(page.url()).hash;
      assert.equal(await page.locator('select[data-name="TCP"]').inputValue(), stack ?? (new URL(address, "http://x").searchParams.get("stack") || "linux"));
      all = await hashes(page);
    });
    return [all, link];
  };
  const [linux] = await tables("?run=xcp,cubic");
  const [ns2, link] = await tables("?run=xcp,cubic", "ns2");
  assert.notEqual(ns2[1], linux[1]);
  assert.deepEqual((await tables("?run=xcp,cubic&stack=ns2"))[0], ns2);
  const { scene } = JSON.parse(inflateRawSync(Buffer.from(link.slice(3), "base64url")));
  assert.equal(scene.stack, "ns2");
  // An address of an earlier version names none.
  const { stack: _, ...old } = { ...scene };
  await visit(`#s=${deflateRawSync(JSON.stringify({ scene: old, changes: [] })).toString("base64url")}`, {}, async (page) => {
    assert.deepEqual(await hashes(page), linux);
  });
  const context = await chromium.newContext();
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  await page.goto(`${server.address}?run=xcp&stack=bsd`);
  await page.waitForFunction(() => document.querySelector("#message").textContent.includes("there are linux, rfc, ns2"));
  await context.close();
});

/** The scenarios of a page's lanes, as the dialog of tables offers them. */
async function scenarios(page) {
  await hashes(page);
  const links = page.locator("#tables-list a[download$='.toml']");
  const found = [];
  for (const link of await links.all()) {
    const [download] = await Promise.all([page.waitForEvent("download"), link.click()]);
    found.push(readFileSync(await download.path(), "utf8"));
  }
  return found;
}

test("how many bits: each protocol has the queue that its feedback needs, and the page says what the network says", async () => {
  await visit("", {}, async (page) => {
    await page.click("button:text-is('How many bits?')");
    await page.waitForFunction(() => document.querySelector(".lane h2")?.textContent === "TCP Prague");
    assert.equal(await page.locator("nav [aria-current=true]").textContent(), "How many bits?");
    const said = await page.$$eval(".hears li", (all) => all.map((item) => item.textContent));
    assert.deepEqual(said.map((line) => line.match(/(One|Two|32) bits?/)?.[1]), ["One", "One", "Two", "32"]);
    await page.selectOption('select[data-name="Protocol 2"]', "dctcp");
    await page.waitForFunction(() => document.querySelectorAll(".lane h2")[1]?.textContent === "DCTCP");
    assert.equal(await page.locator("nav [aria-current=true]").textContent(), "Compare");
    // 20 Mbit/s for 80 ms are 200 packets, a seventh is 29.
    const queues = (await scenarios(page)).map((text) => text.match(/bottleneck = .*queue = (\{.*?\})/)[1]);
    assert.match(queues[0], /dualpi2/);
    assert.match(queues[1], /"step", threshold = "29000B"/);
    assert.match(queues[2], /droptail/);
  });
});

test("a buffer that changes leaves marking queues as they are, and every lane goes on", async () => {
  await visit("?run=dctcp,prague,cubic", {}, async (page) => {
    await page.selectOption("#speed", "5");
    await later(page, 2);
    const before = await hashes(page);
    await page.keyboard.press("Escape");
    await slide(page, "Buffer", -5);
    await page.click("#play"); // the dialog has paused it
    await later(page, 2);
    assert.equal(await page.isVisible("#message"), false);
    const after = await hashes(page);
    assert.deepEqual([0, 1, 2].map((i) => before[i] === after[i]), [true, true, false]);
  });
});

test("an address with a scene that cannot be is explained", async () => {
  const state = { scene: { kind: "dumbbell", lanes: [{ protocol: "xcp" }], rate: 20, rtt: 80, loss: 0, buffer: 200, flows: 1e9, seed: 1, duration: 60 }, changes: [] };
  const fails = [state, { ...state, scene: { ...state.scene, flows: 4, stack: "bsd" } }];
  for (const state of fails) await visit(`#s=${deflateRawSync(JSON.stringify(state)).toString("base64url")}`, {}, async (page) => {
    assert.match(await page.textContent("#message"), /The address is damaged/);
    assert.equal(await page.locator(".lane").count(), 4, "the first scene is shown instead");
  });
});

test("every protocol of the reference runs", async () => {
  const pages = readdirSync(join(ROOT, "docs", "reference")).filter((file) => file.startsWith("protocol-"));
  const names = pages.map((file) => file.slice("protocol-".length, -".md".length));
  assert.ok(names.length >= 15);
  for (let i = 0; i < names.length; i += 4) {
    const four = names.slice(i, i + 4);
    await visit(`?run=${four}`, {}, async (page) => {
      assert.equal(await page.locator(".lane").count(), four.length);
      await page.waitForFunction(() => Number.parseFloat(document.querySelector("#clock").textContent) > 0.3);
    });
  }
});

test("with reduced motion nothing moves until it is asked for", async () => {
  await visit("", { reducedMotion: "reduce" }, async (page) => {
    const began = await clock(page);
    assert.ok(began > 1, "there is something to see");
    await page.waitForTimeout(700);
    assert.equal(await clock(page), began);
    await page.click("#play");
    await page.waitForFunction((from) => Number.parseFloat(document.querySelector("#clock").textContent) > from + 0.3, began);
  });
});

for (const [size, viewport] of [["desktop", DESKTOP], ["phone", PHONE]]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`no violation of accessibility, ${size}, ${colorScheme}`, async () => {
      for (const address of ["", "?router", "?paper=I"]) {
        await visit(address, { viewport, colorScheme }, async (page) => {
          await page.click("#play");
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(wide <= 0, `${address}: ${wide} px wider than the screen`);
          await page.evaluate(AXE);
          const found = await page.evaluate(() => window.axe.run(document));
          const named = found.violations.map((v) => `${address} ${v.id}: ${v.nodes.map((n) => n.target).join(", ")}`);
          assert.deepEqual(named, []);
          assert.ok(found.passes.length > 15);
          if (address !== "") return;
          await hashes(page);
          const dialog = await page.evaluate(() => window.axe.run(document.querySelector("dialog")));
          assert.deepEqual(dialog.violations.map((v) => v.id), []);
        });
      }
    });
  }
}

test("on a phone the controls stand below the lanes and above the curves", async () => {
  await visit("?router", { viewport: PHONE }, async (page) => {
    const tops = await page.evaluate(() => ["#story", "#transport", "#lanes", "#controls", "#curves"].map((id) => document.querySelector(id).getBoundingClientRect().top));
    assert.deepEqual(tops, tops.toSorted((a, b) => a - b));
    await page.evaluate(() => scrollTo(0, 600));
    assert.equal(await page.evaluate(() => document.querySelector("#transport").getBoundingClientRect().top), 0, "playback stays in view");
  });
});

test("words in the picture of a narrow lane end before the receivers", async () => {
  await visit("", { viewport: PHONE }, async (page) => {
    await page.addInitScript(() => {
      window.ends = [];
      const write = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        if (this.canvas.closest(".lane")) window.ends.push([text, (x + this.measureText(text).width) / this.canvas.clientWidth]);
        write.call(this, text, x, y);
      };
    });
    await page.reload();
    await page.waitForSelector("body[data-ready]");
    await page.click("text=Five papers");
    await page.waitForFunction(() => window.ends.some(([text]) => text.startsWith("shared air")));
    const ends = await page.evaluate(() => window.ends);
    assert.deepEqual(ends.filter(([, end]) => end > 0.95), []);
  });
});

for (const colorScheme of ["light", "dark"]) {
  test(`the mark of a full queue has no lane's colour, ${colorScheme}`, async () => {
    await visit("", { colorScheme }, async (page) => {
      const hues = await page.evaluate(() => {
        const hue = (name) => {
          const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
          const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
          return (Math.atan2(Math.sqrt(3) * (g - b), 2 * r - g - b) * 180) / Math.PI;
        };
        return ["--full", "--lane-0", "--lane-1", "--lane-2", "--lane-3"].map(hue);
      });
      const [full, ...lanes] = hues;
      const apart = lanes.map((lane) => Math.min(Math.abs(lane - full), 360 - Math.abs(lane - full)));
      assert.ok(Math.min(...apart) > 15, `degrees from each lane: ${apart.map(Math.round)}`);
    });
  });
}
