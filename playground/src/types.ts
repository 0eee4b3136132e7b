/** Messages between the page and its worker, and what they are made of. */

/** When (s), link, what, value. */
export type Change = [number, string, "rate" | "delay" | "loss" | "buffer" | "feedback", number];

/** One run of several that stand side by side. */
export interface LaneSpec {
  label: string;
  text: string;
  origin: string;
  files: Record<string, string>;
  /** Settings by path of keys, as `--set` takes them. */
  set: [string, string][];
  /** Its XCP router takes feedback that is set by hand. */
  hand: boolean;
  changes: Change[];
}

export interface LinkInfo {
  name: string;
  from: string;
  to: string;
  rate: number;
  delay: number;
  limited: boolean;
  queue: string | null;
  limit: number | null;
  routers: string[];
  air: boolean;
  /** What can change while it runs: rate, delay, loss, buffer. */
  possible: string[];
}

export interface LaneInfo {
  name: string;
  duration: number;
  links: LinkInfo[];
  flows: { name: string; protocol: string; start: number }[];
  warnings: string[];
}

/** What is seen of a lane at an instant. */
export interface LaneFrame {
  /** Four numbers a packet: link, flow, place, acknowledgement. */
  packets: Float32Array;
  /** Five numbers a link: packets and bytes that wait, lost, delivered, bytes sent. */
  links: Float64Array;
  /** Four numbers a sample: time, object, variable, value. */
  samples: Float64Array;
  variables: string[];
}

export interface Tables {
  hash: string;
  flows: string;
  links: string;
  samples: string;
  run: string;
}

export type ToWorker =
  | { type: "load"; id: number; lanes: LaneSpec[]; until: number; link: string; most: number }
  | { type: "frame"; id: number; until: number; most: number }
  | { type: "tables"; id: number; lane: LaneSpec };

export type FromWorker =
  | { type: "ready"; id: number; lanes: LaneInfo[]; link: string }
  | { type: "busy"; id: number; share: number }
  | { type: "frame"; id: number; now: number; done: boolean; lanes: LaneFrame[] }
  | { type: "tables"; id: number; tables: Tables }
  /** `defect`: the simulator itself failed and has to be loaded again. */
  | { type: "error"; id: number; message: string; defect: boolean };
