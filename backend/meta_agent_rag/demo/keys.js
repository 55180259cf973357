// The right and the left arrow key press "Next step" and "Back", unless they have a meaning where the focus is.
document.addEventListener("keydown", (event) => {
  const wanted = { ArrowRight: "m-next", ArrowLeft: "m-back" }[event.key];
  const busy = "input, textarea, select, [role=tab], [role=listbox], .m-scroll";
  if (!wanted || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.target.closest(busy)) return;
  const button = [...document.querySelectorAll(`button.${wanted}`)].find((one) => one.checkVisibility() && !one.disabled);
  if (button) button.click();
});
