/** The state of the page in its address: what was chosen, and every change with its simulated time. */
import type { Change } from "./types";
import { STACKS, type Scene, TOUR, dumbbell, router } from "./scenes";

export interface State {
  scene: Scene;
  changes: Change[];
  speed: number;
  link: string;
}

async function through(bytes: BlobPart, stream: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  const piped = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

/** The part of an address after `#`. */
export async function encode(state: State): Promise<string> {
  const packed = await through(JSON.stringify(state), new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of packed) text += String.fromCharCode(byte);
  return "s=" + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function decode(part: string): Promise<State> {
  const text = atob(part.slice(2).replaceAll("-", "+").replaceAll("_", "/"));
  const packed = Uint8Array.from(text, (c) => c.charCodeAt(0));
  const state = JSON.parse(new TextDecoder().decode(await through(packed, new DecompressionStream("deflate-raw"))));
  // Addresses of earlier versions name no stack.
  if (state?.scene?.kind === "dumbbell") state.scene.stack ??= STACKS[0][0];
  if (!isScene(state?.scene) || !Array.isArray(state.changes)) throw new Error("unknown scene");
  const speed = isBetween(state.speed, 0.01, 100) ? state.speed : 0.5;
  return { scene: state.scene, changes: state.changes, speed, link: String(state.link ?? "") };
}

/** Whether an address from anywhere holds a scene: the simulator checks the scenario and the changes in it. */
function isScene(scene: any): scene is Scene {
  switch (scene?.kind) {
    case "dumbbell":
      return (
        [scene.rate, scene.rtt, scene.loss, scene.buffer, scene.seed, scene.duration].every(Number.isFinite) &&
        isBetween(scene.flows, 1, 1000) &&
        isStack(scene.stack) &&
        Array.isArray(scene.lanes) &&
        isBetween(scene.lanes.length, 1, 4) &&
        scene.lanes.every((lane: any) => typeof lane?.protocol === "string")
      );
    case "paper":
      return TOUR[scene.stop] !== undefined;
    case "file":
      return [scene.name, scene.text].every((text) => typeof text === "string") && typeof scene.files === "object";
    default:
      return false;
  }
}

function isStack(name: unknown): boolean {
  return STACKS.some(([known]) => known === name);
}

function isBetween(value: unknown, least: number, most: number): value is number {
  return typeof value === "number" && value >= least && value <= most;
}

/** Reads an address. The second part says what was wrong with it; then there is no state. */
export async function read(address: URL): Promise<[State | null, string]> {
  if (address.hash.startsWith("#s=")) {
    try {
      return [await decode(address.hash.slice(1)), ""];
    } catch {
      return [null, "The address is damaged: it was probably cut off. Ask for the whole link."];
    }
  }
  const of = (scene: Scene, speed = 0.5, link = ""): State => ({ scene, changes: [], speed, link });
  const run = address.searchParams.get("run");
  if (run) {
    const stack = address.searchParams.get("stack") ?? STACKS[0][0];
    if (!isStack(stack)) return [null, `No stack is called ${stack}; there are ${STACKS.map(([name]) => name).join(", ")}.`];
    return [of(dumbbell(run.split(",").slice(0, 4), stack)), ""];
  }
  const paper = address.searchParams.get("paper");
  if (paper) {
    const stop = TOUR.findIndex((t) => t.paper.toLowerCase() === paper.toLowerCase());
    if (stop < 0) return [null, `No paper is called ${paper}; there are ${TOUR.map((t) => t.paper).join(", ")}.`];
    return [of({ kind: "paper", stop }, TOUR[stop].speed, TOUR[stop].link), ""];
  }
  if (address.searchParams.has("router")) return [of(router(undefined)), ""];
  return [null, ""];
}
