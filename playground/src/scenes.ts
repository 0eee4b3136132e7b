/** Scenes: the playground's own network, the papers' networks, and scenarios of the visitor. */
import oneHop from "../../scenarios/paper-000-one-hop.toml?raw";
import fig2a from "../../scenarios/paper-001-fig2-a.toml?raw";
import fig2b from "../../scenarios/paper-001-fig2-b.toml?raw";
import fig2c from "../../scenarios/paper-001-fig2-c.toml?raw";
import satcom from "../../scenarios/paper-002-satcom.toml?raw";
import fig3 from "../../scenarios/paper-003-fig3.toml?raw";
import bise from "../../scenarios/paper-004.toml?raw";
import type { Change, LaneSpec } from "./types";

/** alpha, beta and gamma of XCP's routers. */
export type Law = [number, number, number];
export const XCP_LAW: Law = [0.4, 0.226, 0.1];

/** A sender on the playground's network. */
export interface Contestant {
  protocol: string;
  hand?: boolean;
  law?: Law;
}

export interface Dumbbell {
  kind: "dumbbell";
  lanes: Contestant[];
  /** The stack of all flows, one of STACKS. */
  stack: string;
  /** Mbit/s. */
  rate: number;
  /** Round trip, ms. */
  rtt: number;
  /** Percent. */
  loss: number;
  /** Packets. */
  buffer: number;
  flows: number;
  seed: number;
  /** Seconds. */
  duration: number;
}

export interface PaperScene {
  kind: "paper";
  stop: number;
}

export interface FileScene {
  kind: "file";
  name: string;
  text: string;
  files: Record<string, string>;
}

export type Scene = Dumbbell | PaperScene | FileScene;

/** The bottleneck of the playground's network, there and back. */
export const BOTTLENECK = "r1->r2";
export const RETURN = "r2->r1";
/** Bytes of a packet there. */
export const PACKET = 1000;
/** What its access links take of a round trip, ms. */
const ACCESS_RTT = 4;

/** One-way delay of the bottleneck, s. */
export function bottleneckDelay(rtt: number): number {
  return Math.max(0, (rtt - ACCESS_RTT) / 2) / 1000;
}

/** The round trip of such a delay, ms. */
export function roundTrip(delay: number): number {
  return Math.round(delay * 2000) + ACCESS_RTT;
}

/** What `stack` can be, the default first, and what the menu calls it. */
export const STACKS = [
  ["linux", "TCP as Linux has it"],
  ["rfc", "TCP by the RFCs of today"],
  ["ns2", "TCP as ns-2 has it"],
];

export function dumbbell(protocols: string[], stack = STACKS[0][0]): Dumbbell {
  const lanes = protocols.map((protocol) => ({ protocol }));
  return { kind: "dumbbell", lanes, stack, rate: 20, rtt: 80, loss: 0, buffer: 200, flows: 4, seed: 1, duration: 60 };
}

export const COMPARE = ["xcp", "vcp", "cubic", "bbr"];
/** Protocols whose routers say more and more in a packet: one bit, another one, two, 32. */
export const BITS = ["prague", "abc", "vcp", "xcp"];

/** Visitor and XCP on the same network. */
export function router(law: Law | undefined): Dumbbell {
  const own: Contestant = law ? { protocol: "xcp", law } : { protocol: "xcp", hand: true };
  return { ...dumbbell([]), lanes: [own, { protocol: "xcp" }] };
}

/** Bytes behind which DCTCP's queue marks: C RTT / 7, at least 3 packets (Alizadeh and others, SIGCOMM 2010). */
export function threshold(rate: number, rtt: number): number {
  return PACKET * Math.max(3, Math.round((rate * rtt * 1000) / 8 / PACKET / 7));
}

/** The queues of protocols whose feedback is marks; all others have drop-tail. */
const MARKING = new Map<string, (scene: Dumbbell) => string>([
  ["dctcp", ({ rate, rtt }) => `kind = "step", threshold = "${threshold(rate, rtt)}B"`],
  ["prague", () => 'kind = "dualpi2"'],
]);

