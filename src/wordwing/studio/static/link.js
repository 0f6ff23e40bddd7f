/** Links that reproduce a flight: everything that decides it, deflated, in the address's fragment. */

/**
 * @typedef {object} Shared
 * @property {object} layout Layout file, schema 1.
 * @property {{x: number, y: number, yaw: number}} start
 * @property {number} seed
 * @property {"sim" | "lab"} vehicle
 * @property {string[]} policies
 * @property {string[]} texts
 */

/** No honest link is longer than this when unpacked, bytes. */
const MOST = 200_000;

/**
 * @param {Uint8Array} bytes
 * @param {"CompressionStream" | "DecompressionStream"} way
 * @returns {Promise<Uint8Array>}
 */
async function pass(bytes, way) {
  const through = new window[way]("deflate-raw");
  const reader = new Blob([/** @type {BlobPart} */ (bytes)]).stream().pipeThrough(through).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MOST) {
      await reader.cancel();
      throw new Error("too long");
    }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/**
 * @param {Shared} shared
 * @returns {Promise<string>} The whole address.
 */
export async function toLink(shared) {
  const packed = await pass(new TextEncoder().encode(JSON.stringify(shared)), "CompressionStream");
  const letters = Array.from(packed, (byte) => String.fromCharCode(byte)).join("");
  const data = btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return `${location.origin}/#v=1&d=${data}`;
}

/**
 * @param {string} fragment With or without #.
 * @returns {Promise<Shared | null>} null where there is no link.
 */
export async function fromLink(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const data = fields.get("d");
  if (!data) return null;
  const damaged = new Error("This link is damaged or incomplete, so the flight in it cannot be shown.");
  if (fields.get("v") !== "1") {
    throw new Error("This link was made by another version of the studio, which this one cannot read.");
  }
  try {
    const letters = atob(data.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = await pass(Uint8Array.from(letters, (letter) => letter.charCodeAt(0)), "DecompressionStream");
    const found = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (!isShared(found)) throw damaged;
    return found;
  } catch {
    throw damaged;
  }
}

/**
 * Whether something has the shape of a link's content; whether it can be flown the server says.
 * @param {any} found
 * @returns {found is Shared}
 */
export function isShared(found) {
  const words = (/** @type {unknown} */ list) =>
    Array.isArray(list) && list.length > 0 && list.every((entry) => typeof entry === "string");
  return (
    found !== null &&
    typeof found === "object" &&
    Array.isArray(found.layout?.landmarks) &&
    ["x", "y", "yaw"].every((key) => Number.isFinite(found.start?.[key])) &&
    Number.isSafeInteger(found.seed) &&
    (found.vehicle === "sim" || found.vehicle === "lab") &&
    words(found.policies) &&
    found.policies.length <= 2 &&
    words(found.texts)
  );
}
