"use strict";
// Scenes of the playground run in the page where a server serves it; opened from the disk, a page has their links alone.
const show = (scene) => {
  const link = scene.querySelector("a"), frame = document.createElement("iframe");
  frame.src = link.href;
  frame.title = link.textContent;
  frame.loading = "lazy";
  scene.append(frame);
};
// What scrolls sideways can be scrolled by keys.
const reach = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset__table, .md-typeset pre > code")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};
addEventListener("load", () => {
  if (location.protocol.startsWith("http")) document.querySelectorAll(".scene").forEach(show);
  reach();
  new ResizeObserver(reach).observe(document.body);
});
