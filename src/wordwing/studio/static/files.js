/** Files of the visitor's own: layouts, and episodes to be flown again. */

import { download, sentence } from "./dom.js";
import { isShared } from "./link.js";

/** @typedef {import("./link.js").Shared} Shared */

/** Bytes of the largest layout; larger ones cannot be sent back to be flown. */
const MOST = 60_000;

/** Bytes of the largest episode: many instructions, two drones. */
const MOST_EPISODE = 20_000_000;

/**
 * Read a file; a mistake is thrown as an error with one sentence.
 * @param {File} file
 * @returns {Promise<{layout: object, shared?: Shared}>} `shared` where it is an episode: all that decides its flights.
 */
export async function readFile(file) {
  if (file.size > MOST_EPISODE) throw new Error("This file is too large; 20 MB are the most for an episode.");
  const body = await file.text();
  const shared = episode(body);
  return shared ? { layout: shared.layout, shared } : { layout: await checked(body) };
}

/**
 * @param {string} body
 * @returns {Shared | null} null where it is no episode.
 */
function episode(body) {
  try {
    const found = JSON.parse(body);
    if (!isShared(found)) return null;
    const { layout, start, seed, vehicle, policies, texts } = found;
    return { layout, start, seed, vehicle, policies, texts };
  } catch {
    return null; // what is wrong with it the server says
  }
}

/**
 * Have the server check a layout.
 * @param {string} body
 * @returns {Promise<object>}
 */
async function checked(body) {
  if (body.length > MOST) throw new Error("This file is too large for a layout; 60 kB are the most.");
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("/layout", { method: "POST", body, headers }).catch(() => null);
  if (!answer) throw new Error("The studio does not answer.");
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(content.message ? sentence(content.message) : "This file is not a layout.");
  return content;
}

/** @param {object} layout */
export function writeLayout(layout) {
  download(new Blob([JSON.stringify(layout, null, 1)], { type: "application/json" }), "layout.json");
}
