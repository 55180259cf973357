// The right and the left arrow key press "Next step" and "Back", unless they have a meaning where the focus is.
document.addEventListener("keydown", (event) => {
  const wanted = { ArrowRight: "m-next", ArrowLeft: "m-back" }[event.key];
  // in a list of radio buttons, up and down choose; in a closed drop-down list there is nothing to move through
  const busy = "input:not([type=radio], [role=combobox][aria-expanded=false]), textarea, select, [role=tab], [role=listbox]";
  if (!wanted || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.target.closest(busy)) return;
  const button = [...document.querySelectorAll(`button.${wanted}`)].find((one) => one.checkVisibility() && !one.disabled);
  if (!button) return;
  event.preventDefault();
  button.click();
});

// Running or stepping brings the newest card into view, or the answer of the tab Loop, which is above the cards. The
// cards come in several changes, some late; whoever scrolls is left alone.
let observer;
const stopFollowing = () => observer?.disconnect();
for (const scrolls of ["wheel", "touchmove"]) document.addEventListener(scrolls, stopFollowing, { passive: true });
document.addEventListener("click", (event) => {
  if (!event.target.closest("button")) return;
  stopFollowing();
  const steps = [...document.querySelectorAll("#tour-replay, #runs-replay, #loop-shown")].find((one) => one.checkVisibility());
  if (!steps || !event.target.closest("button.m-next, button.m-every, button.m-run")) return;
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  let waiting = 0;
  observer = new MutationObserver(() => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const answer = steps.querySelector("#loop-answer .m-card");
      (answer ?? [...steps.querySelectorAll(".m-card, .m-waiting")].at(-1))?.scrollIntoView({ block: "nearest", behavior });
    }, 80);
  });
  observer.observe(steps, { childList: true, subtree: true });
});

// A stage that takes long shows for how long. Its element is replaced with every change, so its words identify it.
const since = new Map();
setInterval(() => {
  const running = [...document.querySelectorAll(".m-waiting")];
  const words = running.map((one) => one.dataset.stage);
  for (const known of since.keys()) if (!words.includes(known)) since.delete(known);
  for (const one of running) {
    if (!since.has(one.dataset.stage)) since.set(one.dataset.stage, Date.now());
    const seconds = Math.round((Date.now() - since.get(one.dataset.stage)) / 1000);
    if (seconds > 2) one.querySelector(".m-elapsed").textContent = `${seconds} s`;
  }
}, 500);

// The address names the tab and what is shown in it, so that reloading and going back keep the place.
let moved = false;
for (const acts of ["pointerdown", "keydown"]) document.addEventListener(acts, () => (moved = true), { capture: true });
setInterval(() => {
  const tab = document.querySelector("#marag-tabs [role=tab][aria-selected=true]")?.textContent.trim().toLowerCase();
  if (!moved || !tab) return;
  const named = [...document.querySelectorAll("[data-place]")].filter((one) => one.checkVisibility()).at(-1)?.dataset.place;
  const place = new URLSearchParams(named || "");
  place.set("tab", tab);
  const now = new URLSearchParams(location.search);
  if (place.toString() === now.toString()) return;
  history[now.get("tab") === tab || !now.get("tab") ? "replaceState" : "pushState"](null, "", `?${place}`);
}, 300);
addEventListener("popstate", () => location.reload());
