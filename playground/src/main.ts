/** The page: what the visitor chooses, and how it comes to be a run. */
import "./style.css";
import { type State, encode, read } from "./address";
import { Controls } from "./controls";
import { Curves, laneColour, sampleLine } from "./curves";
import { type Colours, Picture } from "./picture";
import { Player } from "./player";
import { BOTTLENECK, COMPARE, type Dumbbell, PACKET, type Scene, TOUR, XCP_LAW, dumbbell, lanesOf, roundTrip, router } from "./scenes";
import { openTables, showTables } from "./tables";
import type { Change, LaneFrame, LaneInfo, LaneSpec } from "./types";

function element<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

const SPEEDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50];
/** A step, s: one sample of the playground's network. */
const STEP = 0.02;

const reduced = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");

let state: State = { scene: dumbbell(COMPARE), changes: [], speed: 0.5, link: "" };
let lanes: LaneSpec[] = [];
let infos: LaneInfo[] = [];
let frames: LaneFrame[] = [];
let pictures: Picture[] = [];
let outputs: Record<string, HTMLElement>[] = [];
let shown = { link: "", at: 0, words: 0, controls: "" };
/** Number of the scene. */
let serial = 0;
let palette: Colours[] = [];

const curves = new Curves(element("curves"));
const player = new Player({ ready, frame, busy, changed, failed, tables: showTables });
const controls = new Controls(element<HTMLFormElement>("controls"), {
  restart: (scene) => restart(scene),
  change: (changes) => change(changes),
});

// ------------------------------------------------------------------------------------------------ scenes and runs

/** Shows a scene; with `until`, up to there at once. */
function begin(next: State, until: number): void {
  state = next;
  serial++;
  frames = [];
  lanes = lanesOf(state.scene);
  element<HTMLSelectElement>("speed").value = String(state.speed);
  player.speed = state.speed;
  message("");
  modes();
  story();
  controls.show(state.scene, state.changes);
  player.load(lanes, allChanges(), until, state.link);
}

/** The same network as it has become, with other flows. */
function restart(scene: Dumbbell): void {
  const last = (what: Change[2]) => state.changes.filter((c) => c[2] === what && c[1] === BOTTLENECK).at(-1)?.[3];
  const [rate, delay, loss, buffer] = [last("rate"), last("delay"), last("loss"), last("buffer")];
  const now: Dumbbell = {
    ...scene,
    rate: rate === undefined ? scene.rate : rate / 1e6,
    rtt: delay === undefined ? scene.rtt : roundTrip(delay),
    loss: loss === undefined ? scene.loss : loss * 100,
    buffer: buffer === undefined ? scene.buffer : buffer / PACKET,
  };
  begin({ ...state, scene: now, changes: [] }, reduced.matches ? 2 : 0);
}

/** Those of the visitor, and losses that the network has from the start. */
function allChanges(): Change[] {
  const { scene, changes } = state;
  const first: Change[] = [];
  if (scene.kind === "dumbbell" && scene.loss > 0) first.push([0, BOTTLENECK, "loss", scene.loss / 100]);
  // The router reports from the start what XCP does.
  if (lanes.some((lane) => lane.hand)) first.push([0, BOTTLENECK, "feedback", -2]);
  return [...first, ...changes];
}

/** The network changes now: the run is computed again with the changes and goes on. */
function change(changes: Change[]): void {
  const at = Math.round(player.now * 1e4) / 1e4;
  const kept = state.changes.filter(([t, link, what]) => t < at || !changes.some((c) => c[1] === link && c[2] === what));
  state = { ...state, changes: [...kept.filter(([t]) => t <= at), ...changes.map(([, ...rest]) => [at, ...rest] as Change)] };
  controls.note(state.changes.length);
  player.load(lanes, allChanges(), player.now, state.link);
}

function ready(made: LaneInfo[], link: string): void {
  infos = made;
  state.link = link;
  shown.link = link;
  const hand = lanes.findIndex((lane) => lane.hand);
  curves.begin(infos, lanes.map((lane) => lane.label), hand);
  curves.describe();
  const info = infos[0].links.find((l) => l.name === link);
  const rates = state.changes.filter(([, name, what]) => what === "rate" && name === link);
  curves.capacity = info?.air ? [] : [[0, (info?.rate ?? 0) / 1e6], ...rates.map(([t, , , rate]): [number, number] => [t, rate / 1e6])];
  build();
  // Sliders that are in use stay as they are.
  if (state.scene.kind !== "dumbbell" && info && shown.controls !== `${serial} ${link}`) {
    shown.controls = `${serial} ${link}`;
    controls.showLink(info, state.changes);
  }
  const select = element<HTMLSelectElement>("link");
  const limited = infos[0].links.filter((l) => l.limited || l.air);
  select.replaceChildren(...limited.map((l) => new Option(l.name, l.name, false, l.name === link)));
  element("linklabel").hidden = state.scene.kind === "dumbbell" || limited.length < 2;
  element("busy").hidden = true;
  element("note").textContent = infos.flatMap((i) => i.warnings).filter((w, i, all) => all.indexOf(w) === i).join(" ");
}

