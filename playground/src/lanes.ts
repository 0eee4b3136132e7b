/** The lanes: for each run a heading, its present values, and the picture of the link that is shown. */
import { laneColour, sampleLine, type Summary } from "./curves";
import { type Colours, Picture } from "./picture";
import type { LaneFrame, LaneInfo, LinkInfo } from "./types";

const VALUES = ["Throughput", "Queue", "Round trip", "Fairness", "Lost"] as const;
/** Time between two updates of the values, ms: faster ones cannot be read. */
const READING = 200;

interface Lane {
  info: LaneInfo;
  picture: Picture;
  colours: Colours;
  values: Record<(typeof VALUES)[number], HTMLElement>;
}

export class Lanes {
  private lanes: Lane[] = [];
  private written = 0;

  constructor(private readonly place: HTMLElement) {}

  /** Shows these runs in place of those before. `link` is the name of the link that the pictures show. */
  show(infos: LaneInfo[], labels: string[], link: string): void {
    const boxes = infos.map((info, i) => {
      const { box, canvas, values } = laneBox(i, labels[i]);
      canvas.setAttribute("aria-label", `${labels[i]}: queue and packets on ${link}`);
      return { box, lane: { info, picture: new Picture(canvas), colours: colours(i), values } };
    });
    this.lanes = boxes.map(({ lane }) => lane);
    this.place.replaceChildren(...boxes.map(({ box }) => box));
    this.lanes.forEach(({ picture }) => picture.resize());
  }

  /** Draws the pictures. `room` is the limit of a link's queue in packets; with `still`, packets do not move. */
  draw(frames: LaneFrame[], link: string, room: (link: LinkInfo) => number, still: boolean): void {
    frames.forEach((frame, i) => {
      const { info, picture, colours } = this.lanes[i];
      const shown = info.links.find(({ name }) => name === link) ?? info.links[0];
      picture.draw(frame, shown, room(shown), colours, still);
    });
  }

  /** Writes the present values, at most five times a second unless `now`. */
  write(summaries: Summary[], frames: LaneFrame[], now: boolean): void {
    if (!now && performance.now() - this.written < READING) return;
    this.written = performance.now();
    this.lanes.forEach(({ values }, i) => {
      const { throughput, queue, rtt, fairness } = summaries[i];
      values["Throughput"].textContent = `${throughput.toFixed(1)} Mbit/s`;
      values["Queue"].textContent = `${queue.toFixed(0)} pkt`;
      values["Round trip"].textContent = Number.isNaN(rtt) ? "–" : `${rtt.toFixed(0)} ms`;
      values["Fairness"].textContent = Number.isNaN(fairness) ? "–" : fairness.toFixed(2);
      values["Lost"].textContent = `${frames[i]?.links[2] ?? 0}`;
    });
  }

  /** Takes the colours and sizes that the page has now. */
  renew(): void {
    this.lanes.forEach((lane, i) => {
      lane.colours = colours(i);
      lane.picture.resize();
    });
  }
}

function laneBox(lane: number, label: string): { box: HTMLElement; canvas: HTMLCanvasElement; values: Lane["values"] } {
  const title = document.createElement("h2");
  title.innerHTML = sampleLine(lane);
  title.append(label);
  const list = document.createElement("dl");
  const values = {} as Lane["values"];
  for (const name of VALUES) {
    const [pair, term, value] = ["div", "dt", "dd"].map((tag) => document.createElement(tag));
    term.textContent = name;
    value.textContent = "–";
    pair.append(term, value);
    list.append(pair);
    values[name] = value;
  }
  const head = document.createElement("header");
  head.append(title, list);
  const canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  const box = document.createElement("article");
  box.className = "lane";
  box.append(head, canvas);
  return { box, canvas, values };
}

function colours(lane: number): Colours {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    lane: laneColour(lane),
    ink: of("ink"),
    soft: of("soft"),
    line: of("line"),
    wire: of("wire"),
    full: of("full"),
  };
}
