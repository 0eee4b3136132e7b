/** Makes docs/playground.png from the built page. */
import { join } from "node:path";
import { browser, open, serve } from "./test/page.mjs";
import { ROOT } from "./test/wasm.mjs";

const server = await serve();
const chromium = await browser();
const context = await chromium.newContext({ viewport: { width: 1280, height: 790 }, colorScheme: "light" });
const { page } = await open(context, server.address);
await page.selectOption("#speed", "1");
await page.waitForFunction(() => Number.parseFloat(document.querySelector("#clock").textContent) > 7);
await page.evaluate(() => document.activeElement?.blur());
await page.screenshot({ path: join(ROOT, "docs", "playground.png") });
await chromium.close();
server.close();
