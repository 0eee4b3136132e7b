/** Tables are equal to native ones to the last bit, for every scenario and template of the repository. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { PROTOCOLS, crowd } from "./crowd.mjs";
import { ROOT, explicate, native, text } from "./wasm.mjs";

const FOLDERS = ["scenarios", "crates/explicate-scenario/templates"];
// Short enough for all of them: the first seconds hold starts, losses, timeouts and full queues.
const SHORT = { duration: "6s", warmup: "1s", runs: "1" };
const LINK = "r1->r2";
const CHANGES = [
  [1, LINK, "rate", 5e6],
  [2, LINK, "loss", 0.01],
  [3, LINK, "delay", 0.12],
  [4, LINK, "buffer", 20000],
  [5, LINK, "rate", 50e6],
];

function cases() {
  const beside = (folder) => readdirSync(join(ROOT, folder)).filter((f) => f.endsWith(".trace")).map((f) => `${folder}/${f}`);
  const all = FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((file) => file.endsWith(".toml"))
      .map((file) => ({ name: `${folder}/${file}`, file: `${folder}/${file}`, beside: beside(folder), set: SHORT })),
  );
  const changed = ["xcp", "vcp", "cubic", "bbr"].map((protocol) => ({
    name: `changes, ${protocol}`,
    file: "scenarios/long-fat-pipe.toml",
    beside: [],
    set: { ...SHORT, "flows.pipe.protocol": protocol },
    changes: CHANGES,
  }));
  const hand = {
    name: "feedback by hand",
    file: "scenarios/long-fat-pipe.toml",
    beside: [],
    set: SHORT,
    changes: [[0, LINK, "feedback", -2], [2, LINK, "feedback", 0.1], [4, LINK, "feedback", -0.3]],
  };
  return [...all, ...changed, hand];
}

function inBrowser({ file, beside, set, changes }) {
  const files = Object.fromEntries(beside.map((name) => [name.split("/").at(-1), text(name)]));
  const made = changes ? JSON.stringify(changes) : "";
  return explicate.hash(text(file), file, JSON.stringify(files), JSON.stringify(Object.entries(set)), made);
}

test("tables are equal to native ones to the last bit", () => {
  const list = cases();
  assert.ok(list.length >= 25, `${list.length} scenarios`);
  const file = join(mkdtempSync(join(tmpdir(), "playground-")), "list.json");
  writeFileSync(file, JSON.stringify(list));
  const natively = JSON.parse(native("hashes", false, file, ROOT));
  const here = Object.fromEntries(list.map((c) => [c.name, inBrowser(c)]));
  assert.deepEqual(here, natively);
  // A hash that does not depend on the tables would pass the line above.
  assert.equal(new Set(Object.values(here)).size, list.length);
  console.log(`${list.length} scenarios have equal hashes`);
});

// How fast they are is measured by speed.test.mjs.
test("fifty flows run to their end, the same every time", () => {
  for (const protocol of PROTOCOLS) {
    const hops = explicate.hops(crowd(protocol));
    assert.ok(hops > 1e5, `${protocol}: ${hops} packet-hops`);
    assert.equal(explicate.hops(crowd(protocol)), hops);
  }
});

test("a scenario with a mistake says where", () => {
  const wrong = () => explicate.hash('duration = "5 apples"', "mine.toml", "", "", "");
  assert.throws(wrong, (message) => String(message).includes("mine.toml:1"));
});

test("a trace that is missing is asked for by name", () => {
  const wrong = () => explicate.hash(text("scenarios/traces.toml"), "traces.toml", "", "", "");
  assert.throws(wrong, (message) => String(message).includes("steps.trace"));
});
