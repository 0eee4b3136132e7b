/** The page: the state that the visitor chose, the runs made from it, and the events that change it. */
import "./style.css";
import { type State, encode, read } from "./address";
import { Controls } from "./controls";
import { Curves } from "./curves";
import { Lanes } from "./lanes";
import { Player } from "./player";
import { BOTTLENECK, COMPARE, type Dumbbell, PACKET, type Scene, dumbbell, lanesOf, roundTrip } from "./scenes";
import { showModes, showStory } from "./story";
import { openTables, showTables } from "./tables";
import type { Change, LaneFrame, LaneInfo, LaneSpec, LinkInfo } from "./types";

function element<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

const SPEEDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50];
/** A step, s: one sample of the playground's network. */
const STEP = 0.02;
/** Time between two pictures with reduced motion, ms. */
const CALM = 500;
/** Time between two updates of the curves' descriptions, ms. */
const DESCRIBING = 2000;

const reduced = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");

let state: State = { scene: dumbbell(COMPARE), changes: [], speed: 0.5, link: "" };
/** The runs of the scene, and what the simulator says of them. */
let specs: LaneSpec[] = [];
let infos: LaneInfo[] = [];
/** The last frame of each run, and when it was drawn. */
let frames: LaneFrame[] = [];
let drawn = 0;
/** Counts scenes; and the scene and link that the controls show. */
let scenes = 0;
let controlled = "";

const curves = new Curves(element("curves"));
const lanes = new Lanes(element("lanes"));
const player = new Player({ ready, frame, busy, changed, failed, tables: showTables });
const controls = new Controls(element<HTMLFormElement>("controls"), { restart, change });

// ------------------------------------------------------------------------------------------------ scenes and runs

/** Shows a scene; with `until`, up to there at once. */
function begin(next: State, until = beginning()): void {
  state = next;
  scenes++;
  frames = [];
  specs = lanesOf(state.scene, state.changes);
  element<HTMLSelectElement>("speed").value = String(state.speed);
  player.speed = state.speed;
  message("");
  showModes(element("modes"), state.scene, open);
  showStory(element("story"), state.scene, open);
  controls.show(state.scene, state.changes);
  player.load(specs, until, state.link);
}

/** Where a scene begins, s: without motion there is something to see at once. */
function beginning(): number {
  return reduced.matches ? 2 : 0;
}

function open(scene: Scene, speed: number, link = ""): void {
  begin({ scene, changes: [], speed, link });
  player.play(!reduced.matches);
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
  begin({ ...state, scene: now, changes: [] });
}

/** The network changes now: the run is computed again with the changes and goes on. */
function change(changes: Change[]): void {
  const at = Math.round(player.now * 1e4) / 1e4;
  const replaced = (old: Change) => old[0] >= at && changes.some((c) => c[1] === old[1] && c[2] === old[2]);
  const kept = state.changes.filter((old) => old[0] <= at && !replaced(old));
  state = { ...state, changes: [...kept, ...changes.map(([, ...rest]): Change => [at, ...rest])] };
  specs = lanesOf(state.scene, state.changes);
  controls.note(state.changes.length);
  player.load(specs, player.now, state.link);
}

// ------------------------------------------------------------------------------------------------ what is shown

function ready(made: LaneInfo[], name: string): void {
  infos = made;
  state.link = name;
  const labels = specs.map((spec) => spec.label);
  const info = infos[0].links.find((link) => link.name === name);
  curves.begin(infos, labels, specs.findIndex((spec) => spec.hand));
  curves.describe();
  curves.capacity = info && !info.air ? capacity(info) : [];
  lanes.show(infos, labels, name);
  // Sliders that are in use stay as they are.
  if (state.scene.kind !== "dumbbell" && info && controlled !== `${scenes} ${name}`) {
    controlled = `${scenes} ${name}`;
    controls.showLink(info, state.changes);
  }
  offerLinks(name);
  element("busy").hidden = true;
  element("note").textContent = [...new Set(infos.flatMap((lane) => lane.warnings))].join(" ");
}

/** A link's rate over time, Mbit/s: from when on, how much. */
function capacity(link: LinkInfo): [number, number][] {
  const changes = state.changes.filter(([, name, what]) => what === "rate" && name === link.name);
  return [[0, link.rate / 1e6], ...changes.map(([t, , , rate]): [number, number] => [t, rate / 1e6])];
}

