/**
 * Light or dark: as the system has it, until the visitor chooses.
 * This runs before the first paint, so that a dark room stays dark.
 */

const KEY = "wordwing-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

/** @type {string | null} What the visitor chose, now or earlier. */
let chosen = null;
try {
  chosen = localStorage.getItem(KEY);
} catch {
  // Storage may be switched off; then a choice lasts as long as the page.
}

/** Make the page and its switch agree with what is chosen. */
function apply() {
  const theme = chosen === "light" || chosen === "dark" ? chosen : system.matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme")?.setAttribute("aria-pressed", String(theme === "dark"));
  document.dispatchEvent(new CustomEvent("themechange"));
}

/** Let the switch in the header switch. */
export function initTheme() {
  const button = document.getElementById("theme");
  button?.addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEY, chosen);
    } catch {
      // See above.
    }
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}

apply();