function frame(seen: LaneFrame[]): void {
  seen.forEach((lane, i) => curves.take(i, lane, infos[i].links.findIndex((l) => l.name === shown.link)));
  frames = seen;
  const slow = reduced.matches && player.playing;
  if (!slow || performance.now() - shown.at > 500) {
    shown.at = performance.now();
    draw();
  }
  document.body.dataset.ready = "true";
}

function draw(all = !player.playing): void {
  frames.forEach((seen, i) => {
    const link = infos[i].links.find((l) => l.name === shown.link) ?? infos[i].links[0];
    pictures[i]?.draw(seen, link, room(i), palette[i], reduced.matches);
  });
  curves.draw(player.now, all || reduced.matches);
  element("clock").textContent = `${player.now.toFixed(2)} s`;
  if (all || performance.now() - shown.words > 200) words();
  element("play").toggleAttribute("disabled", player.ended);
}

/** Room of the queue, packets. */
function room(lane: number): number {
  const changed = state.changes.filter(([t, link, what]) => t <= player.now && what === "buffer" && link === shown.link).at(-1);
  const limit = changed?.[3] ?? infos[lane].links.find((l) => l.name === shown.link)?.limit;
  return limit ? limit / PACKET : 100;
}

// ------------------------------------------------------------------------------------------------ what is seen

