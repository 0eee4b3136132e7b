/** The built page, served on this machine, in a real browser. */
import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";
import { ROOT } from "./wasm.mjs";

const DIST = join(ROOT, "playground", "dist");
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };
/** How long tests wait for what has to come, ms: it ends a wait in vain, and judges no speed. */
export const PATIENCE = 120000;
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
// As root there is no sandbox; the others keep the browser from looking for its maker's servers.
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export async function serve() {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, "http://localhost").pathname);
    const file = join(DIST, path === "/" ? "index.html" : path);
    if (!file.startsWith(DIST) || !existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { address: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

export function browser() {
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

/** Opens the page and waits for its first picture; fails on any error of the page, and on requests elsewhere. */
export async function open(context, address) {
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (!["127.0.0.1", ""].includes(url.hostname)) problems.push(`a request to ${url.hostname}`);
  });
  await page.goto(address);
  await page.waitForSelector("body[data-ready]");
  return { page, problems };
}

/** The simulated time that the page shows, s. */
export const clock = async (page) => Number.parseFloat(await page.textContent("#clock"));

/** Waits until so many more seconds are simulated. */
export async function later(page, seconds) {
  const until = (await clock(page)) + seconds;
  await page.waitForFunction((t) => Number.parseFloat(document.querySelector("#clock").textContent) > t, until);
}

/** Waits until the simulated time stands still, which it does not while it is played; returns it. */
export async function stands(page) {
  for (const began = Date.now(); Date.now() - began < PATIENCE; ) {
    const before = await clock(page);
    await page.waitForTimeout(500);
    if ((await clock(page)) === before) return before;
  }
  throw new Error("the time does not stand still");
}

/** Moves a slider by so many steps. */
export async function slide(page, name, steps) {
  const slider = page.locator(`input[data-name="${name}"]`);
  await slider.focus();
  for (let i = 0; i < Math.abs(steps); i++) await page.keyboard.press(steps > 0 ? "ArrowRight" : "ArrowLeft");
}
