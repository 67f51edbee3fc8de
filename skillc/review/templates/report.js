"use strict";
const index = JSON.parse(document.getElementById("index").textContent);

// ---- tables: a button in a head sorts its column; the order of equal rows stays
for (const button of document.querySelectorAll("th button[data-sort]")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), body = head.closest("table").tBodies[0];
    const column = [...head.parentNode.children].indexOf(head);
    const numbers = button.dataset.sort === "number";
    const down = head.getAttribute("aria-sort") === (numbers ? null : "ascending") || head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => {
      const cell = row.children[column], text = cell.dataset.value ?? cell.textContent.trim();
      return numbers ? Number(text) || 0 : text;
    };
    const keyed = [...body.rows].map((row) => [key(row), row]);
    keyed.sort(([a], [b]) => (numbers ? a - b : a.localeCompare(b, "en", { numeric: true })) * (down ? -1 : 1));
    body.append(...keyed.map(([, row]) => row));
  });
}
for (const select of document.querySelectorAll("select[data-filter]")) {
  select.addEventListener("change", () => {
    for (const row of document.getElementById(select.dataset.filter).tBodies[0].rows) {
      row.hidden = select.value !== "" && row.dataset.fate !== select.value;
    }
  });
}

// ---- trajectories: packed, and unpacked when the first one is shown
let unpacked = null;
function rollouts() {
  unpacked ??= (async () => {
    const packed = document.getElementById("rollouts").textContent.trim();
    const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  })();
  return unpacked;
}

function element(name, text, style) {
  const made = document.createElement(name);
  made.textContent = text;
  if (style) made.className = style;
  return made;
}

const KINDS = { message: "model", call: "call", observation: "result", file: "file" };
function told(step) {
  const [kind, first, second, third] = step;
  if (kind === "message") return [second === "user" ? "user" : "model", first];
  if (kind === "call") return ["call", `${third || first} ${JSON.stringify(second)}`];
  if (kind === "file") return [`file ${second}`, third === null || third === undefined ? first : `${first}\n${third}`];
  return [second ? "error" : KINDS[kind], first];
}

function show(place, skill, found, other) {
  const name = index.skills[skill].name;
  place.replaceChildren(element("h3", name));
  if (!found) {
    place.append(element("p", "not run, or left out to keep this page small", "note"));
    return;
  }
  place.append(element("p", found.score), element("p", found.facts, "note"));
  if (found.answer) place.append(element("pre", found.answer));
  if (found.feedback) place.append(element("p", found.feedback, "note"));
  found.steps.forEach((step, i) => {
    const [kind, text] = told(step);
    const apart = other && JSON.stringify(other.steps[i]) !== JSON.stringify(step);
    const block = element("div", "", "step" + (kind === "error" ? " failed" : "") + (apart ? " apart" : ""));
    block.append(element("b", `${i + 1} · ${kind}`), document.createTextNode(text));
    place.append(block);
  });
}

const picks = ["example", "left", "right"].map((name) => document.getElementById(`pick-${name}`));
async function compare() {
  const [example, left, right] = picks.map((pick) => Number(pick.value));
  let all = null;
  try {
    all = await rollouts();
  } catch (problem) {
    document.getElementById("left").replaceChildren(element("p", `the rollouts cannot be unpacked here: ${problem}`));
    return;
  }
  const shown = all.examples[example];
  document.getElementById("example").replaceChildren(
    element("p", `${shown.split}: ${shown.text}`, "text"),
    element("p", shown.gold ? `right answer: ${shown.gold}` : "", "note"),
  );
  const of = (skill) => {
    const at = all.places[`${skill} ${example}`];
    return at === undefined ? null : all.rollouts[at];
  };
  show(document.getElementById("left"), left, of(left), of(right));
  show(document.getElementById("right"), right, of(right), of(left));
}

if (picks[0]) {
  const fill = (pick, names, chosen) => {
    pick.append(...names.map((name, i) => new Option(name, String(i), i === chosen, i === chosen)));
    pick.addEventListener("change", compare);
  };
  fill(picks[0], index.examples.map((each) => each.name), index.first);
  fill(picks[1], index.skills.map((each) => each.name), index.left);
  fill(picks[2], index.skills.map((each) => each.name), index.right);
  for (const button of document.querySelectorAll("button[data-example]")) {
    button.addEventListener("click", () => {
      picks[0].value = button.dataset.example;
      compare();
      document.getElementById("compare").scrollIntoView();
      picks[0].focus({ preventScroll: true });
    });
  }
  compare();
}
