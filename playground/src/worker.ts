/** Runs the simulator, so that the page stays free to draw. */
import init, { Lane, tables } from "../pkg/explicate.js";
import type { FromWorker, LaneFrame, LaneInfo, LaneSpec, ToWorker } from "./types";

/** A frame may take so long, ms; slower networks then run slower than asked for. */
const BUDGET = 40;
/** Lanes are kept within this many simulated seconds of each other. */
const STRIDE = 0.05;

const started = init();
let lanes: Lane[] = [];
let infos: LaneInfo[] = [];
let watched: Uint32Array[] = [];
let now = 0;

function post(message: FromWorker, transfer: Transferable[] = []): void {
  postMessage(message, { transfer });
}

/** A lane as the simulator takes it: the scenario, its name, and files, settings and changes as JSON. */
function recipe({ text, origin, files, set, changes }: LaneSpec): [string, string, string, string, string] {
  return [text, origin, JSON.stringify(files), JSON.stringify(set), JSON.stringify(changes)];
}

/** What is sampled for the curves, whatever the scenario samples. */
function sampling(duration: number): [string, string][] {
  const every = Math.max(5, Math.ceil(duration / 3));
  return [
    ["sampling.every", `${Math.min(every, 1000)}ms`],
    ["sampling.of", '["queue", "throughput", "cwnd", "rtt", "router"]'],
  ];
}

/** The narrowest link with a queue, if no link is asked for. */
function choose(info: LaneInfo, wanted: string): string {
  if (info.links.some((link) => link.name === wanted)) return wanted;
  const limited = info.links.filter((link) => link.limited || link.air);
  const all = limited.length > 0 ? limited : info.links;
  return all.reduce((best, link) => (link.rate < best.rate ? link : best)).name;
}

function watch(link: string): void {
  watched = infos.map((info) => {
    const there = info.links.findIndex((l) => l.name === link);
    const { from, to } = info.links[Math.max(there, 0)];
    const back = info.links.findIndex((l) => l.from === to && l.to === from);
    return new Uint32Array([Math.max(there, 0), ...(back >= 0 ? [back] : [])]);
  });
}

function load(message: Extract<ToWorker, { type: "load" }>): void {
  lanes.forEach((lane) => lane.free());
  lanes = [];
  infos = [];
  for (const spec of message.lanes) {
    const plain = new Lane(...recipe(spec));
    const info = JSON.parse(plain.describe()) as LaneInfo;
    plain.free();
    lanes.push(new Lane(...recipe({ ...spec, set: [...spec.set, ...sampling(info.duration)] })));
    infos.push(info);
  }
  const link = choose(infos[0], message.link);
  watch(link);
  now = 0;
  const until = Math.min(message.until, duration());
  while (now < until) {
    now = Math.min(until, now + 1);
    lanes.forEach((lane) => lane.advance(now, now >= until));
    if (until > 5) post({ type: "busy", id: message.id, share: now / until });
  }
  post({ type: "ready", id: message.id, lanes: infos, link });
  frame(message.id, message.most);
}

function duration(): number {
  return Math.max(...infos.map((info) => info.duration));
}

function advance(until: number): void {
  const end = Math.min(until, duration());
  const began = performance.now();
  while (now < end && performance.now() - began < BUDGET) {
    now = Math.min(end, now + STRIDE);
    lanes.forEach((lane) => lane.advance(now, true));
  }
}

function frame(id: number, most: number): void {
  const seen: LaneFrame[] = lanes.map((lane, i) => ({
    packets: lane.packets(watched[i], most),
    links: lane.links(watched[i]),
    samples: lane.samples(),
    variables: JSON.parse(lane.variables()) as string[],
  }));
  const transfer = seen.flatMap((lane) => [lane.packets.buffer, lane.links.buffer, lane.samples.buffer]);
  post({ type: "frame", id, now, done: now >= duration(), lanes: seen }, transfer as ArrayBuffer[]);
}

addEventListener("message", async (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  try {
    await started;
    if (message.type === "load") {
      load(message);
    } else if (message.type === "frame") {
      advance(message.until);
      frame(message.id, message.most);
    } else {
      post({ type: "tables", id: message.id, tables: JSON.parse(tables(...recipe(message.lane))) });
    }
  } catch (error) {
    const defect = error instanceof WebAssembly.RuntimeError;
    const text = defect
      ? "The simulator failed: this is a defect. Please report it with the address that Copy link gives. Another scene starts the simulator again."
      : String(error);
    post({ type: "error", id: message.id, message: text, defect });
  }
});
