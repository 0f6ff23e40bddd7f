/** Small things that all parts of the page need. Text goes into the page as text only, never as HTML. */

/**
 * The element with an id, which index.html has.
 * @template {HTMLElement} T
 * @param {string} id
 * @returns {T}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return /** @type {T} */ (found);
}

/**
 * A new element.
 * @param {string} tag
 * @param {Record<string, string>} [attributes]
 * @param {(Node | string)[]} children Strings become text.
 * @returns {HTMLElement}
 */
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * A function that waits until it has not been called for a while.
 * @param {() => void} work
 * @param {number} milliseconds
 */
export function debounced(work, milliseconds) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = window.setTimeout(work, milliseconds);
  };
}

/**
 * Hand a file to the visitor.
 * @param {Blob} blob
 * @param {string} name
 */
export function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const anchor = /** @type {HTMLAnchorElement} */ (make("a", { href: address, download: name }));
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/**
 * Prepare a canvas for its size on the page, in device pixels.
 * @param {HTMLCanvasElement} canvas
 * @returns {{context: CanvasRenderingContext2D, width: number, height: number, ratio: number}} Size in CSS pixels.
 */
export function sized(canvas) {
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  const width = canvas.clientWidth || 1;
  const height = canvas.clientHeight || 1;
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height, ratio };
}

/** @param {number} value */
export const percent = (value) => `${Math.round(100 * value)} %`;

/** Whether the visitor wants things to keep still. */
export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * A sentence as sentences are printed.
 * @param {unknown} words
 */
export function sentence(words) {
  const text = String(words);
  const end = /[.!?]$/.test(text) ? "" : ".";
  return text.charAt(0).toUpperCase() + text.slice(1) + end;
}

/**
 * An image out of a data: address, whatever the page may load.
 * @param {string} address
 * @returns {Promise<ImageBitmap | null>}
 */
export async function decoded(address) {
  const [, type, data] = /^data:([\w/+.-]+);base64,(.*)$/s.exec(address) ?? [];
  if (!data) return null;
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  return createImageBitmap(new Blob([bytes], { type }));
}