function text(scene: Dumbbell, { protocol, law }: Contestant): string {
  const queue = MARKING.get(protocol)?.(scene) ?? 'kind = "droptail"';
  const delay = (bottleneckDelay(scene.rtt) * 1000).toFixed(3);
  const lines = [
    `# ${protocol} in the playground of Explicate`,
    'name = "playground"',
    `stack = "${scene.stack}"`,
    `duration = "${scene.duration}s"`,
    `seed = ${scene.seed}`,
    "",
    "[topology]",
    'kind = "dumbbell"',
    `pairs = ${scene.flows}`,
    'access = { rate = "1Gbit/s", delay = "1ms", queue = "unlimited" }',
    `bottleneck = { rate = "${scene.rate}Mbit/s", delay = "${delay}ms", queue = { ${queue}, limit = "${scene.buffer * PACKET}B" } }`,
    "",
  ];
  if (law) {
    const [alpha, beta, gamma] = law;
    lines.push("[[link]]", `name = "${BOTTLENECK}"`);
    lines.push(`router = { kind = "xcp", alpha = ${alpha}, beta = ${beta}, gamma = ${gamma} }`, "");
  }
  lines.push("[[flows]]", 'name = "flow"', `count = ${scene.flows}`, `protocol = "${protocol}"`);
  lines.push(`packet = "${PACKET}B"`, 'start = { spread = "1s" }', "");
  lines.push("[sampling]", 'every = "20ms"', 'of = ["queue", "throughput", "cwnd", "rtt"]', "");
  return lines.join("\n");
}

export function label({ protocol, hand, law }: Contestant): string {
  if (hand) return "You";
  if (law) return `XCP with α ${law[0]}, β ${law[1]}, γ ${law[2]}`;
  return offered(protocol)?.[1] ?? protocol;
}

/** What the menus offer, and what the network says to its senders; scenario files may name all others. */
const OFFERED: [name: string, label: string, hears: string][] = [
  ["xcp", "XCP", "32 bits: routers write a change of the rate into each packet."],
  ["rcp", "RCP", "32 bits: routers write one rate for all flows into packets."],
  ["vcp", "VCP", "Two bits: low load, high load or overload."],
  ["abc", "ABC", "One bit: each packet says accelerate or brake."],
  ["dctcp", "DCTCP", "One bit: the queue marks what waits behind a threshold, C RTT / 7."],
  ["prague", "TCP Prague", "One bit: DualPI2, the queue of L4S, marks what waits for more than 1 ms."],
  ["cubic", "CUBIC", ""], ["bbr", "BBR", ""], ["bbr3", "BBR v3", ""], ["newreno", "NewReno", ""], ["sack", "SACK", ""],
  ["vegas", "Vegas", ""], ["hybla", "Hybla", ""], ["westwood", "Westwood", ""], ["bic", "BIC", ""], ["fast", "FAST", ""],
  ["hstcp", "HighSpeed TCP", ""],
];

export const PROTOCOLS = OFFERED.map(([name, shown]): [string, string] => [name, shown]);
const offered = (protocol: string) => OFFERED.find(([name]) => name === protocol);

/** What the network says to a lane's senders; nothing where it says nothing but losses and delay. */
export function hears({ protocol }: Contestant): string {
  return offered(protocol)?.[2] ?? "";
}

/** A stop of the tour. */
export interface Stop {
  /** How the project calls the paper. */
  paper: string;
  title: string;
  sentences: [string, string, string];
  link: string;
  speed: number;
  lanes: { label: string; text: string; set: [string, string][] }[];
}

