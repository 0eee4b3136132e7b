/** Where something is missing, the build says what, and how to get it. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT } from "./wasm.mjs";

test("without the target and without rustup a sentence says what to do", () => {
  const folder = mkdtempSync(join(tmpdir(), "playground-"));
  const rustc = join(folder, "rustc");
  writeFileSync(rustc, '#!/bin/sh\necho "/nowhere"\n');
  chmodSync(rustc, 0o755);
  const { status, stderr } = spawnSync("bash", [join(ROOT, "playground", "build")], {
    env: { PATH: `${folder}:/usr/bin:/bin` },
    encoding: "utf8",
  });
  assert.equal(status, 1);
  assert.match(stderr, /wasm32-unknown-unknown is not installed.*rustup target add/s);
  assert.equal(stderr.trim().split("\n").length, 1);
});
