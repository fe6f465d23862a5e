// The lines of a file that are nearest to a text. The file stays in the browser, the vectors too.
"use strict";
const AT_ONCE = 32, MOST_LINES = 10000, MOST_MEGABYTES = 32, NEAREST = 10;
// What is searched: {name, lines: [{number, text}], vectors}.
let searched = null;

function showSearch({ method }) {
  get("search").hidden = method !== "embed";
  searched = null;
  get("file").value = "";
  get("find").disabled = true;
  for (const id of ["read", "nearest"]) get(id).replaceChildren();
}

function beginSearch() {
  get("file").addEventListener("change", () => readFile().catch(tellSearch));
  get("searching").addEventListener("submit", (event) => {
    event.preventDefault();
    if (searched) find(searched).catch(tellSearch);
  });
}

function tellSearch(error) {
  get("nearest").replaceChildren(element("p", error.message, "error"));
}

// Where the server is busy it is asked again.
async function vectorsOf(name, texts) {
  for (;;) {
    try {
      const vectors = await post(`/answers/${encodeURIComponent(name)}`, { rows: texts });
      return vectors.map((vector) => Float32Array.from(vector));
    } catch (error) {
      if (!error.wait) throw error;
      await new Promise((done) => setTimeout(done, 1000 * error.wait));
    }
  }
}

async function readFile() {
  const [file] = get("file").files, { name } = model();
  get("find").disabled = true;
  get("nearest").replaceChildren();
  const mine = (searched = { name, lines: [], vectors: [] });
  if (!file) return;
  if (file.size > MOST_MEGABYTES * 2 ** 20) throw new Error(filled("tooLarge", { most: MOST_MEGABYTES }));
  const all = (await file.text()).split(/\r?\n/).map((text, place) => ({ number: place + 1, text }));
  const lines = all.filter(({ text }) => text.trim());
  mine.lines = lines.slice(0, MOST_LINES);
  const note = lines.length > MOST_LINES ? ` ${filled("onlyFirst", { most: MOST_LINES })}` : "";
  while (mine.vectors.length < mine.lines.length) {
    const next = mine.lines.slice(mine.vectors.length, mine.vectors.length + AT_ONCE);
    const found = await vectorsOf(name, next.map(({ text }) => text));
    if (searched !== mine) return;
    mine.vectors.push(...found);
    get("read").textContent = filled("reading", { done: mine.vectors.length, all: mine.lines.length }) + note;
  }
  get("find").disabled = !mine.lines.length;
}

async function find(mine) {
  const [wanted] = await vectorsOf(mine.name, [get("query").value]);
  if (searched !== mine) return;
  const name = model().similarity ?? "cosine", similar = SIMILARITIES[name];
  const values = mine.vectors.map((vector) => similar(wanted, vector));
  const order = mine.lines.map((_, place) => place).sort((a, b) => values[b] - values[a]).slice(0, NEAREST);
  const least = values[order.at(-1)], most = values[order[0]];
  get("nearest").replaceChildren();
  order.forEach((place, rank) => {
    const { number, text } = mine.lines[place];
    // Only cosines are shares of 1.
    const share = name === "cosine" ? values[place] : (values[place] - least) / (most - least || 1);
    bar(get("nearest"), `${number}: ${text}`, share, rank === 0, values[place]);
  });
}
