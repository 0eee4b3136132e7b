/** The words above the controls: which kind of scene this is, what it shows, and the way to others. */
import { BITS, COMPARE, type Dumbbell, type Scene, TOUR, XCP_LAW, dumbbell, router } from "./scenes";

/** Opens a scene at a speed, showing a link (by default the narrowest). */
export type Open = (scene: Scene, speed: number, link?: string) => void;

interface Choice {
  text: string;
  act(): void;
  current?: boolean;
  disabled?: boolean;
}

const BY_HAND =
  "Set the feedback that the router writes into packets: how much the traffic grows or shrinks in a round trip. The dashed curve shows what XCP would do in your place; the second lane is XCP on a network of its own.";
const BY_LAW =
  "Change the constants of XCP's law and compare with those of the paper. Alpha is the share of the spare bandwidth that is handed out in a round trip, beta the share of the standing queue that is drained, gamma the share of the traffic that is shuffled between flows.";
const FROM_FILE = "Computed in this browser as it would be by the command line: the tables are equal to the last bit.";

/** Offers the kinds of scenes. */
export function showModes(place: HTMLElement, scene: Scene, open: Open): void {
  const visitor = isRouter(scene);
  const bits = scene.kind === "dumbbell" && scene.lanes.map((lane) => lane.protocol).join() === BITS.join();
  const choices: Choice[] = [
    { text: "Compare", current: scene.kind === "dumbbell" && !visitor && !bits, act: () => open(dumbbell(COMPARE), 0.5) },
    { text: "How many bits?", current: bits, act: () => open(dumbbell(BITS), 0.5) },
    { text: "Be the router", current: visitor, act: () => open(router(undefined), 0.25) },
    { text: "Five papers", current: scene.kind === "paper", act: () => openStop(0, open) },
  ];
  if (scene.kind === "file") choices.push({ text: "Your scenario", current: true, act: () => {} });
  place.replaceChildren(...choices.map(button));
}

/** Says what a scene shows. */
export function showStory(place: HTMLElement, scene: Scene, open: Open): void {
  place.replaceChildren();
  if (scene.kind === "paper") {
    const stop = TOUR[scene.stop];
    paragraphs(place, `${scene.stop + 1} of ${TOUR.length}: ${stop.title}`, stop.sentences);
    choose(place, [
      { text: "Previous", disabled: scene.stop === 0, act: () => openStop(scene.stop - 1, open) },
      { text: "Next", disabled: scene.stop === TOUR.length - 1, act: () => openStop(scene.stop + 1, open) },
    ]);
  } else if (isRouter(scene)) {
    const byHand = scene.lanes.some((lane) => lane.hand);
    paragraphs(place, "Be the router", [byHand ? BY_HAND : BY_LAW]);
    choose(place, [
      { text: "Feedback", disabled: byHand, act: () => open(router(undefined), 0.25) },
      { text: "Law", disabled: !byHand, act: () => open(router(XCP_LAW), 0.25) },
    ]);
  } else if (scene.kind === "file") {
    paragraphs(place, scene.name, [FROM_FILE]);
  }
}

function isRouter(scene: Scene): scene is Dumbbell {
  return scene.kind === "dumbbell" && scene.lanes.some((lane) => lane.hand || lane.law);
}

function openStop(stop: number, open: Open): void {
  open({ kind: "paper", stop }, TOUR[stop].speed, TOUR[stop].link);
}

function paragraphs(place: HTMLElement, title: string, sentences: readonly string[]): void {
  const heading = document.createElement("h2");
  heading.textContent = title;
  const texts = sentences.map((sentence) => {
    const paragraph = document.createElement("p");
    paragraph.textContent = sentence;
    return paragraph;
  });
  place.append(heading, ...texts);
}

function choose(place: HTMLElement, choices: Choice[]): void {
  const row = document.createElement("div");
  row.className = "stops";
  row.append(...choices.map(button));
  place.append(row);
}

function button({ text, act, current, disabled }: Choice): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.disabled = disabled ?? false;
  if (current !== undefined) made.setAttribute("aria-current", String(current));
  made.addEventListener("click", act);
  return made;
}