export const TOUR: Stop[] = [
  {
    paper: "N",
    title: "XCP over Wi-Fi",
    sentences: [
      "One hop of 802.11a radios, with one packet in a hundred lost (section V.A of the paper).",
      "XCP is configured with a capacity, and a shared medium carries less than its nominal rate.",
      "Configured with 54 Mbit/s it fills the queue and loses packets; with 24 Mbit/s the queue stays short.",
    ],
    link: "n1->n2",
    speed: 1,
    lanes: [
      { label: "XCP, 54 Mbit/s", text: oneHop, set: [["runs", "1"]] },
      { label: "XCP, 24 Mbit/s", text: oneHop, set: [["runs", "1"], ["medium.air.capacity", "24Mbit/s"]] },
      { label: "TCP SACK", text: oneHop, set: [["runs", "1"], ["flows.bulk.protocol", "sack"]] },
    ],
  },
  {
    paper: "I",
    title: "A router that says nothing",
    sentences: [
      "Three routers in a row, and a narrow link of 30 Mbit/s between links of 80 (figure 2 of the paper).",
      "Where every router speaks XCP, the window is right within a second and the queue stays empty.",
      "Where the router of the narrow link is a plain one, the others promise 80 Mbit/s: its queue overflows, and the flow stops again and again.",
    ],
    link: "r2->r3",
    speed: 0.5,
    lanes: [
      { label: "TCP", text: fig2a, set: [] },
      { label: "XCP", text: fig2b, set: [] },
      { label: "XCP, plain router", text: fig2c, set: [] },
    ],
  },
  {
    paper: "Y",
    title: "Two satellite hops",
    sentences: [
      "Ten flows over two satellite links of 2 Mbit/s, half a second each (figure 7 of the paper).",
      "An answer takes two seconds, so that senders act on what was true long ago.",
      "Compare the queues: XCP's stays short, and those of VCP and Reno grow until the buffer is full and add their wait to every round trip.",
    ],
    link: "r1->r2",
    speed: 10,
    lanes: [
      { label: "XCP", text: satcom, set: [] },
      { label: "VCP", text: satcom, set: [["flows.ab.protocol", "vcp"], ["topology.access.router", "auto"]] },
      { label: "Reno", text: satcom, set: [["flows.ab.protocol", "reno"], ["topology.access.router", "auto"]] },
    ],
  },
  {
    paper: "D",
    title: "Losses that are no congestion",
    sentences: [
      "Ten flows share a link of 5 Mbit/s, and five of them then cross one that loses a packet in twenty (figure 3 of the paper).",
      "The picture is of the lossy link: half of the 5 Mbit/s would be its fair share.",
      "XCP_dumb halves its window on every loss; LR-LMXCP asks whether the routers saw congestion, and keeps its share.",
    ],
    link: "n1->n3",
    speed: 2,
    lanes: ["XCP_dumb", "XCP", "LR-LMXCP"].map((name) => ({
      label: name,
      text: fig3,
      set: [["flows.free.protocol", name], ["flows.lossy.protocol", name]] as [string, string][],
    })),
  },
  {
    paper: "K",
    title: "VCP on a long path",
    sentences: [
      "One flow starts on 100 Mbit/s with a round trip of half a second, and one packet in a thousand is lost (figure 7 of the paper).",
      "VCP's two bits say only that the load is low, and its window grows by a sixteenth a step.",
      "BISE takes larger steps the emptier the link, and WLTE leaves the window alone when a loss was no congestion.",
    ],
    link: "r1->r2",
    speed: 1,
    lanes: [["VCP", "vcp"], ["VCP with BISE", "vcp-bise"], ["VCP with BISE and WLTE", "vcp-bise-wlte"]].map(([label, name]) => ({
      label,
      text: bise,
      set: [["flows.bulk.protocol", name], ["link.r1->r2.channel.0.rate", "0.1%"]] as [string, string][],
    })),
  },
];

/** The runs of a scene, with the changes that the scene begins with and then those by the visitor. */
export function lanesOf(scene: Scene, changes: Change[]): LaneSpec[] {
  if (scene.kind === "dumbbell") {
    const loss: Change[] = scene.loss > 0 ? [[0, BOTTLENECK, "loss", scene.loss / 100]] : [];
    // From the start, a router whose feedback is set by hand reports what XCP does.
    const feedback: Change[] = [[0, BOTTLENECK, "feedback", -2]];
    // Only drop-tail's limit can change while it runs.
    const applies = (lane: Contestant, what: Change[2]) => what !== "feedback" && !(what === "buffer" && MARKING.has(lane.protocol));
    return scene.lanes.map((lane) => ({
      label: label(lane),
      text: text(scene, lane),
      origin: `${lane.protocol}.toml`,
      files: {},
      set: [],
      hand: lane.hand ?? false,
      changes: lane.hand ? [...loss, ...feedback, ...changes] : [...loss, ...changes.filter(([, , what]) => applies(lane, what))],
    }));
  }
  const rest = { hand: false, changes };
  if (scene.kind === "file") {
    const { name, text, files } = scene;
    return [{ label: name, text, origin: name, files, set: [], ...rest }];
  }
  return TOUR[scene.stop].lanes.map((lane) => ({ ...lane, origin: "paper.toml", files: {}, ...rest }));
}