function build(): void {
  const place = element("lanes");
  outputs = [];
  pictures = [];
  const parts = lanes.map((lane, i) => {
    const box = document.createElement("article");
    box.className = "lane";
    const head = document.createElement("header");
    const title = document.createElement("h2");
    title.innerHTML = sampleLine(i);
    title.append(lane.label);
    const list = document.createElement("dl");
    const own: Record<string, HTMLElement> = {};
    for (const name of ["Throughput", "Queue", "Round trip", "Fairness", "Lost"]) {
      const pair = document.createElement("div");
      const [term, value] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = name;
      value.textContent = "–";
      pair.append(term, value);
      list.append(pair);
      own[name] = value;
    }
    head.append(title, list);
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${lane.label}: queue and packets on ${shown.link}`);
    box.append(head, canvas);
    pictures.push(new Picture(canvas));
    outputs.push(own);
    return box;
  });
  place.replaceChildren(...parts);
  paint();
  pictures.forEach((picture) => picture.resize());
}

function words(): void {
  shown.words = performance.now();
  curves.summaries.forEach((summary, i) => {
    const own = outputs[i];
    if (!own) return;
    own["Throughput"].textContent = `${summary.throughput.toFixed(1)} Mbit/s`;
    own["Queue"].textContent = `${summary.queue.toFixed(0)} pkt`;
    own["Round trip"].textContent = Number.isNaN(summary.rtt) ? "–" : `${summary.rtt.toFixed(0)} ms`;
    own["Fairness"].textContent = Number.isNaN(summary.fairness) ? "–" : summary.fairness.toFixed(2);
    own["Lost"].textContent = `${frames[i]?.links[2] ?? 0}`;
  });
}

function paint(): void {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  palette = infos.map((_, i) => ({
    lane: laneColour(i),
    ink: of("ink"),
    soft: of("soft"),
    line: of("line"),
    wire: of("wire"),
    full: of("full"),
  }));
}

function modes(): void {
  const { scene } = state;
  const you = scene.kind === "dumbbell" && scene.lanes.some((lane) => lane.hand || lane.law);
  const buttons: [string, boolean, () => void][] = [
    ["Compare", scene.kind === "dumbbell" && !you, () => open(dumbbell(COMPARE), 0.5)],
    ["Be the router", you, () => open(router(undefined), 0.25)],
    ["Five papers", scene.kind === "paper", () => tour(0)],
    ...(scene.kind === "file" ? [["Your scenario", true, () => {}] as [string, boolean, () => void]] : []),
  ];
  element("modes").replaceChildren(
    ...buttons.map(([name, current, act]) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.setAttribute("aria-current", String(current));
      button.addEventListener("click", act);
      return button;
    }),
  );
}

function open(scene: Scene, speed: number, link = ""): void {
  begin({ scene, changes: [], speed, link }, reduced.matches ? 2 : 0);
  player.play(!reduced.matches);
}

function tour(stop: number): void {
  open({ kind: "paper", stop }, TOUR[stop].speed, TOUR[stop].link);
}

function story(): void {
  const { scene } = state;
  const place = element("story");
  place.replaceChildren();
  const add = (tag: string, text: string): HTMLElement => {
    const made = document.createElement(tag);
    made.textContent = text;
    place.append(made);
    return made;
  };
  const choices = (entries: [string, boolean, () => void][]): void => {
    const row = add("div", "");
    row.className = "stops";
    for (const [text, disabled, act] of entries) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.disabled = disabled;
      button.addEventListener("click", act);
      row.append(button);
    }
  };
  if (scene.kind === "paper") {
    const stop = TOUR[scene.stop];
    add("h2", `${scene.stop + 1} of ${TOUR.length}: ${stop.title}`);
    stop.sentences.forEach((sentence) => add("p", sentence));
    choices([
      ["Previous", scene.stop === 0, () => tour(scene.stop - 1)],
      ["Next", scene.stop === TOUR.length - 1, () => tour(scene.stop + 1)],
    ]);
  } else if (scene.kind === "dumbbell" && scene.lanes.some((lane) => lane.hand || lane.law)) {
    const byHand = scene.lanes.some((lane) => lane.hand);
    add("h2", "Be the router");
    add(
      "p",
      byHand
        ? "Set the feedback that the router writes into packets: how much the traffic grows or shrinks in a round trip. The dashed curve shows what XCP would do in your place; the second lane is XCP on a network of its own."
        : "Change the constants of XCP's law and compare with those of the paper. Alpha is the share of the spare bandwidth that is handed out in a round trip, beta the share of the standing queue that is drained, gamma the share of the traffic that is shuffled between flows.",
    );
    choices([
      ["Feedback", byHand, () => open(router(undefined), 0.25)],
      ["Law", !byHand, () => open(router(XCP_LAW), 0.25)],
    ]);
  } else if (scene.kind === "file") {
    add("h2", scene.name);
    add("p", "Computed in this browser as it would be by the command line: the tables are equal to the last bit.");
  }
}

// ------------------------------------------------------------------------------------------------ events

function busy(share: number): void {
  const bar = element<HTMLProgressElement>("busy");
  bar.hidden = false;
  bar.value = share;
}

function changed(): void {
  const button = element("play");
  button.textContent = player.playing ? "Pause" : "Play";
  element("step").toggleAttribute("disabled", player.ended);
}

function failed(text: string): void {
  message(text);
  element("busy").hidden = true;
  if (!player.loaded) {
    frames = [];
    pictures = [];
    element("lanes").replaceChildren();
    curves.begin([], [], -1);
    element("curves").replaceChildren();
  }
}

function message(text: string): void {
  const place = element("message");
  place.textContent = text;
  place.hidden = text === "";
}

function status(text: string): void {
  element("status").textContent = text;
}

async function openFiles(files: File[]): Promise<void> {
  const scenario = files.find((file) => file.name.endsWith(".toml"));
  if (!scenario) return message("Drop a scenario, a file whose name ends in .toml, with the files that it names.");
  const beside: Record<string, string> = {};
  for (const file of files) if (file !== scenario) beside[file.name] = await file.text();
  open({ kind: "file", name: scenario.name, text: await scenario.text(), files: beside }, 1);
}

async function share(): Promise<void> {
  const address = new URL(location.href);
  address.search = "";
  address.hash = await encode(state);
  history.replaceState(null, "", address);
  try {
    await navigator.clipboard.writeText(address.href);
    status("The link is in the clipboard.");
    element("share").textContent = "Copied";
  } catch {
    status("The link is in the address bar.");
    element("share").textContent = "In address bar";
  }
  setTimeout(() => (element("share").textContent = "Copy link"), 1500);
}

function wire(): void {
  const speed = element<HTMLSelectElement>("speed");
  speed.replaceChildren(...SPEEDS.map((s) => new Option(`${s}×`, String(s))));
  speed.addEventListener("change", () => (player.speed = state.speed = Number(speed.value)));
  element("play").addEventListener("click", () => player.play(!player.playing));
  element("step").addEventListener("click", () => player.step(STEP));
  element("restart").addEventListener("click", () => {
    begin(state, 0);
    player.play(!reduced.matches);
  });
  element("share").addEventListener("click", () => void share());
  element("download").addEventListener("click", () => openTables(lanes, allChanges(), player));
  const file = element<HTMLInputElement>("file");
  element("open").addEventListener("click", () => file.click());
  file.addEventListener("change", () => void openFiles([...(file.files ?? [])]));
  const link = element<HTMLSelectElement>("link");
  link.addEventListener("change", () => {
    state.link = link.value;
    player.load(lanes, allChanges(), player.now, state.link);
  });
  addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", () => document.body.classList.remove("dropping"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    void openFiles([...(event.dataTransfer?.files ?? [])]);
  });
  addEventListener("keydown", (event) => {
    const inField = event.target instanceof Element && event.target.closest("button, input, select, dialog, a");
    if (event.ctrlKey || event.metaKey || event.altKey || inField) return;
    if (event.key === " ") {
      event.preventDefault();
      player.play(!player.playing);
    } else if (event.key === ".") {
      player.step(STEP);
    }
  });
  const renew = (): void => {
    paint();
    pictures.forEach((picture) => picture.resize());
    curves.renew(player.now);
    if (frames.length > 0) draw(true);
  };
  dark.addEventListener("change", renew);
  new ResizeObserver(renew).observe(element("stage"));
  setInterval(() => curves.describe(), 2000);
}

async function start(): Promise<void> {
  wire();
  const [found, wrong] = await read(new URL(location.href));
  if (found) begin(found, reduced.matches ? 2 : 0);
  else begin(state, reduced.matches ? 2 : 0);
  if (wrong) message(wrong);
  player.play(!reduced.matches);
}

void start();
