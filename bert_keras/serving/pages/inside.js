// What a model shows of its inside: words that speak for a label, and attention between tokens.
"use strict";
const SVG = "http://www.w3.org/2000/svg", ROW = 26;

// The text or the pair that is looked into: of choices the best, of a list the first.
function lookedAt({ method, rows: [row], found: [first] }) {
  return method === "choose" ? [row[0], row[1 + first.index]] : row;
}

// A select of texts, or of [key, ] of words that the page translates.
function choice(parent, key, options) {
  const label = element("label", undefined, "", parent);
  element("span", say(key), "", label).dataset.says = key;
  const made = element("select", undefined, "", label);
  made.name = key;
  for (const text of options) element("option", text, "", made);
  return made;
}

// Shows something again when a choice changes; what goes wrong is told in its place.
function showsAgain(choices, told, show) {
  for (const each of choices) {
    each.addEventListener("change", () => show().catch((error) => {
      delete told.dataset.says;
      told.textContent = error.message;
    }));
  }
}

function filled(key, values) {
  return say(key).replace(/\{(\w+)\}/g, (all, name) => values[name]);
}

async function showSaliency(box, question) {
  const { labels } = question.instruments.saliency, [first] = question.found;
  const label = choice(box, "label", labels);
  label.value = String(first.label ?? first.labels?.[0] ?? labels[0]);
  const line = element("p", undefined, "pieces words", box), told = element("p", undefined, "told", box);
  async function show() {
    const wanted = { row: lookedAt(question), target: label.value };
    const found = await post(`/saliency/${encodeURIComponent(question.name)}`, wanted);
    if (found.target !== label.value) return;
    const most = Math.max(...found.words.map((word) => Math.abs(word.score))) || 1;
    line.replaceChildren();
    for (const { text, score } of found.words) {
      const word = element("span", text, score < 0 ? "against" : "for", line);
      word.style.setProperty("--share", Math.abs(score) / most);
      element("small", (score > 0 ? "+" : "") + score.toFixed(2), "", word);
    }
    told.textContent = filled("moved", { from: found.baseline_logit.toFixed(2), to: found.logit.toFixed(2) });
  }
  showsAgain([label], told, show);
  await show();
}

async function showAttention(box, question) {
  const { layers, heads } = question.instruments.attention;
  const numbers = (count) => Array.from({ length: count }, (_, place) => place + 1);
  const choices = element("div", undefined, "choices", box);
  const layer = choice(choices, "layer", numbers(layers)), head = choice(choices, "head", ["", ...numbers(heads)]);
  head.options[0].dataset.says = "mean";
  head.options[0].textContent = say("mean");
  const told = element("p", say("point"), "told", box), picture = element("div", undefined, "looks", box);
  told.dataset.says = "point";
  told.setAttribute("aria-live", "polite");
  async function show() {
    const at = [layer.selectedIndex, head.selectedIndex];
    const wanted = { row: lookedAt(question), layer: at[0], head: at[1] ? at[1] - 1 : null };
    const found = await post(`/attention/${encodeURIComponent(question.name)}`, wanted);
    if (at[0] === layer.selectedIndex && at[1] === head.selectedIndex) drawLooks(picture, told, found);
  }
  showsAgain([layer, head], told, show);
  await show();
}

// Tokens on the left look at tokens on the right: the one that is pointed at, or each at its three most.
function drawLooks(picture, told, { tokens, weights }) {
  const from = element("div"), lines = document.createElementNS(SVG, "svg"), to = element("div");
  picture.replaceChildren(from, lines, to);
  lines.setAttribute("viewBox", `0 0 100 ${tokens.length * ROW}`);
  lines.setAttribute("preserveAspectRatio", "none");
  lines.style.height = `${tokens.length * ROW}px`;
  const most = Math.max(...weights.map((row) => Math.max(...row)));
  const others = tokens.map((token) => element("span", token, "", to));

  function look(at) {
    lines.replaceChildren();
    weights.forEach((row, place) => {
      if (at !== null && place !== at) return;
      const least = at === null ? [...row].sort((a, b) => b - a)[Math.min(2, row.length - 1)] : 0;
      row.forEach((weight, other) => {
        if (weight < least) return;
        const line = document.createElementNS(SVG, "line");
        const ends = { x1: 0, y1: (place + 0.5) * ROW, x2: 100, y2: (other + 0.5) * ROW };
        for (const [name, value] of Object.entries({ ...ends, "stroke-opacity": weight / most })) line.setAttribute(name, value);
        lines.append(line);
      });
    });
    others.forEach((other, place) => other.style.setProperty("--share", at === null ? 0 : weights[at][place] / most));
    if (at === null) return;
    const ranked = weights[at].map((weight, place) => [weight, tokens[place]]).sort((a, b) => b[0] - a[0]);
    const named = ranked.slice(0, 5).map(([weight, token]) => `${token} ${weight.toFixed(2)}`).join(" · ");
    delete told.dataset.says;
    told.textContent = filled("looks", { token: tokens[at], others: named });
  }
  tokens.forEach((token, place) => {
    const made = element("button", token, "", from);
    made.type = "button";
    for (const event of ["pointerenter", "focus", "click"]) made.addEventListener(event, () => look(place));
  });
  picture.onpointerleave = () => look(null);
  look(null);
}
