/** Which part of the page is to be seen. */

import { byId, make } from "./dom.js";
import { what } from "./link.js";

/**
 * Show one part and go to its top.
 * @param {string} name Its id, of a part of <main>.
 * @param {string} title
 */
export function show(name, title) {
  for (const part of document.querySelectorAll("main > [id]")) {
    /** @type {HTMLElement} */ (part).hidden = part.id !== name;
  }
  const heading = byId(`${name}-title`);
  heading.textContent = title;
  document.title = `${title} · wordwing ${what}`;
  document.body.dataset.screen = name;
  byId("status").textContent = "";
  scrollTo(0, 0);
  heading.focus({ preventScroll: true });
}

/**
 * A part that only says something.
 * @param {string} title
 * @param {string} text
 */
export function message(title, text) {
  byId("message-text").textContent = text;
  show("message", title);
}

/**
 * How far the participant is.
 * @param {string} text Empty for nothing.
 * @param {number} [share] From 0 to 1.
 */
export function progress(text, share = 0) {
  byId("progress").hidden = !text;
  byId("status").hidden = Boolean(text);
  byId("progress-text").textContent = text;
  /** @type {HTMLProgressElement} */ (byId("progress-bar")).value = share;
}

/**
 * Write task and guidelines wherever they stand.
 * @param {{task: string, guidelines: string[]}} guide
 */
export function writeGuide({ task, guidelines }) {
  for (const place of document.querySelectorAll(".guide")) {
    place.replaceChildren(make("p", {}, task), make("ul", {}, ...guidelines.map(guideline)));
  }
}

/** @param {string} text Its first words, up to a colon, are its name. */
function guideline(text) {
  const [, name, rest] = /^([A-Z][a-z]+(?: [a-z]+){0,5}:)( .*)$/s.exec(text) ?? ["", "", text];
  return name ? make("li", {}, make("strong", {}, name), rest) : make("li", {}, rest);
}

/**
 * Say what went wrong.
 * @param {string} text Empty when all is well.
 * @param {(() => void) | null} again What to do to try again.
 */
export function notice(text, again = null) {
  byId("notice").hidden = !text;
  byId("notice-text").textContent = text;
  const button = byId("notice-action");
  button.hidden = !again;
  button.onclick = again;
}
