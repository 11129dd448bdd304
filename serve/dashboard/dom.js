// Elements, made from data only: text becomes text nodes, never markup, so a name that looks like HTML stays a name.

const SVG = "http://www.w3.org/2000/svg";

function put(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// h("td", {class: "name", onclick: f}, "text", child, [more children])
export function h(tag, attributes, ...children) {
  return put(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return put(document.createElementNS(SVG, tag), attributes, children);
}

// Writes only what changed: a screen reader and a selection are left alone by a clock that ticks.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

// Calls f at the next frame, once, however often it is asked to before.
export function onceAFrame(f) {
  let due = false;
  return () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      f();
    });
  };
}

// Tells a screen reader, and nobody else.
export function say(text) {
  setText(document.getElementById("said"), text);
}
