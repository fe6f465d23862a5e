// One instrument for each kind of answer. A user's text enters the page as text, never as HTML.
"use strict";

function bar(parent, name, share, chosen, shown = share) {
  const row = element("div", undefined, chosen ? "bar chosen" : "bar", parent);
  element("span", name, "name", row);
  const track = element("span", undefined, "track", row);
  element("span", undefined, "fill", track).style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  element("span", shown.toFixed(3), "share", row);
}

// A table of the similarity of each pair of texts.
function likeness(box, given, alike) {
  const table = element("table", undefined, "map", box);
  given.forEach(([text], row) => {
    const line = element("tr", undefined, "", table);
    element("th", text, "", line).scope = "row";
    given.forEach((_, column) => {
      const value = alike(row, column);
      element("td", value.toFixed(2), "", line).style.setProperty("--share", Math.max(0, value));
    });
  });
}

const product = (one, other) => one.reduce((sum, x, place) => sum + x * other[place], 0);

// How similar two vectors are, by the name of the model's similarity; see answers/similarity.py.
const SIMILARITIES = {
  dot: product,
  cosine: (one, other) => product(one, other) / (Math.sqrt(product(one, one) * product(other, other)) || 1),
  euclidean: (one, other) => -Math.hypot(...one.map((x, place) => x - other[place])),
  manhattan: (one, other) => -one.reduce((sum, x, place) => sum + Math.abs(x - other[place]), 0),
};

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
    const shares = Object.entries(found.probabilities ?? found.scores ?? { score: found.score });
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
    const similar = SIMILARITIES[model().similarity ?? "cosine"];
    likeness(box, given, (row, column) => similar(vectors[row], vectors[column]));
  },
  token_weights(box, [found]) {
    const largest = found.length ? found[0][1] : 1;
    for (const [token, weight] of found.slice(0, 40)) bar(box, token, weight / largest, false, weight);
  },
  // MaxSim, divided by the number of tokens of the text on the left.
  token_vectors(box, texts, given) {
    likeness(box, given, (row, column) => {
      const best = texts[row].map((token) => Math.max(...texts[column].map((other) => product(token, other))));
      return best.reduce((sum, x) => sum + x, 0) / (best.length || 1);
    });
  },
};
