/** A browser runs at least a third as fast as a native release build. */
import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { PROTOCOLS, crowd } from "./crowd.mjs";
import { explicate, native } from "./wasm.mjs";

function here(scenario) {
  let best = 0;
  for (let i = 0; i < 8; i++) {
    const before = process.cpuUsage();
    const hops = explicate.hops(scenario);
    const { user, system } = process.cpuUsage(before);
    best = Math.max(best, (hops * 1e6) / (user + system));
  }
  return best;
}

for (const protocol of PROTOCOLS) {
  test(`speed with ${protocol}`, () => {
    const scenario = crowd(protocol);
    const file = join(mkdtempSync(join(tmpdir(), "playground-")), "speed.toml");
    writeFileSync(file, scenario);
    const natively = Number(native("speed", true, file));
    const browser = here(scenario);
    const share = browser / natively;
    console.log(`${protocol}: ${(browser / 1e6).toFixed(1)} of ${(natively / 1e6).toFixed(1)} million packet-hops a second: ${share.toFixed(2)}`);
    assert.ok(share >= 1 / 3, `${share}`);
  });
}
