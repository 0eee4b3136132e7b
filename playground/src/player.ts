/** Time: asks the worker for frames, and says when there is something to draw. */
import type { Change, FromWorker, LaneFrame, LaneInfo, LaneSpec, Tables, ToWorker } from "./types";
import { most } from "./picture";

export interface Listener {
  ready(lanes: LaneInfo[], link: string): void;
  frame(lanes: LaneFrame[]): void;
  busy(share: number): void;
  changed(): void;
  failed(message: string): void;
  tables(tables: Tables): void;
}

export class Player {
  private readonly worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  private id = 0;
  private waiting = false;
  private last = 0;
  private duration = 0;
  /** Messages that came since the last frame of the screen. */
  private inbox: FromWorker[] = [];
  playing = false;
  loaded = false;
  speed = 0.5;
  now = 0;

  constructor(private readonly listener: Listener) {
    this.worker.addEventListener("message", (event: MessageEvent<FromWorker>) => this.inbox.push(event.data));
    this.worker.addEventListener("error", () => listener.failed("The simulator could not be loaded; reload the page."));
    requestAnimationFrame((time) => this.tick(time));
  }

  private send(message: ToWorker): void {
    this.worker.postMessage(message);
  }

  /** Runs these lanes, up to `until` at once. */
  load(lanes: LaneSpec[], changes: Change[], until: number, link: string): void {
    this.id++;
    this.loaded = false;
    this.waiting = true;
    this.now = until;
    this.send({ type: "load", id: this.id, lanes, changes, until, link, most: most(innerWidth) });
    this.listener.changed();
  }
  tables(lane: LaneSpec, changes: Change[]): void {
    this.send({ type: "tables", id: this.id, lane, changes });
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
        this.play(false);
        this.listener.failed(message.message);
    }
  }
}
