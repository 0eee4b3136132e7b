/** The form beside the picture. What changes the network applies at once; what changes flows starts them again. */
import { BOTTLENECK, type Dumbbell, PACKET, PROTOCOLS, RETURN, STACKS, type Scene, XCP_LAW, bottleneckDelay, hears, label, roundTrip } from "./scenes";
import type { Change, LinkInfo } from "./types";

export interface Actions {
  restart(scene: Dumbbell): void;
  change(changes: Change[]): void;
}

interface Slider {
  label: string;
  values: number[];
  value: number;
  show(value: number): string;
  set(value: number): void;
}

const RATES = [1, 2, 3, 5, 8, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200];
const RTTS = [10, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600];
const LOSSES = [0, 0.01, 0.03, 0.1, 0.3, 1, 2, 3, 5];
const BUFFERS = [5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000];
const FACTORS = [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10];
const FLOWS = [1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50];

export class Controls {
  private noted: HTMLElement | null = null;

  constructor(
    private readonly form: HTMLFormElement,
    private readonly actions: Actions,
  ) {
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  /** Shows what there is to choose in a scene. */
  show(scene: Scene, changes: Change[]): void {
    this.form.hidden = scene.kind !== "dumbbell";
    const focused = this.form.contains(document.activeElement) ? (document.activeElement as HTMLElement) : null;
    const name = focused?.dataset.name;
    this.form.replaceChildren();
    if (scene.kind !== "dumbbell") return;
    this.fill(scene, changes);
    // Who moves a slider by keyboard goes on where they were.
    if (name) this.form.querySelector<HTMLElement>(`[data-name="${name}"]`)?.focus();
  }

  /** What can change of one link of a scenario, around what it has. */
  showLink(link: LinkInfo, changes: Change[]): void {
    this.form.replaceChildren();
    this.form.hidden = link.possible.length === 0;
    if (this.form.hidden) return;
    const last = (what: Change[2], otherwise: number) => changes.filter((c) => c[2] === what && c[1] === link.name).at(-1)?.[3] ?? otherwise;
    const set = (what: Change[2], of: (shown: number) => number) => (v: number) => this.actions.change([[0, link.name, what, of(v)]]);
    const around = (value: number) => FACTORS.map((factor) => Number((value * factor).toPrecision(3)));
    const [rate, delay, buffer] = [link.rate / 1e6, link.delay * 1000, (link.limit ?? 0) / 1000];
    const sliders: [string, Slider][] = [
      ["rate", { label: "Rate", values: around(rate), value: last("rate", link.rate) / 1e6, show: (v) => `${v} Mbit/s`, set: set("rate", (v) => v * 1e6) }],
      ["delay", { label: "Delay", values: around(Math.max(delay, 1)), value: last("delay", link.delay) * 1000, show: (v) => `${v} ms`, set: set("delay", (v) => v / 1e3) }],
      ["loss", { label: "More loss", values: LOSSES, value: last("loss", 0) * 100, show: (v) => `${v} %`, set: set("loss", (v) => v / 100) }],
      ["buffer", { label: "Buffer", values: around(buffer), value: last("buffer", buffer * 1000) / 1000, show: (v) => `${v} kB`, set: set("buffer", (v) => v * 1e3) }],
    ];
    const possible = sliders.filter(([what]) => link.possible.includes(what) && (what !== "buffer" || link.limit !== null));
    this.group(link.name, "changes while it runs", possible.map(([, slider]) => this.slider(slider)));
    this.noted = document.createElement("p");
    this.noted.className = "note";
    this.form.append(this.noted);
    this.note(changes.length);
  }

  private fill(scene: Dumbbell, changes: Change[]): void {
    const last = (what: Change[2], otherwise: number) => changes.filter((c) => c[2] === what && c[1] === BOTTLENECK).at(-1)?.[3] ?? otherwise;
    const here = (what: Change[2], value: number): Change => [0, BOTTLENECK, what, value];
    const { change } = this.actions;
    const network: Slider[] = [
      {
        label: "Rate", values: RATES, value: last("rate", scene.rate * 1e6) / 1e6, show: (v) => `${v} Mbit/s`,
        set: (v) => change([here("rate", v * 1e6)]),
      },
      {
        label: "Round trip", values: RTTS, value: roundTrip(last("delay", bottleneckDelay(scene.rtt))), show: (v) => `${v} ms`,
        set: (v) => change([here("delay", bottleneckDelay(v)), [0, RETURN, "delay", bottleneckDelay(v)]]),
      },
      {
        label: "Loss", values: LOSSES, value: last("loss", scene.loss / 100) * 100, show: (v) => `${v} %`,
        set: (v) => change([here("loss", v / 100)]),
      },
      {
        label: "Buffer", values: BUFFERS, value: last("buffer", scene.buffer * PACKET) / PACKET, show: (v) => `${v} packets`,
        set: (v) => change([here("buffer", v * PACKET)]),
      },
    ];
    if (scene.lanes.some((lane) => lane.hand)) this.hand(last("feedback", -2));
    if (scene.lanes.some((lane) => lane.law)) this.law(scene);
    this.group("Network", "changes while it runs", network.map((slider) => this.slider(slider)));
    this.flows(scene);
    this.noted = document.createElement("p");
    this.noted.className = "note";
    this.form.append(this.noted);
    this.note(changes.length);
  }

  /** Says how many changes the run has. */
  note(changes: number): void {
    if (!this.noted) return;
    this.noted.textContent =
      changes === 0 ? "" : `${changes} change${changes === 1 ? "" : "s"} so far; the link and the tables include them.`;
  }

  private group(title: string, hint: string, parts: HTMLElement[]): void {
    const set = document.createElement("fieldset");
    const legend = document.createElement("legend");
    legend.textContent = title;
    const small = document.createElement("small");
    small.textContent = hint;
    legend.append(small);
    set.append(legend, ...parts);
    this.form.append(set);
  }

  private slider({ label, values, value, show, set }: Slider): HTMLElement {
    const box = document.createElement("label");
    box.className = "slider";
    const name = document.createElement("span");
    name.textContent = label;
    const output = document.createElement("output");
    const input = document.createElement("input");
    input.type = "range";
    input.min = "0";
    input.max = String(values.length - 1);
    // The nearest of the values, if it has none of them.
    const nearest = values.reduce((best, v, i) => (Math.abs(v - value) < Math.abs(values[best] - value) ? i : best), 0);
    input.value = String(nearest);
    input.dataset.name = label;
    const tell = (text: string): void => {
      output.textContent = text;
      input.setAttribute("aria-valuetext", text);
    };
    tell(show(Number(value.toPrecision(3))));
    input.addEventListener("input", () => tell(show(values[Number(input.value)])));
    input.addEventListener("change", () => set(values[Number(input.value)]));
    box.append(name, output, input);
    return box;
  }

  private hand(present: number): void {
    const steps = Array.from({ length: 41 }, (_, i) => (i - 20) * 2.5);
    const slider = this.slider({
      label: "Feedback", values: steps, value: present < -1 ? 0 : present * 100,
      show: (v) => `${v > 0 ? "+" : ""}${v.toFixed(1)} % a round trip`,
      set: (v) => this.actions.change([[0, BOTTLENECK, "feedback", v / 100]]),
    });
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Leave it to XCP";
    button.addEventListener("click", () => this.actions.change([[0, BOTTLENECK, "feedback", -2]]));
    this.group("Your feedback", present < -1 ? "XCP decides until you move it" : "as you set it", [slider, button]);
  }

  private law(scene: Dumbbell): void {
    const law = scene.lanes.find((lane) => lane.law)?.law ?? XCP_LAW;
    const names = ["Alpha", "Beta", "Gamma"];
    const values = [
      [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.2, 1.6, 2],
      [0, 0.05, 0.1, 0.226, 0.35, 0.5, 0.7, 1, 1.5, 2],
      [0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5],
    ];
    const parts = names.map((label, i) =>
      this.slider({
        label, values: values[i], value: law[i], show: String,
        set: (v) => {
          const next: [number, number, number] = [...law];
          next[i] = v;
          this.actions.restart({ ...scene, lanes: scene.lanes.map((lane) => (lane.law ? { ...lane, law: next } : lane)) });
        },
      }),
    );
    this.group("Your law", "starts again", parts);
  }

  private flows(scene: Dumbbell): void {
    const again = (more: Partial<Dumbbell>): void => this.actions.restart({ ...scene, ...more });
    const parts: HTMLElement[] = [];
    if (!scene.lanes.some((lane) => lane.hand || lane.law)) {
      const picks = document.createElement("div");
      picks.className = "picks";
      for (let i = 0; i < 4; i++) {
        const select = document.createElement("select");
        select.setAttribute("aria-label", `Protocol ${i + 1}`);
        select.dataset.name = `Protocol ${i + 1}`;
        const present = scene.lanes[i]?.protocol ?? "";
        const known = PROTOCOLS.some(([name]) => name === present) ? PROTOCOLS : [...PROTOCOLS, [present, present] as [string, string]];
        if (i > 0) select.append(new Option("none", "", false, present === ""));
        select.append(...known.filter(([name]) => name).map(([name, label]) => new Option(label, name, false, name === present)));
        select.addEventListener("change", () => {
          const lanes = [...picks.querySelectorAll("select")].map((s) => s.value).filter((name) => name);
          again({ lanes: lanes.map((protocol) => ({ protocol })) });
        });
        picks.append(select);
      }
      const stack = document.createElement("select");
      stack.setAttribute("aria-label", "TCP");
      stack.dataset.name = "TCP";
      stack.append(...STACKS.map(([name, label]) => new Option(label, name, false, name === scene.stack)));
      stack.addEventListener("change", () => again({ stack: stack.value }));
      parts.push(picks, stack);
      const said = scene.lanes.filter(hears);
      if (said.length > 0) {
        const list = document.createElement("ul");
        list.className = "hears";
        list.setAttribute("aria-label", "What the network says");
        list.append(...said.map((lane) => {
          const item = document.createElement("li");
          const name = document.createElement("strong");
          name.textContent = label(lane);
          item.append(name, ` ${hears(lane)}`);
          return item;
        }));
        parts.push(list);
      }
    }
    parts.push(
      this.slider({ label: "Flows", values: FLOWS, value: scene.flows, show: String, set: (flows) => again({ flows }) }),
    );
    this.group("Flows", "start again", parts);
  }
}
