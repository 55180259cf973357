// What is wrong with the layout of a page, by the boxes of its elements: a function that gives sentences.
//
// Looked at are texts (by the line), controls and images that can be seen. What lies outside of a box that
// scrolls is out of sight, but can be reached; what lies outside of a box that hides it is cut.
() => {
  const LEEWAY = 1.5, ENOUGH = 4.5;  // pixels; the contrast that WCAG 2.2 AA asks of text
  const CONTROLS = 'button, input, select, textarea, img, [role="tab"], [role="slider"]';
  const faults = new Set();
  const styles = new Map();
  const style = (element) => styles.get(element) ?? styles.set(element, getComputedStyle(element)).get(element);
  const name = (element) => {
    const id = element.closest('[id]')?.id;
    const said = (element.textContent || element.value || element.ariaLabel || '').trim().replace(/\s+/g, ' ').slice(0, 40);
    return `${element.tagName.toLowerCase()}${element.className?.baseVal === undefined && element.className ? '.' + element.className.split(' ')[0] : ''} “${said}”${id ? ` in #${id}` : ''}`;
  };
  const isHidden = (element) => {
    if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true})) return true;
    for (let one = element; one; one = one.parentElement) {  // for screen readers alone
      const {width, height} = one.getBoundingClientRect();
      if (width <= 1 && height <= 1 && style(one).overflow !== 'visible') return true;
    }
    return false;
  };

  // the boxes: a text has one for each line
  const leaves = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || ['SCRIPT', 'STYLE', 'TEXTAREA', 'OPTION'].includes(element.tagName) || isHidden(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) if (box.width > 1 && box.height > 1) leaves.push({element, box, text: true});
  }
  for (const element of document.querySelectorAll(CONTROLS)) {
    const box = element.getBoundingClientRect();
    if (!isHidden(element) && box.width > 1 && box.height > 1) leaves.push({element, box, text: false});
  }

  // cut: by a box that hides, or by the window
  for (const leaf of leaves) {
    let {left, right, top, bottom} = leaf.box;
    const ink = leaf.text ? 0.2 * (bottom - top) : 0;  // the height of a line of text is more than that of its letters
    top += ink; bottom -= ink;
    for (let one = leaf.element; one && one !== document.body; one = one.parentElement) {
      if (style(one).display === 'inline' || style(one).display === 'contents') continue;
      const edge = one.getBoundingClientRect(), {overflowX, overflowY} = style(one);
      const wide = one === leaf.element && !leaf.text;
      if (wide) continue;
      if (overflowX === 'hidden' || overflowX === 'clip') {
        if (right > edge.right + LEEWAY || left < edge.left - LEEWAY) faults.add(`cut at the side: ${name(leaf.element)}`);
      }
      if (overflowY === 'hidden' || overflowY === 'clip') {
        if (bottom > edge.bottom + LEEWAY || top < edge.top - LEEWAY) faults.add(`cut above or below: ${name(leaf.element)}`);
      }
      if (overflowX !== 'visible') { left = Math.max(left, edge.left); right = Math.min(right, edge.right); }
      if (overflowY !== 'visible') { top = Math.max(top, edge.top); bottom = Math.min(bottom, edge.bottom); }
    }
    if (right > innerWidth + LEEWAY || left < -LEEWAY) faults.add(`beyond the window: ${name(leaf.element)}`);
    leaf.seen = {left, right, top, bottom};
  }
  for (const element of document.querySelectorAll('input, select')) {
    const shortened = style(element).textOverflow === 'ellipsis';  // says itself that there is more
    if (!isHidden(element) && !shortened && element.scrollWidth > element.clientWidth + LEEWAY) faults.add(`cut at the side: ${name(element)}`);
  }
  for (const element of document.querySelectorAll('textarea')) {
    if (!isHidden(element) && !element.value && element.scrollHeight > element.clientHeight + LEEWAY) faults.add(`cut below: placeholder of ${name(element)}`);
  }
  for (const element of document.querySelectorAll('body *')) {  // nobody expects it to, and no key moves it
    const goesSideways = ['auto', 'scroll'].includes(style(element).overflowX) && element.scrollWidth > element.clientWidth + LEEWAY;
    if (goesSideways && element.tabIndex < 0 && !isHidden(element)) faults.add(`scrolls sideways, but not by keyboard: ${name(element)}`);
  }
  for (const text of document.querySelectorAll('g > rect ~ text')) {
    const box = text.getBoundingClientRect(), frame = text.parentElement.querySelector('rect').getBoundingClientRect();
    if (!isHidden(text) && (box.left < frame.left || box.right > frame.right)) faults.add(`wider than its frame: ${name(text)}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) faults.add(`the page scrolls sideways: ${document.documentElement.scrollWidth} of ${innerWidth} pixels`);

  // overlapping: neither holds the other
  const seen = leaves.filter(({seen}) => seen.right - seen.left > LEEWAY && seen.bottom - seen.top > LEEWAY);
  seen.sort((one, other) => one.seen.top - other.seen.top);
  seen.forEach((one, index) => {
    for (let next = index + 1; next < seen.length && seen[next].seen.top < one.seen.bottom - LEEWAY; next++) {
      const other = seen[next];
      if (one.element.contains(other.element) || other.element.contains(one.element)) continue;
      const across = Math.min(one.seen.right, other.seen.right) - Math.max(one.seen.left, other.seen.left);
      const down = Math.min(one.seen.bottom, other.seen.bottom) - other.seen.top;
      if (across > LEEWAY && down > LEEWAY) faults.add(`overlap: ${name(one.element)} and ${name(other.element)}`);
    }
  });

  // contrast (WCAG 2.2, 1.4.3), of everything but what is switched off
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const colours = new Map();
  const rgba = (words) => {
    if (!colours.has(words)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = words;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      colours.set(words, [r, g, b, a / 255]);
    }
    return colours.get(words);
  };
  const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3])).concat(1);
  const under = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) {
      if (one.tagName === 'g') layers.push(...[...one.children].filter((child) => child.tagName === 'rect').map((rect) => rgba(style(rect).fill === 'none' ? 'transparent' : style(rect).fill)));
      layers.push(rgba(style(one).backgroundColor));
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const light = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const check = (element, words, what) => {
    let ink = [...rgba(words)];
    for (let one = element; one; one = one.parentElement) ink[3] *= Number(style(one).opacity);
    const ground = under(element);
    const [dark, bright] = [light(over(ink, ground)), light(ground)].sort((one, other) => one - other);
    const contrast = (bright + 0.05) / (dark + 0.05);
    if (contrast < ENOUGH) faults.add(`contrast ${contrast.toFixed(2)}: ${what} ${name(element)}`);
  };
  for (const element of new Set(leaves.filter(({text}) => text).map(({element}) => element))) {
    if (element.closest(':disabled, [aria-disabled="true"], [aria-hidden="true"]')) continue;
    check(element, element instanceof SVGElement ? style(element).fill : style(element).color, 'text of');
  }
  for (const element of document.querySelectorAll('input, textarea')) {
    if (isHidden(element) || element.disabled || ['range', 'radio', 'checkbox', 'file'].includes(element.type)) continue;
    const empty = element.placeholder && !element.value;
    check(element, empty ? getComputedStyle(element, '::placeholder').color : style(element).color, empty ? 'placeholder of' : 'value of');
  }
  return [...faults];
}
