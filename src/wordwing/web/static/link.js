/** Links: the invitation and the participant's own, both in the part of the address that browsers do not send. */

import { byId } from "./dom.js";

/** What the page is called, and what its participants: `<body data-what="study" data-who="rater">`. */
export const { what = "", who = "" } = document.body.dataset;

const KEY = `wordwing-${what}-${who}`;

/**
 * What a link holds; signs that no link of ours has, and no header may have, do not matter.
 * @param {string} name `who` or "invitation".
 */
export function held(name) {
  const content = new URLSearchParams(location.hash.slice(1)).get(name) ?? "";
  return content.replace(/[^\w-]/g, "?");
}

/**
 * Make the page's address the participant's own link, and remember it in this browser.
 * @param {string} token
 */
export function moveTo(token) {
  history.replaceState(null, "", `/#${who}=${encodeURIComponent(token)}`);
  remember(token);
}

/** @param {string} token Of who takes part in this browser; empty when done. */
export function remember(token) {
  try {
    if (token) localStorage.setItem(KEY, token);
    else localStorage.removeItem(KEY);
  } catch {
    // Storage may be switched off; then the link is all there is.
  }
}

/** Who has begun in this browser and not finished; else empty. */
export function remembered() {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** Let the button copy the link; where that is not allowed, show it. */
export function initCopy() {
  byId("copy").addEventListener("click", async () => {
    const said = byId("copied");
    try {
      await navigator.clipboard.writeText(location.href);
      said.textContent = "Copied.";
    } catch {
      const field = /** @type {HTMLInputElement} */ (byId("link"));
      field.value = location.href;
      field.hidden = false;
      field.select();
      said.textContent = "Copy the link from the field.";
    }
  });
}
