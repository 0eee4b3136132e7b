/** The dialog with the tables of the whole run. */
import type { Player } from "./player";
import type { LaneSpec, Tables } from "./types";

const NAMES = ["flows", "links", "samples", "run"] as const;

/** Lanes whose tables are still to come. */
let queue: LaneSpec[] = [];
let changed = false;
let player: Player;

function place(id: string): HTMLElement {
  return document.getElementById(id)!;
}

/** Computes the tables of these lanes, one after the other. */
export function openTables(lanes: LaneSpec[], by: Player): void {
  by.play(false);
  queue = [...lanes];
  changed = lanes.some((lane) => lane.changes.length > 0);
  player = by;
  place("tables-list").replaceChildren();
  place("tables-about").textContent = "Computing…";
  (place("tables") as HTMLDialogElement).showModal();
  next();
}

function next(): void {
  if (queue.length > 0) return player.tables(queue[0]);
  place("tables-about").textContent =
    "Computed from the beginning to the end, as the command line does. The hash is of all four tables to the last bit: the same link gives the same hash anywhere." +
    (changed ? " The scenario file is that of the start; your changes stand in it as comments." : "");
}

/** Shows the tables of the first lane in the queue. */
export function showTables(tables: Tables): void {
  const lane = queue.shift();
  if (!lane) return;
  const heading = document.createElement("h3");
  heading.textContent = lane.label;
  const hash = document.createElement("p");
  const code = document.createElement("code");
  code.textContent = tables.hash;
  hash.append("Hash ", code);
  const links = document.createElement("p");
  for (const name of NAMES) {
    links.append(link(`${name}.csv`, `${lane.label}-${name}.csv`, tables[name], "text/csv"), " · ");
  }
  links.append(link("scenario.toml", `${lane.label}.toml`, scenario(lane), "application/toml"));
  place("tables-list").append(heading, hash, links);
  next();
}

function scenario(lane: LaneSpec): string {
  const comments = lane.changes.map(([at, link, what, value]) => `# At ${at} s: ${what} of ${link} becomes ${value}\n`);
  const settings = lane.set.map(([key, value]) => `# Set: ${key} = ${value}\n`);
  return [...settings, ...comments].join("") + lane.text;
}

function link(text: string, name: string, contents: string, type: string): HTMLAnchorElement {
  const anchor = document.createElement("a");
  anchor.textContent = text;
  anchor.download = name.toLowerCase().replaceAll(/[^a-z0-9.]+/g, "-");
  anchor.href = URL.createObjectURL(new Blob([contents], { type }));
  return anchor;
}
