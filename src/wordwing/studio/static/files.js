/** Layout files of the visitor's own. */

import { download, sentence } from "./dom.js";

/** Bytes of the largest file; larger ones cannot be sent back to be flown. */
const MOST = 60_000;

/**
 * Have the server check a layout file.
 * @param {File} file
 * @returns {Promise<object>} The layout; a mistake is thrown as an error with one sentence.
 */
export async function readLayout(file) {
  if (file.size > MOST) throw new Error("This file is too large for a layout; 60 kB are the most.");
  const body = await file.text();
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("/layout", { method: "POST", body, headers }).catch(() => null);
  if (!answer) throw new Error("The studio does not answer.");
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(content.message ? sentence(content.message) : "This file is not a layout.");
  return content.layout ?? content;
}

/** @param {object} layout */
export function writeLayout(layout) {
  download(new Blob([JSON.stringify(layout, null, 1)], { type: "application/json" }), "layout.json");
}
