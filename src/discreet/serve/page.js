"use strict";
// All that comes from the server goes into the page as text; nothing is ever read as HTML.
const WITHIN = 1.96, SHOWN = 24, UNCLEAR = "not clear of the noise";
const NO_ERRORS = "the file was made without second moments, which a ± is computed from";
const KINDS = {
  memory: "A memory: it answers with an average over all rows, in which those like the question count most.",
  memories: "The memories of a model, one for each of its layers.",
  regression: "A regression: it predicts a number.",
  classifier: "A classifier: it says which class a row belongs to.",
  distances: "Sums of distances: how far a point is from everybody together.",
  corpus: "A corpus: it answers what private texts say, by topics that were public before.",
};
const at = (id) => document.getElementById(id);
let token = "", releases = [], chosen = null, newest = 0;

function make(tag, text, attributes = {}, ...children) {
  const made = document.createElement(tag);
  if (text !== null && text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function say(text) {
  at("said").textContent = text || "";
  at("said").hidden = !text;
}

async function call(path, fields) {
  const headers = token ? {authorization: `Bearer ${token}`} : {};
  const asked = fields === undefined ? {headers} : {
    method: "POST", headers: {...headers, "content-type": "application/json"}, body: JSON.stringify(fields),
  };
  const response = await fetch(path, asked).catch(() => null);
  if (response === null) throw new Error("The server does not answer.");
  const found = await response.json().catch(() => ({error: "The server gave no answer that can be read."}));
  if (response.status === 401) at("entry").hidden = false;
  if (!response.ok) throw new Error(found.error);
  return found;
}

async function begin() {
  try {
    releases = (await call("v1")).releases;
  } catch (error) {
    const first = !token && !at("entry").hidden;
    say(first ? "" : error.message);
    if (!at("entry").hidden) at("token").focus();
    return;
  }
  at("entry").hidden = true;
  say("");
  at("names").replaceChildren(...releases.map(({name}) => make("a", name, {href: `#${name}`})));
  at("names").hidden = releases.length < 2;
  await choose();
}

async function choose() {
  const name = location.hash.slice(1); // names need no quoting
  chosen = releases.find((each) => each.name === name) || releases[0];
  if (!chosen) return;
  const turn = ++newest;
  for (const each of at("names").children) {
    if (each.textContent === chosen.name) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  at("title").textContent = chosen.name;
  at("what").textContent = KINDS[chosen.kind] || "";
  at("answer").replaceChildren();
  at("topics").replaceChildren();
  at("again").hidden = true;
  say([chosen.private ? "" : "NOT PRIVATE: this file was made for a test, and protects nobody.",
    chosen.problem || ""].filter(Boolean).join(" "));
  at("question").replaceChildren(...questions(chosen));
  at("release").hidden = false;
  try {
    const card = await call(`v1/${chosen.name}/card`);
    if (turn === newest) showCard(card);
    if (chosen.kind !== "corpus") return;
    const topics = await call(`v1/${chosen.name}/topics`);
    if (turn === newest) showTopics(topics);
  } catch (error) { say(error.message); }
}

function showCard(card) {
  const unit = card.guarantee.unit;
  at("promise").replaceChildren(
    make("p", `The promise: take any one ${unit} of the data. Without it, all answers here would look much `
      + "the same, whatever is asked, however often, and whatever else somebody knows. The next line says how much the same."),
    make("p", `In numbers: ${card.for_one_person}.`),
    make("p", card.guarantee.in_words, {class: "quiet"}));
  const data = card.lines.find((line) => line.title === "stated: data");
  if (data) at("what").append(make("br"), data.text, " ", make("em", "stated by the builder", {class: "stated"}));
  if (card.leaks.length) at("promise").prepend(make("p", "Taken from the rows without noise, which the promise "
    + `does not cover: ${card.leaks.join(", ")}.`, {class: "alarm"}));
  at("card").replaceChildren(...card.lines.map((line) => {
    const text = make("span", line.text);
    if (line.stated) text.append(" ", make("em", "stated by the builder", {class: "stated"}));
    const summary = make("summary", null, {}, make("b", line.title), " ", text);
    return make("div", null, {class: "line"},
      make("details", null, {}, summary, make("p", line.meaning)),
      make("p", line.meaning, {class: "aside", "aria-hidden": "true"}));
  }));
}

// --- questions -----------------------------------------------------------------------------------

function questions(about) {
  const button = make("button", "Ask", {type: "submit"});
  if (about.kind === "corpus") return ofTexts(about, button);
  if (about.columns) return [make("label", "A row to ask about"), hint("What is left empty is missing."),
    make("div", null, {class: "fields"}, ...about.columns.map(column)), button];
  const area = make("textarea", null, {id: "numbers", spellcheck: "false", autocomplete: "off", "aria-describedby": "of"});
  const examples = about.examples || [];
  const shape = (about.heads || []).length ? ` As JSON: shape (${about.heads.join(", ")}, m, ${about.key_dim}).` : "";
  const numbers = hint(`${about.key_dim} numbers, with commas or blanks between; several questions, one a line.${shape}`);
  numbers.id = "of";
  const label = make("label", "Numbers to ask about", {for: "numbers"});
  const member = about.members > 1 ? [make("label", `Which of its ${about.members} memories, from 0 on`, {for: "member"}),
    make("div", null, {class: "field"}, make("input", null,
      {id: "member", type: "number", min: "0", max: `${about.members - 1}`, value: "0", required: ""}))] : [];
  if (!examples.length) return [...member, label, numbers, area, button];
  const select = make("select", null, {id: "example"},
    ...examples.map((each, place) => make("option", each.name, {value: place})));
  const fill = () => { area.value = examples[select.value].query.join(", "); };
  select.addEventListener("change", fill);
  fill();
  return [...member, make("label", "A public example", {for: "example"}),
    make("div", null, {class: "field examples"}, select), label, numbers, area, button];
}

function hint(text) { return make("p", text, {class: "quiet"}); }

function ofTexts(about, button) {
  if (about.takes_words) return [make("label", "A question, or any text, in words", {for: "words"}),
    hint("It is compared with public topics; nobody's text is looked at."),
    make("div", null, {class: "field"},
      make("input", null, {id: "words", type: "text", autocomplete: "off", maxlength: "2000", required: ""}), button)];
  const missing = "Typed questions need the corpus' encoder, which this server does not have.";
  if (!about.topics) return [hint(`${missing} All names that were found are below.`)];
  return [make("label", "A topic", {for: "topic"}), hint(`${missing} Pick a topic.`),
    make("div", null, {class: "field"}, make("select", null, {id: "topic"}), button)];
}

function column({name, holds}, place) {
  const id = `column${place}`;
  const label = make("label", name, {for: id});
  if (Array.isArray(holds)) {
    const options = ["", ...holds].map((each) => make("option", each === "" ? "(missing)" : each, {value: JSON.stringify(each)}));
    return make("div", null, {}, label, make("select", null, {id, "data-name": name}, ...options));
  }
  const dated = holds && holds.first, range = holds && holds.range;
  const between = range ? `${range[0]} to ${range[1]}` : dated ? `${holds.first} to ${holds.last}` : "";
  const text = dated || holds === "private categories";
  const attributes = {id, "data-name": name, placeholder: between, autocomplete: "off"};
  Object.assign(attributes, text ? {type: "text", "data-text": ""} : {type: "number", step: "any"});
  return make("div", null, {}, label, make("input", null, attributes));
}

function fieldsOf(about) {
  if (about.kind === "corpus") return at("words") ? {question: at("words").value} : {topic: at("topic").value};
  if (about.columns) {
    const row = {};
    for (const each of at("question").querySelectorAll("[data-name]")) {
      if (each.tagName === "SELECT") row[each.dataset.name] = JSON.parse(each.value) === "" ? null : JSON.parse(each.value);
      else if (each.value === "") row[each.dataset.name] = null;
      else row[each.dataset.name] = "text" in each.dataset ? each.value : Number(each.value);
    }
    return {rows: [row]};
  }
  const typed = at("numbers").value.trim(), member = at("member") ? {member: Number(at("member").value)} : {};
  if (typed.startsWith("[")) {
    try { return {queries: shaped(JSON.parse(typed), about), ...member}; } catch { throw new Error("Expected numbers, or lists of them as JSON."); }
  }
  const rows = typed.split("\n").filter((line) => line.trim());
  const queries = rows.map((line) => line.split(/[\s,;]+/).filter(Boolean).map(Number));
  if (!queries.length || queries.flat().some((each) => !Number.isFinite(each))) throw new Error("Expected numbers, such as 0.5, -0.25.");
  return {queries, ...member};
}

// Lists as they were typed; of a classifier, whose answers are shown one below the other, a list of rows.
function shaped(queries, about) {
  if (about.kind !== "classifier") return queries;
  let rows = queries;
  while (Array.isArray(rows[0]) && Array.isArray(rows[0][0])) rows = rows.flat();
  return Array.isArray(rows[0]) ? rows : [rows];
}

async function ask(event) {
  event.preventDefault();
  const button = at("question").querySelector("button"), about = chosen, turn = newest;
  if (button.ariaDisabled === "true") return;
  say("");
  button.ariaDisabled = "true"; // and not disabled, which would take the focus from it
  try {
    const fields = fieldsOf(about), path = `v1/${about.name}/${about.verb}`;
    const found = await call(path, fields);
    if (turn !== newest) return;
    at("answer").replaceChildren(...answer(about, found));
    showCurl(new URL(path, location.href).href, fields);
  } catch (error) {
    at("answer").replaceChildren();
    at("again").hidden = true;
    say(error.message);
    at("said").scrollIntoView({block: "nearest"}); // on a phone the form is a page below
  } finally { button.ariaDisabled = "false"; }
}

function showCurl(address, fields) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const secret = token ? " \\\n  -H \"authorization: Bearer $TOKEN\"" : "";
  at("curl").textContent = `curl ${quoted(address)} -H 'content-type: application/json'${secret} \\\n  -d ${quoted(JSON.stringify(fields))}`;
  at("again").hidden = false;
  at("copy").textContent = "Copy";
}

// --- answers -------------------------------------------------------------------------------------

function figure(number, error) {
  if (error === null || error === undefined) return Number(number.toPrecision(4)).toString();
  const digits = Math.min(Math.max(1 - Math.floor(Math.log10(error || 1e-12)), 0), 8);
  return `${number.toFixed(digits)} ± ${error.toFixed(digits)}`;
}

// A line of a list: a name, a bar from low to high of [least, most] around its value, and figures.
function bar({name, value, low, high, said, clear, more}, least, most) {
  const place = (number) => `${100 * Math.min(Math.max((number - least) / (most - least || 1), 0), 1)}%`;
  const part = (kind, from, to) => {
    const span = make("span", null, {class: kind});
    span.style.left = place(from);
    if (to !== undefined) span.style.right = `calc(100% - ${place(to)})`;
    return span;
  };
  const drawn = make("div", null, {class: "bar", "aria-hidden": "true"}, part("noise", low, high),
    part("value", Math.min(0, value), Math.max(0, value)), part("noise", Math.max(low, Math.min(value, 0)), high), part("tip", value));
  drawn.children[2].style.opacity = ".6";
  if (least < 0) drawn.append(part("zero", 0));
  const line = make("li", null, clear ? {} : {class: "dim"}, make("bdi", name, {class: "name"}), drawn, make("span", said, {class: "figure"}));
  if (!clear || more) line.append(make("span", clear ? more : UNCLEAR, {class: "besides"}));
  return line;
}

function bars(lines, {least, most} = {}) {
  const low = least ?? Math.min(0, ...lines.map((each) => each.low));
  const high = most ?? Math.max(0, ...lines.map((each) => each.high));
  return make("ul", null, {class: "bars"}, ...lines.map((each) => bar(each, low, high)));
}

function number(name, value, stderr) {
  const known = stderr !== null && stderr !== undefined, error = known ? WITHIN * stderr : 0;
  return {name, value, low: value - error, high: value + error, said: figure(value, known ? error : null),
    clear: !known || Math.abs(value) >= error};
}

function answer(about, found) {
  const heading = make("h3", "The answer");
  if (about.kind === "corpus") return [heading, ...ofCorpus(found.answers)];
  if (found.probabilities && found.classes) return [heading, ...ofClasses(found)];
  const values = [found.answers].flat(Infinity), errors = found.stderr ? [found.stderr].flat(Infinity) : [];
  if (typeof values[0] !== "number") return [heading, make("p", values.join(", "), {class: "verdict"})];
  const rows = Array.isArray(found.answers[0]) ? found.answers.length : 1, width = values.length / rows;
  const name = (place) => [
    rows > 1 ? `question ${Math.floor(place / width) + 1}` : "", width > 1 ? `number ${place % width}` : "",
  ].filter(Boolean).join(", ") || "answer";
  const lines = values.slice(0, SHOWN).map((value, place) => number(name(place), value, errors[place]));
  const more = values.length > SHOWN ? [hint(`and ${values.length - SHOWN} more: curl has all.`)] : [];
  const meaning = errors.length ? "The true number lies where the bar is pale, 95 times in 100. One that is not clear of the "
    + "noise may as well be zero." : `How far the noise has moved these is not known: ${NO_ERRORS}.`;
  return [heading, bars(lines), ...more, hint(meaning)];
}

function ofClasses({answers, probabilities, classes, logits, scores, stderr}) {
  const made = [], decided = logits || scores;
  answers.forEach((label, row) => {
    // Of the odds of a class against the rest: at most √2 of one logit's error, whatever the rest are.
    const error = stderr ? WITHIN * Math.SQRT2 * Math.max(...stderr[row]) : null;
    const ofOdds = (p, by) => p <= 0 || p >= 1 ? p : 1 / (1 + Math.exp(-Math.log(p / (1 - p)) - by));
    // Scores of least squares are probabilities, but for a constant.
    const moved = logits ? ofOdds : (p, by) => Math.min(Math.max(p + by / Math.SQRT2, 0), 1);
    const lines = classes.map((name, place) => {
      const value = probabilities[row][place];
      const low = error === null ? value : moved(value, -error), high = error === null ? value : moved(value, error);
      const percent = (p) => `${(100 * p).toFixed(1)}%`;
      return {name: String(name), value, low, high, clear: true,
        said: error === null ? percent(value) : `${percent(value)} (${percent(low)} to ${percent(high)})`};
    }).sort((one, other) => other.value - one.value);
    const best = decided ? [...decided[row]].sort((one, other) => other - one) : [];
    const close = error !== null && best.length > 1 && best[0] - best[1] < error;
    made.push(make("p", close ? `${label}, ${UNCLEAR}: the next is as likely` : String(label), {class: "verdict"}),
      bars(lines.slice(0, SHOWN), {least: 0, most: 1}));
  });
  made.push(hint(stderr ? "The range is what the noise alone may have moved, 95 times in 100."
    : `How far the noise has moved these is not known: ${NO_ERRORS}.`));
  return made;
}

const count = (each) => ({name: each.name ?? each.word, value: Math.max(each.count, 0), low: Math.max(each.count - each.margin, 0),
  high: each.count + each.margin, clear: each.clear,
  said: each.clear ? `${Math.round(each.count).toLocaleString("en")} ± ${Math.round(each.margin).toLocaleString("en")}`
    : `at most ${Math.round(Math.max(each.count, 0) + each.margin).toLocaleString("en")}`});

const share = (each) => ({name: String(each.label), value: each.share, low: Math.max(each.share - each.margin, 0),
  high: Math.min(each.share + each.margin, 1), clear: each.clear,
  said: each.clear ? `${(100 * each.share).toFixed(1)}% ± ${(100 * each.margin).toFixed(1)}%`
    : `at most ${(100 * Math.min(each.share + each.margin, 1)).toFixed(1)}%`});

function ofCorpus(found) {
  const made = [];
  if (found.covered === false) made.push(make("p", "Perhaps no topic is near this question, and what follows is about something else.", {class: "note"}));
  if (found.topics.length) made.push(make("h4", "Near topics, and how many texts each has"), bars(found.topics.map(count)));
  if (found.shares.length) made.push(make("h4", "Labels of texts near it"), bars(found.shares.slice(0, SHOWN).map(share), {least: 0, most: 1}));
  if (found.words) made.push(make("p", `Typical words: ${found.words.join(", ") || "none is clear of the noise"}.`));
  if (found.facts && found.facts.length) made.push(make("h4", "Names that many texts have, the likeliest answer first (a guess)"),
    bars(found.facts.map((each) => count({...each, clear: each.count > each.margin}))));
  made.push(hint("A text counts for its nearest topic alone. The true figure lies where the bar is pale, 95 times in 100."));
  return made;
}

// What a topic's texts say, in short: the label that most of them have, and typical words.
function inShort({shares, words}) {
  const most = shares.find((each) => each.clear);
  return [most && `${most.label} ${share(most).said}`, words && words.length && `words: ${words.join(", ")}`].filter(Boolean).join("; ");
}

function showTopics({topics, names}) {
  if (at("topic")) at("topic").replaceChildren(...topics.map((each) => make("option", each.question, {value: each.question})));
  const made = [];
  const folded = (title, lines) => made.push(make("details", null, {}, make("summary", `${title} (${lines.length.toLocaleString("en")})`), bars(lines)));
  if (topics.length) folded("All topics, with counts of texts", topics.map((each) => ({...count(each.topics[0]), more: inShort(each)})));
  if (names.length) folded("All names that were found", names.map(count));
  at("topics").replaceChildren(...made);
}

at("question").addEventListener("submit", ask);
at("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("question").requestSubmit();
});
at("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value.trim();
  begin();
});
at("copy").addEventListener("click", async () => {
  try { await navigator.clipboard.writeText(at("curl").textContent); at("copy").textContent = "Copied"; }
  catch { getSelection().selectAllChildren(at("curl")); at("copy").textContent = "Selected"; }
});
addEventListener("hashchange", choose);
begin();
