/** The picture of a lane: senders, the queue, the link with its packets, receivers, and the way back. */
import type { LaneFrame, LinkInfo } from "./types";

export interface Colours {
  lane: string;
  ink: string;
  soft: string;
  line: string;
  wire: string;
  full: string;
}

/** Packets drawn at most on each link of a page so wide; beyond, one dot stands for several. */
export function most(width: number): number {
  return Math.round(Math.min(240, Math.max(60, width / 5)));
}

interface Measures {
  width: number;
  height: number;
}

const QUEUE = { left: 0.09, right: 0.34 };
const PIPE = { left: 0.36, right: 0.94 };

export class Picture {
  private readonly context: CanvasRenderingContext2D;
  private measures: Measures = { width: 0, height: 0 };
  private ratio = 1;

  constructor(readonly canvas: HTMLCanvasElement) {
    this.context = canvas.getContext("2d")!;
  }

  resize(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.measures = { width, height };
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
  }

  /** `limit` is the room of the queue, packets. With `still`, packets are a filling of the link and not dots. */
  draw(frame: LaneFrame, link: LinkInfo, limit: number, colours: Colours, still: boolean): void {
    const { context, ratio } = this;
    const { width, height } = this.measures;
    if (width === 0) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const middle = height * 0.42;
    const back = height * 0.85;
    this.wires(width, middle, back, colours);
    this.queue(frame.links[0] ?? 0, limit, width, middle, height, colours);
    if (link.air) {
      const room = width * (PIPE.right - PIPE.left) - 24;
      this.words("shared air: packets are not drawn", width * PIPE.left + 12, middle, colours.soft, room);
    } else if (still) {
      this.filling(frame, width, middle, back, height, colours);
    } else {
      this.dots(frame, width, middle, back, height, colours);
    }
  }

  /** Writes a text; where there is no room for all of it, its part before the colon. */
  private words(text: string, x: number, y: number, colour: string, room = Infinity): void {
    this.context.font = "12px system-ui, sans-serif";
    this.context.textBaseline = "middle";
    this.context.fillStyle = colour;
    this.context.fillText(this.context.measureText(text).width > room ? text.split(":")[0] : text, x, y);
  }

  private wires(width: number, middle: number, back: number, colours: Colours): void {
    const { context } = this;
    const [left, right] = [width * PIPE.left, width * PIPE.right];
    context.strokeStyle = colours.line;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(width * 0.025, middle);
    context.lineTo(width * QUEUE.left, middle);
    context.moveTo(right, middle);
    context.lineTo(width * 0.975, middle);
    context.lineTo(width * 0.975, back);
    context.lineTo(width * 0.025, back);
    context.lineTo(width * 0.025, middle);
    context.stroke();
    context.fillStyle = colours.wire;
    context.fillRect(left, middle - 11, right - left, 22);
    context.fillStyle = colours.ink;
    for (const x of [0.025, 0.975]) {
      context.beginPath();
      context.arc(width * x, middle, 6, 0, 7);
      context.fill();
    }
  }

  private queue(packets: number, limit: number, width: number, middle: number, height: number, colours: Colours): void {
    const { context } = this;
    const [left, right] = [width * QUEUE.left, width * QUEUE.right];
    const tall = Math.min(height * 0.62, 40);
    const top = middle - tall / 2;
    const share = limit > 0 ? Math.min(1, packets / limit) : 0;
    context.fillStyle = colours.lane;
    const wide = right - left;
    const cells = Math.min(limit, Math.floor(wide / 5));
    // A cell is a packet where there is room for all, else a share of the queue.
    const filled = Math.ceil(share * cells);
    const cell = wide / Math.max(1, cells);
    context.beginPath();
    for (let i = 0; i < filled; i++) {
      context.rect(right - (i + 1) * cell + 0.8, top + 3, Math.max(1, cell - 1.6), tall - 6);
    }
    context.fill();
    if (share < 0.5 && wide > 120) this.words("queue", left + 8, middle, colours.soft);
    const full = share > 0.95;
    context.strokeStyle = full ? colours.full : colours.soft;
    context.lineWidth = full ? 3 : 1.5;
    context.beginPath();
    context.moveTo(left, top);
    context.lineTo(right, top);
    context.lineTo(right, top + tall);
    context.lineTo(left, top + tall);
    context.stroke();
  }

  private dots(frame: LaneFrame, width: number, middle: number, back: number, height: number, colours: Colours): void {
    const { context } = this;
    const { packets } = frame;
    const forward = packets.length > 0 ? packets[0] : -1;
    const [left, span] = [width * PIPE.left, width * (PIPE.right - PIPE.left)];
    const size = height > 55 ? 5 : 4;
    // Flows have rows of their own within the link.
    const rows = 5;
    context.fillStyle = colours.lane;
    context.beginPath();
    for (let i = 0; i < packets.length; i += 4) {
      const far = packets[i + 2];
      if (packets[i] !== forward || far < 0 || far > 1 || packets[i + 3] === 1) continue;
      const row = packets[i + 1] % rows;
      context.rect(left + far * (span - size), middle - 10 + row * 3.8, size, 3.2);
    }
    context.fill();
    context.fillStyle = colours.soft;
    context.beginPath();
    for (let i = 0; i < packets.length; i += 4) {
      const far = packets[i + 2];
      if (packets[i + 3] !== 1 || far < 0 || far > 1) continue;
      context.rect(left + (1 - far) * span, back - 1.8, 2.4, 3.6);
    }
    context.fill();
  }

  private filling(frame: LaneFrame, width: number, middle: number, back: number, height: number, colours: Colours): void {
    const { context } = this;
    const { packets } = frame;
    const parts = 12;
    const counts = new Array<number>(parts).fill(0);
    let acks = 0;
    for (let i = 0; i < packets.length; i += 4) {
      const far = packets[i + 2];
      if (far < 0 || far > 1) continue;
      if (packets[i + 3] === 1) acks++;
      else counts[Math.min(parts - 1, Math.floor(far * parts))]++;
    }
    const most = Math.max(1, ...counts);
    const [left, span] = [width * PIPE.left, width * (PIPE.right - PIPE.left)];
    context.fillStyle = colours.lane;
    counts.forEach((count, i) => {
      const tall = (20 * count) / most;
      context.fillRect(left + (span * i) / parts + 1, middle + 10 - tall, span / parts - 2, tall);
    });
    this.words(`${acks} acknowledgements on their way back`, left, back - (height > 55 ? 9 : 8), colours.soft);
  }
}
