/** Playback: asks the worker for the frames of a run, one at a time, as simulated time goes on. */
import type { FromWorker, LaneFrame, LaneInfo, LaneSpec, Tables, ToWorker } from "./types";
import { most } from "./picture";

export interface Listener {
  ready(lanes: LaneInfo[], link: string): void;
  frame(lanes: LaneFrame[]): void;
  busy(share: number): void;
  changed(): void;
  failed(message: string): void;
  tables(tables: Tables): void;
}

/** A worker that has been busy for longer is replaced when a new scene is loaded, ms. */
const LONGEST_WAIT = 1000;

export class Player {
  private worker = this.start();
  private id = 0;
  /** Requests that the worker has not answered, and since when it works on the first of them. */
  private open = 0;
  private since = 0;
  private waiting = false;
  private last = 0;
  private duration = 0;
  /** Messages that came since the last frame of the screen. */
  private inbox: FromWorker[] = [];
  private broken = false;
  playing = false;
  loaded = false;
  speed = 0.5;
  now = 0;

  constructor(private readonly listener: Listener) {
    requestAnimationFrame((time) => this.tick(time));
  }

  private start(): Worker {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.addEventListener("message", (event: MessageEvent<FromWorker>) => {
      if (worker === this.worker) this.inbox.push(event.data);
    });
    worker.addEventListener("error", () => this.listener.failed("The simulator could not be loaded; reload the page."));
    return worker;
  }

  private send(message: ToWorker): void {
    if (this.open++ === 0) this.since = performance.now();
    this.worker.postMessage(message);
  }

  /** Runs these lanes, up to `until` at once. */
  load(lanes: LaneSpec[], until: number, link: string): void {
    this.id++;
    // The worker may be busy with a large scenario, or may have failed.
    if (this.broken || (this.open > 0 && performance.now() - this.since > LONGEST_WAIT)) {
      this.worker.terminate();
      this.worker = this.start();
      this.inbox = [];
      this.broken = false;
      this.open = 0;
    }
    this.loaded = false;
    this.waiting = true;
    this.now = until;
    this.send({ type: "load", id: this.id, lanes, until, link, most: most(innerWidth) });
    this.listener.changed();
  }
  tables(lane: LaneSpec): void {
    this.send({ type: "tables", id: this.id, lane });
  }
  play(on: boolean): void {
    this.playing = on;
    this.last = 0;
    this.listener.changed();
  }
  step(by: number): void {
    this.play(false);
    if (this.loaded && !this.waiting) this.ask(this.now + by);
  }
  get ended(): boolean {
    return this.loaded && this.now >= this.duration;
  }

  private ask(until: number): void {
    this.waiting = true;
    this.send({ type: "frame", id: this.id, until: Math.min(until, this.duration), most: most(innerWidth) });
  }

  private tick(time: number): void {
    requestAnimationFrame((next) => this.tick(next));
    const messages = this.inbox;
    this.inbox = [];
    messages.forEach((message) => this.take(message));
    if (!this.playing || !this.loaded) {
      this.last = 0;
      return;
    }
    if (this.waiting) return;
    // After a pause of the page, time goes on where it was.
    const passed = this.last === 0 ? 0.016 : Math.min(0.1, (time - this.last) / 1000);
    this.last = time;
    this.ask(this.now + passed * this.speed);
  }

  private take(message: FromWorker): void {
    if (message.type !== "busy" && message.type !== "ready") {
      this.open = Math.max(0, this.open - 1);
      this.since = performance.now();
    }
    if (message.id !== this.id) return;
    switch (message.type) {
      case "busy":
        this.listener.busy(message.share);
        break;
      case "ready":
        this.duration = Math.max(...message.lanes.map((lane) => lane.duration));
        this.listener.ready(message.lanes, message.link);
        break;
      case "frame":
        this.loaded = true;
        this.waiting = false;
        this.now = message.now;
        if (message.done && this.playing) this.play(false);
        this.listener.frame(message.lanes);
        break;
      case "tables":
        this.listener.tables(message.tables);
        break;
      case "error":
        this.waiting = false;
        this.broken = message.defect;
        if (message.defect) this.loaded = false;
        this.play(false);
        this.listener.failed(message.message);
    }
  }
}