function offerLinks(shown: string): void {
  const limited = infos[0].links.filter((link) => link.limited || link.air);
  const options = limited.map(({ name }) => new Option(name, name, false, name === shown));
  element<HTMLSelectElement>("link").replaceChildren(...options);
  element("linklabel").hidden = state.scene.kind === "dumbbell" || limited.length < 2;
}

function frame(seen: LaneFrame[]): void {
  seen.forEach((lane, i) => curves.take(i, lane, infos[i].links.findIndex((link) => link.name === state.link)));
  frames = seen;
  const calm = reduced.matches && player.playing;
  if (!calm || performance.now() - drawn > CALM) draw();
  document.body.dataset.ready = "true";
}

function draw(all = !player.playing): void {
  drawn = performance.now();
  lanes.draw(frames, state.link, room, reduced.matches);
  curves.draw(player.now, all || reduced.matches);
  lanes.write(curves.summaries, frames, all);
  element("clock").textContent = `${player.now.toFixed(2)} s`;
  element("play").toggleAttribute("disabled", player.ended);
}

/** Room of a link's queue, packets. */
function room(link: LinkInfo): number {
  const ofLink = ([t, name, what]: Change) => t <= player.now && what === "buffer" && name === link.name;
  const changes = link.queue === "droptail" ? state.changes.filter(ofLink) : [];
  const limit = changes.at(-1)?.[3] ?? link.limit;
  return limit ? limit / PACKET : 100;
}

function busy(share: number): void {
  const bar = element<HTMLProgressElement>("busy");
  bar.hidden = false;
  bar.value = share;
}

function changed(): void {
  element("play").textContent = player.playing ? "Pause" : "Play";
  element("step").toggleAttribute("disabled", player.ended);
}

function failed(text: string): void {
  message(text);
  element("busy").hidden = true;
  if (player.loaded) return;
  frames = [];
  lanes.show([], [], "");
  curves.begin([], [], -1);
  element("curves").replaceChildren();
}

function message(text: string): void {
  const place = element("message");
  place.textContent = text;
  place.hidden = text === "";
}

// ------------------------------------------------------------------------------------------------ events

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
  const copied = await navigator.clipboard.writeText(address.href).then(() => true, () => false);
  element("status").textContent = `The link is in the ${copied ? "clipboard" : "address bar"}.`;
  element("share").textContent = copied ? "Copied" : "In address bar";
  setTimeout(() => (element("share").textContent = "Copy link"), 1500);
}

function connectPlayback(): void {
  const speed = element<HTMLSelectElement>("speed");
  speed.replaceChildren(...SPEEDS.map((s) => new Option(`${s}×`, String(s))));
  speed.addEventListener("change", () => (player.speed = state.speed = Number(speed.value)));
  element("play").addEventListener("click", () => player.play(!player.playing));
  element("step").addEventListener("click", () => player.step(STEP));
  element("restart").addEventListener("click", () => {
    begin(state, 0);
    player.play(!reduced.matches);
  });
  const link = element<HTMLSelectElement>("link");
  link.addEventListener("change", () => {
    state.link = link.value;
    player.load(specs, player.now, state.link);
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
}

function connectFiles(): void {
  element("share").addEventListener("click", () => void share());
  element("download").addEventListener("click", () => openTables(specs, player));
  const file = element<HTMLInputElement>("file");
  element("open").addEventListener("click", () => file.click());
  file.addEventListener("change", () => void openFiles([...(file.files ?? [])]));
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
}

/** Draws anew when colours or sizes change. */
function connectDisplay(): void {
  const renew = (): void => {
    lanes.renew();
    curves.renew(player.now);
    if (frames.length > 0) draw(true);
  };
  dark.addEventListener("change", renew);
  new ResizeObserver(renew).observe(element("stage"));
  setInterval(() => curves.describe(), DESCRIBING);
}

async function start(): Promise<void> {
  connectPlayback();
  connectFiles();
  connectDisplay();
  const [found, wrong] = await read(new URL(location.href));
  begin(found ?? state);
  if (wrong) message(wrong);
  player.play(!reduced.matches);
}

void start();
