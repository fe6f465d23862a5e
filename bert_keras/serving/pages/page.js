// The page: a model, its fields, its answer, and panels of what else it shows.
"use strict";
const get = (id) => document.getElementById(id);
let language = navigator.language.startsWith("zh") ? "zh" : "en";
let models = [];
// The last question: {name, method, rows, found, instruments}.
let question = null;
// What is drawn of it once its panel is open.
const PANELS = { tokens: showTokens, saliency: showSaliency, attention: showAttention };
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

// The fields of a method; those of one row a line have a list, and a classifier takes pairs too.
function fields() {
  const own = { embed: ["texts"], token_vectors: ["texts"], classify: ["text", "pair"] };
  return own[model().method] ?? model().fields;
}

function showFields() {
  get("fields").replaceChildren();
  get("answers").replaceChildren();
  question = null;
  for (const name of Object.keys(PANELS)) {
    get(name).hidden = name !== "tokens" && !(name in model().instruments);
    get(name).querySelector("div").replaceChildren();
  }
  showSearch(model());
  for (const name of fields()) {
    const label = element("label", undefined, "", get("fields"));
    element("span", say(name), "", label).dataset.says = name;
    const area = element("textarea", undefined, "", label);
    area.name = name;
    area.rows = ["context", "texts", "choices"].includes(name) ? 5 : 2;
    const example = EXAMPLES[model().method] ?? EXAMPLES[name];
    area.value = model().mask ? `She opened the ${model().mask} and went in.` : example;
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) get("form").requestSubmit();
    });
  }
  speak();
}

function rows() {
  const value = (name) => get("form").elements[name].value;
  const lines = (name) => value(name).split("\n").filter((line) => line.trim());
  if (["embed", "token_vectors"].includes(model().method)) return lines("texts").map((line) => [line]);
  if (model().method === "choose") return [[value("context"), ...lines("choices")]];
  if (model().method === "classify" && !value("pair")) return [[value("text")]];
  return [fields().map(value)];
}

async function post(path, body) {
  const response = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (response.ok) return answer;
  const error = new Error(answer.error.message ?? answer.error);
  error.wait = response.status === 429 ? Number(response.headers.get("Retry-After")) : null;
  throw error;
}

async function ask(event) {
  event.preventDefault();
  const box = get("answers"), { name, method, instruments } = model(), given = rows();
  box.replaceChildren(element("p", say("waiting")));
  get("ask").disabled = true;
  try {
    const wanted = ["fill_mask", "answer"].includes(method) ? { top_k: 5 } : {};
    const found = await post(`/answers/${encodeURIComponent(name)}`, { rows: given, ...wanted });
    if (name !== model().name) return;
    box.replaceChildren();
    INSTRUMENTS[method](box, found, given);
    question = { name, method, rows: given, found, instruments };
    for (const panel of Object.keys(PANELS)) draw(panel);
  } catch (error) {
    box.replaceChildren(element("p", error.message, "error"));
  } finally {
    get("ask").disabled = false;
  }
}

// Draws a panel that is open, unless it shows the last question already.
async function draw(name) {
  const panel = get(name), box = panel.querySelector("div"), mine = question;
  if (!panel.open || panel.hidden || !mine || box.question === mine) return;
  box.question = mine;
  box.replaceChildren(element("p", say("waiting")));
  const drawn = element("div");
  try {
    await PANELS[name](drawn, mine);
  } catch (error) {
    element("p", error.message, "error", drawn);
  }
  if (question === mine) box.replaceChildren(drawn);
}

async function showTokens(box, { name, rows: given }) {
  const found = await post(`/tokens/${encodeURIComponent(name)}`, { inputs: given.flat() });
  for (const text of found) {
    const line = element("p", undefined, "pieces", box);
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
  for (const name of Object.keys(PANELS)) get(name).addEventListener("toggle", () => draw(name));
  beginSearch();
  get("language").addEventListener("click", () => {
    language = language === "en" ? "zh" : "en";
    speak();
  });
  showFields();
}

begin();
