/** The simulator's WebAssembly in Node, and what the same code computes natively. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as explicate from "../pkg/explicate.js";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

explicate.initSync({ module: readFileSync(join(ROOT, "playground", "pkg", "explicate_bg.wasm")) });
export { explicate };

export function text(file) {
  return readFileSync(join(ROOT, file), "utf8");
}

/** Runs an example of the crate natively; returns what it prints. */
export function native(example, release, ...args) {
  // Without `-p`: a debug build has the features, and so the libraries, that `cargo test` has built.
  const choice = release ? ["--release", "-p", "explicate-wasm"] : [];
  const cargo = ["run", "--quiet", ...choice, "--example", example, "--"];
  return execFileSync("cargo", [...cargo, ...args], { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 26 });
}
