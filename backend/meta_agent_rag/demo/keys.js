// The right and the left arrow key press "Next step" and "Back", unless they have a meaning where the focus is.
document.addEventListener("keydown", (event) => {
  const wanted = { ArrowRight: "m-next", ArrowLeft: "m-back" }[event.key];
  const busy = "input, textarea, select, [role=tab], [role=listbox], .m-scroll";
  if (!wanted || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.target.closest(busy)) return;
  const button = [...document.querySelectorAll(`button.${wanted}`)].find((one) => one.checkVisibility() && !one.disabled);
  if (button) button.click();
});

// "Next step" brings the new card into view. The cards come in several changes, some late if the machine is busy.
const LATEST_CHANGE = 3000;
let observer;
document.addEventListener("click", (event) => {
  const steps = [...document.querySelectorAll("#tour-replay, #runs-replay")].find((one) => one.checkVisibility());
  if (!steps || !event.target.closest("button.m-next")) return;
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  let waiting = 0;
  observer?.disconnect();
  const own = (observer = new MutationObserver(() => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      [...steps.querySelectorAll(".m-card")].at(-1)?.scrollIntoView({ block: "nearest", behavior });
    }, 80);
  }));
  own.observe(steps, { childList: true, subtree: true });
  setTimeout(() => own.disconnect(), LATEST_CHANGE);
});

// The slider over rounds hides the cards of the later ones.
document.addEventListener("input", (event) => {
  if (!event.target.matches(".m-rounds input")) return;
  const shown = Number(event.target.value);
  event.target.parentElement.querySelector("output").textContent = shown ? `up to repair ${shown}` : "the first draft";
  for (const card of event.target.closest(".m-stages").querySelectorAll(".m-round")) card.hidden = Number(card.dataset.round) > shown;
});
