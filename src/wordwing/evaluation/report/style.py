"""How the page of a report looks: light and dark, on a screen, a phone and paper."""

CSS = """\
:root {
  color-scheme: light dark;
  --paper: #fafaf8; --ink: #202020; --soft: #595959; --line: #d9d9d4; --band: #f0f0ec; --link: #005a94;
  --yes: #00684b; --no: #a63c00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #17181a; --ink: #ececea; --soft: #b0b0ac; --line: #3a3c40; --band: #212327; --link: #7cc4f5;
    --yes: #4fd1a5; --no: #ff9d5c;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
header, main, footer { max-width: 80rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.5rem; }
h1 { font-size: clamp(1.6rem, 4vw, 2.3rem); line-height: 1.15; letter-spacing: -0.015em; margin: 0 0 0.5rem; }
h2 { font-size: 1.45rem; margin: 3rem 0 1rem; padding-top: 0.75rem; border-top: 3px solid var(--ink); }
h3 { font-size: 1.15rem; margin: 2.25rem 0 0.75rem; }
h4 { font-size: 1rem; margin: 1.5rem 0 0.4rem; }
p, li, figcaption { max-width: 46rem; }
header p { color: var(--soft); font-size: 1.1rem; margin: 0; }
a { color: var(--link); text-underline-offset: 0.15em; }
a:focus-visible, [tabindex]:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 0.5rem; background: var(--paper); padding: 0.3rem 0.6rem; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: 0.35rem 1.25rem; padding: 0; margin: 1.1rem 0 0; }
nav a { display: inline-block; padding: 0.2rem 0; }
.notes { color: var(--soft); padding-left: 1.2rem; margin: 0.75rem 0 0; }
footer {
  color: var(--soft); font-size: 0.9rem; border-top: 1px solid var(--line); margin-top: 4rem; padding-bottom: 2rem;
}

.scroll { overflow-x: auto; margin: 0 0 2rem; }
table { border-collapse: collapse; font-size: 0.86rem; font-variant-numeric: tabular-nums; min-width: 100%; }
caption { text-align: left; padding: 0 0 0.6rem; }
caption strong, caption span {
  display: block; position: sticky; left: 0; max-width: min(46rem, calc(100vw - 2.5rem));
}
caption strong { font-size: 1rem; }
caption span { color: var(--soft); }
th, td { padding: 0.35rem 0.5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, .word { text-align: left; }
thead th { font-weight: 600; vertical-align: bottom; white-space: normal; border-bottom: 2px solid var(--ink); }
thead tr:not(:last-child) th { border-bottom: 1px solid var(--line); text-align: center; }
tbody th { font-weight: 500; }
th[scope="row"]:first-child, thead tr:last-child th:first-child { position: sticky; left: 0; background: var(--paper); }
th[scope="rowgroup"] { background: var(--band); font-weight: 600; }
tbody tr:hover td { background: var(--band); }
section > .scroll:last-child { margin-bottom: 0; }
.wrap { white-space: normal; min-width: 12rem; }

figure { margin: 0; }
figcaption { color: var(--soft); font-size: 0.9rem; margin-top: 0.5rem; }
.chart { margin: 0 0 2.25rem; }
.card {
  background: #fff; border: 1px solid var(--line); border-radius: 8px; padding: 0.75rem; max-width: 58rem;
  overflow-x: auto;
}
.card svg, .card img { display: block; width: 100%; min-width: 38rem; height: auto; }

.legend { display: flex; flex-wrap: wrap; gap: 0.3rem 1.1rem; }
.legend span { display: inline-flex; align-items: center; gap: 0.5rem; }
.legend i { flex: none; width: 1.6rem; height: 0.35rem; border-radius: 2px; print-color-adjust: exact; }
.legend .flown { background: #0072b2; }
.legend .gold { background: #e69f00; }
.legend .ring { width: 1.1rem; height: 1.1rem; border: 2px solid var(--ink); border-radius: 50%; }
.legend .start {
  width: 1.1rem; height: 1.1rem; background: var(--ink); clip-path: polygon(50% 0, 90% 100%, 50% 75%, 10% 100%);
}
.legend .belief {
  width: 1.1rem; height: 1.1rem;
  background: linear-gradient(45deg, transparent 42%, #cc79a7 42% 58%, transparent 58%),
    linear-gradient(-45deg, transparent 42%, #cc79a7 42% 58%, transparent 58%);
}
article { border-top: 1px solid var(--line); padding-top: 0.25rem; margin-bottom: 2rem; }
.words {
  margin: 0 0 0.25rem; padding-left: 0.9rem; border-left: 4px solid #e69f00; font-size: 1.1rem; max-width: 46rem;
  overflow-wrap: anywhere;
}
.id { color: var(--soft); font-size: 0.85rem; margin: 0.3rem 0 0.8rem; }
.flights { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(13rem, 45%), 1fr)); gap: 1rem; }
.flights img { display: block; width: 100%; height: auto; border-radius: 6px; }
.flights figcaption { color: var(--ink); font-size: 0.85rem; line-height: 1.45; }
.yes { color: var(--yes); white-space: nowrap; }
.no { color: var(--no); white-space: nowrap; }

@media print {
  :root { --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --band: #eee; --link: #000; }
  nav, .skip { display: none; }
  .scroll, .card { overflow: visible; }
  .card { border: 0; padding: 0; }
  .card svg, .card img { min-width: 0; }
  table { font-size: 0.7rem; }
  figure, article, tr { break-inside: avoid; }
  h2, h3, h4 { break-after: avoid; }
}
"""
