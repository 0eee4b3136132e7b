/** Curves over time: windows, queue, throughput, and feedback where a visitor is the router. */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { LaneFrame, LaneInfo } from "./types";

/** Seconds that are shown. */
export const SPAN = 20;
const DASHES: number[][] = [[], [7, 4], [2, 3], [9, 3, 2, 3]];

interface Line {
  label: string;
  lane: number;
  /** Dash of the lane, or a thin line that is not of the lane's own. */
  dash: number[];
  thin?: boolean;
}

type Column = (number | null)[];

interface Chart {
  title: string;
  unit: string;
  lines: Line[];
  columns: Column[];
  plot: uPlot | null;
  box: HTMLElement;
  dirty: boolean;
}

export function laneColour(lane: number): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--lane-${lane % 4}`).trim();
}

function ink(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** What is known of a lane at an instant of sampling, for the words beside its picture. */
export interface Summary {
  throughput: number;
  queue: number;
  window: number;
  rtt: number;
  fairness: number;
}

export class Curves {
  private times: number[] = [];
  /** Throughput of each flow of each lane, a mean over about a sixtieth of the run, bit/s. */
  private flows: Map<number, number>[] = [];
  private height = 190;
  /** The last samples of throughput of each lane. */
  private recent: number[][] = [];
  /** How many of them a point of the curve is the mean of: 0.2 s, but at least two. */
  private window = 10;
  /** Of a sample in the mean of a flow's throughput. */
  private gain = 0.02;
  private charts: Chart[] = [];
  private next = 0;
  summaries: Summary[] = [];
  /** Capacity of the link over time, Mbit/s: from when on, how much. */
  capacity: [number, number][] = [];

  constructor(private readonly place: HTMLElement) {}

  /** Begins anew for these lanes; `feedback` is the lane whose router is set by hand, or -1. */
  begin(infos: LaneInfo[], labels: string[], feedback: number): void {
    this.charts.forEach((chart) => chart.plot?.destroy());
    this.place.replaceChildren();
    this.charts = [];
    this.times = [];
    this.recent = [];
    const duration = infos[0]?.duration ?? 60;
    const every = Math.min(1, Math.max(0.005, duration / 3000));
    this.window = Math.max(2, Math.round(0.2 / every));
    this.gain = Math.min(0.5, (every * 60) / duration);
    this.flows = infos.map(() => new Map());
    this.height = infos.length > 3 || feedback >= 0 ? 190 : 250;
    this.place.classList.toggle("four", feedback >= 0);
    this.summaries = infos.map(() => ({ throughput: 0, queue: 0, window: 0, rtt: NaN, fairness: NaN }));
    const each = labels.map((label, lane) => ({ label, lane, dash: DASHES[lane % 4] }));
    this.add("Window", "packets a flow", each);
    this.add("Queue", "packets", each);
    this.add("Throughput", "Mbit/s, thin: capacity", [...each, { label: "capacity", lane: -1, dash: [3, 3], thin: true }]);
    if (feedback >= 0) {
      this.add("Feedback", "% a round trip", [
        { label: "you", lane: feedback, dash: [] },
        { label: "what XCP would do", lane: 1, dash: [7, 4] },
      ]);
    }
  }

  private add(title: string, unit: string, lines: Line[]): void {
    const box = document.createElement("div");
    box.className = "curve";
    const heading = document.createElement("h2");
    heading.textContent = `${title} `;
    const small = document.createElement("small");
    small.textContent = unit;
    heading.append(small);
    const canvas = document.createElement("div");
    canvas.setAttribute("role", "img");
    box.append(heading, canvas);
    this.place.append(box);
    this.charts.push({ title, unit, lines, columns: lines.map(() => []), plot: null, box: canvas, dirty: true });
  }

  private capacityAt(time: number): number | null {
    let value: number | null = null;
    for (const [from, rate] of this.capacity) if (from <= time) value = rate;
    return value;
  }

  /** Takes samples of one lane; those of a time come together. */
  take(lane: number, frame: LaneFrame, link: number): void {
    const { samples, variables } = frame;
    const number = (name: string) => variables.indexOf(name);
    const [cwnd, queue, rate, rtt] = ["cwnd", "queue_packets", "throughput_bps", "rtt_ms"].map(number);
    const [given, theirs] = ["feedback_given", "feedback_own"].map(number);
    for (let i = 0; i < samples.length; ) {
      const time = samples[i];
      let [windows, flows, delays, delayed] = [0, 0, 0, 0];
      const row: (number | null)[] = [null, null, null, null, null];
      for (; i < samples.length && samples[i] === time; i += 4) {
        const [object, variable, value] = [samples[i + 1], samples[i + 2], samples[i + 3]];
        if (object < 0) {
          if (variable === cwnd) {
            windows += value;
            flows++;
          } else if (variable === rate) {
            const mean = this.flows[lane].get(object) ?? value;
            this.flows[lane].set(object, mean + (value - mean) * this.gain);
          } else if (variable === rtt) {
            delays += value;
            delayed++;
          }
        } else if (object === link) {
          if (variable === queue) row[1] = value;
          else if (variable === rate) row[2] = this.smooth(lane, value / 1e6);
          else if (variable === given) row[3] = value * 100;
          else if (variable === theirs) row[4] = value * 100;
        }
      }
      row[0] = flows > 0 ? windows / flows : null;
      this.put(lane, time, row);
      const summary = this.summaries[lane];
      summary.window = row[0] ?? 0;
      summary.queue = row[1] ?? 0;
      if (delayed > 0) summary.rtt = delays / delayed;
      summary.throughput = row[2] ?? summary.throughput;
      let [sum, squares] = [0, 0];
      for (const value of this.flows[lane].values()) {
        sum += value;
        squares += value * value;
      }
      summary.fairness = squares > 0 ? (sum * sum) / (this.flows[lane].size * squares) : NaN;
    }
  }

  /** A mean over the last samples: one of them alone holds few packets. */
  private smooth(lane: number, value: number): number {
    const last = (this.recent[lane] ??= []);
    last.push(value);
    if (last.length > this.window) last.shift();
    return last.reduce((a, b) => a + b, 0) / last.length;
  }

  private put(lane: number, time: number, row: (number | null)[]): void {
    let index = this.times.length - 1;
    while (index >= 0 && this.times[index] > time + 1e-9) index--;
    if (index < 0 || this.times[index] < time - 1e-9) {
      index++;
      this.times.splice(index, 0, time);
      this.charts.forEach((chart) => chart.columns.forEach((column) => column.splice(index, 0, null)));
      this.charts[2].columns.at(-1)![index] = this.capacityAt(time);
    }
    for (let chart = 0; chart < 3; chart++) {
      this.charts[chart].columns[lane][index] = row[chart];
      this.charts[chart].dirty = true;
    }
    const feedback = this.charts[3];
    if (feedback && feedback.lines[0].lane === lane) {
      feedback.columns[0][index] = row[3];
      feedback.columns[1][index] = row[4];
      feedback.dirty = true;
    }
  }

  /** Draws one chart, the next in turn; all of them if `all`. */
  draw(now: number, all: boolean): void {
    for (let n = 0; n < this.charts.length; n++) {
      const chart = this.charts[this.next % this.charts.length]; // another scene may have fewer
      this.next = (this.next + 1) % this.charts.length;
      if (chart.dirty || all) {
        this.drawChart(chart, now);
        if (!all) return;
      }
    }
  }

  private drawChart(chart: Chart, now: number): void {
    chart.dirty = false;
    const width = chart.box.clientWidth;
    if (width === 0) return;
    const from = Math.max(0, now - SPAN);
    let first = this.times.findIndex((time) => time >= from);
    if (first < 0) first = 0;
    const data = [this.times.slice(first), ...chart.columns.map((column) => column.slice(first))] as uPlot.AlignedData;
    chart.plot ??= this.make(chart, width);
    if (chart.plot.width !== width) chart.plot.setSize({ width, height: this.height });
    chart.plot.batch(() => {
      chart.plot!.setData(data, false);
      chart.plot!.setScale("x", { min: from, max: Math.max(from + SPAN / 4, now, 1) });
    });
  }

  /** Puts the present values into words, for those who cannot see the curves. */
  describe(): void {
    for (const chart of this.charts) {
      const values = chart.lines.map((line, i) => {
        const last = chart.columns[i].at(-1);
        return `${line.label} ${last === null || last === undefined ? "none" : last.toFixed(1)}`;
      });
      chart.box.setAttribute("aria-label", `${chart.title}, ${chart.unit}: ${values.join(", ")}`);
    }
  }

  private make(chart: Chart, width: number): uPlot {
    const axis: uPlot.Axis = {
      stroke: ink("soft"),
      grid: { stroke: ink("line"), width: 0.6 },
      ticks: { stroke: ink("line"), width: 0.6 },
      font: "12px system-ui, sans-serif",
    };
    const feedback = chart.title === "Feedback";
    const options: uPlot.Options = {
      width,
      height: this.height,
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: false },
        y: {
          // Feedback far beyond what can be set is of the first packets, and would hide the rest.
          range: (_plot, low, high) =>
            feedback ? [Math.max(-60, Math.min(low ?? 0, -10)), Math.min(60, Math.max(high ?? 0, 10))] : [0, Math.max((high ?? 0) * 1.08, 1)],
        },
      },
      axes: [{ ...axis, size: 28, values: (_plot, ticks) => ticks.map((tick) => `${tick} s`) }, { ...axis, size: 52 }],
      series: [
        {},
        ...chart.lines.map((line) => ({
          label: line.label,
          stroke: line.lane < 0 ? ink("soft") : laneColour(line.lane),
          dash: line.dash,
          width: line.thin ? 1 : 1.8,
          points: { show: false },
        })),
      ],
    };
    return new uPlot(options, [[0]] as unknown as uPlot.AlignedData, chart.box);
  }

  /** Colours or sizes have changed. */
  renew(now: number): void {
    for (const chart of this.charts) {
      chart.plot?.destroy();
      chart.plot = null;
    }
    this.draw(now, true);
  }
}

/** The line that stands for a lane, for its heading. */
export function sampleLine(lane: number): string {
  const dash = DASHES[lane % 4].join(" ");
  return `<svg width="30" height="10" aria-hidden="true"><line x1="1" y1="5" x2="29" y2="5" stroke="var(--lane-${lane % 4})" stroke-width="3" stroke-dasharray="${dash}"/></svg>`;
}
