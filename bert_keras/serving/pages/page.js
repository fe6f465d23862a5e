// One instrument for each kind of answer. A user's text enters the page as text, never as HTML.
"use strict";
const get = (id) => document.getElementById(id);
let language = navigator.language.startsWith("zh") ? "zh" : "en";
let models = [];
const say = (key) => WORDS[language][key] ?? key;
const model = () => models[get("model").selectedIndex];

function element(name, text, classes, parent) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (classes) made.className = classes;
  if (parent) parent.append(made);
  return made;
}

function speak() {
  document.documentElement.lang = language;
  for (const each of document.querySelectorAll("[data-says]")) each.textContent = say(each.dataset.says);
  get("language").textContent = say("other");
  if (model()) get("hint").textContent = say(model().method).replace("{mask}", model().mask);
}

// The fields of a method; those of one row a line have a list.
function fields() {
  return model().method === "embed" ? ["texts"] : model().fields;
}

function showFields() {
  get("fields").replaceChildren();
  get("answers").replaceChildren();
  get("pieces").replaceChildren();
  for (const name of fields()) {
    const label = element("label", undefined, "", get("fields"));
    element("span", say(name), "", label).dataset.says = name;
    const area = element("textarea", undefined, "", label);
    area.name = name;
    area.rows = ["context", "texts", "choices"].includes(name) ? 5 : 2;
    area.value = model().mask && name === "text" ? `She opened the ${model().mask} and went in.` : EXAMPLES[name];
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) get("form").requestSubmit();
    });
  }
  speak();
}

function rows() {
  const value = (name) => get("form").elements[name].value;
  const lines = (name) => value(name).split("\n").filter((line) => line.trim());
  if (model().method === "embed") return lines("texts").map((line) => [line]);
  if (model().method === "choose") return [[value("context"), ...lines("choices")]];
  return [fields().map(value)];
}

async function post(path, body) {
  const response = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function bar(parent, name, share, chosen) {
  const row = element("div", undefined, chosen ? "bar chosen" : "bar", parent);
  element("span", name, "name", row);
  const track = element("span", undefined, "track", row);
  element("span", undefined, "fill", track).style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  element("span", share.toFixed(3), "share", row);
}

// A text with marks: [{start, end, name, strength}], places in code points as the server counts.
function marked(parent, text, marks) {
  const letters = Array.from(text);
  const box = element("p", undefined, "marked", parent);
  let place = 0;
  for (const mark of [...marks].sort((a, b) => a.start - b.start)) {
    if (mark.start < place) continue;
    box.append(letters.slice(place, mark.start).join(""));
    const span = element("mark", letters.slice(mark.start, mark.end).join(""), `kind${mark.kind ?? 0}`, box);
    if (mark.name) element("small", ` ${mark.name}`, "", span);
    place = mark.end;
  }
  box.append(letters.slice(place).join(""));
}

const INSTRUMENTS = {
  fill_mask(box, [masks]) {
    for (const mask of masks) {
      const group = element("div", undefined, "group", box);
      mask.forEach(([token, share], place) => bar(group, token, share, place === 0));
    }
  },
  classify(box, [found]) {
    const shares = Object.entries(found.probabilities ?? { score: found.score });
    const chosen = new Set(found.labels ?? [String(found.label)]);
    for (const [name, share] of shares.sort((a, b) => b[1] - a[1])) bar(box, name, share, chosen.has(name));
  },
  tag(box, [found]) {
    const kinds = [...new Set(found.entities.map((each) => each.type))];
    const marks = found.entities.map((each) => ({ ...each, name: each.type, kind: kinds.indexOf(each.type) % 6 }));
    marked(box, found.text, marks);
    if (!marks.length) element("p", found.words.map(([word, tag]) => `${word}/${tag}`).join(" "), "", box);
  },
  answer(box, [found], [[, context]]) {
    const best = found.filter((each) => each.start !== null);
    marked(box, context, best.slice(0, 1).map((each) => ({ ...each, kind: 0 })));
    found.forEach((each, place) => bar(box, each.answer || say("noAnswer"), each.probability, place === 0));
  },
  choose(box, [found], [[, ...choices]]) {
    choices.forEach((choice, place) => bar(box, choice, found.probabilities[place], place === found.index));
  },
  is_next(box, [found]) {
    bar(box, say("follows"), found.probability, found.is_next);
    bar(box, say("random"), 1 - found.probability, !found.is_next);
  },
  is_replaced(box, [found]) {
    const line = element("p", undefined, "marked", box);
    for (const each of found) {
      const piece = element(each.probability > 0.5 ? "mark" : "span", each.token, "", line);
      piece.title = each.probability.toFixed(3);
      line.append(" ");
    }
  },
  embed(box, vectors, given) {
    const unit = vectors.map((vector) => {
      const length = Math.hypot(...vector) || 1;
      return vector.map((x) => x / length);
    });
    const table = element("table", undefined, "map", box);
    unit.forEach((vector, row) => {
      const line = element("tr", undefined, "", table);
      element("th", given[row][0], "", line).scope = "row";
      for (const other of unit) {
        const cosine = vector.reduce((sum, x, place) => sum + x * other[place], 0);
        const cell = element("td", cosine.toFixed(2), "", line);
        cell.style.setProperty("--share", Math.max(0, cosine));
      }
    });
  },
};

async function ask(event) {
  event.preventDefault();
  const box = get("answers"), { name, method } = model(), given = rows();
  box.replaceChildren(element("p", say("waiting")));
  get("ask").disabled = true;
  try {
    const wanted = ["fill_mask", "answer"].includes(method) ? { top_k: 5 } : {};
    const found = await post(`/answers/${encodeURIComponent(name)}`, { rows: given, ...wanted });
    box.replaceChildren();
    INSTRUMENTS[method](box, found, given);
    await showTokens(name, given);
  } catch (error) {
    box.replaceChildren(element("p", error.message, "error"));
  } finally {
    get("ask").disabled = false;
  }
}

async function showTokens(name, given) {
  const found = await post(`/tokens/${encodeURIComponent(name)}`, { inputs: given.flat() });
  get("pieces").replaceChildren();
  for (const text of found) {
    const line = element("p", undefined, "pieces", get("pieces"));
    for (const token of text) {
      const piece = element("span", token.text, token.special ? "special" : "", line);
      element("small", token.id, "", piece);
    }
  }
}

async function begin() {
  models = await (await fetch("/answers")).json();
  for (const each of models) element("option", `${each.name} (${each.method})`, "", get("model"));
  get("model").addEventListener("change", showFields);
  get("form").addEventListener("submit", ask);
  get("language").addEventListener("click", () => {
    language = language === "en" ? "zh" : "en";
    speak();
  });
  showFields();
}

begin();
