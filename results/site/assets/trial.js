// A trial's page. All text comes from agents and models: it is set as text, never as markup.
"use strict";

const FOLDED = 600; // characters of an output that stand open
const MOST_ROWS = 500; // of a table of details
const $ = (id) => document.getElementById(id);

function make(tag, text, attributes = {}) {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = String(text);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function load(source) {
  return new Promise((resolve, reject) => {
    const script = make("script", null, { src: source });
    script.onload = resolve;
    script.onerror = () => reject(new Error(`cannot load ${source}`));
    document.head.append(script);
  });
}

function describe(list, pairs) {
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    list.append(make("dt", name), make("dd", value));
  }
}

function folded(text, label) {
  if (text.length <= FOLDED && text.split("\n").length <= 12) {
    return make("pre", text, { tabindex: "0", "aria-label": label });
  }
  const box = make("details");
  const first = text.slice(0, 100).split("\n")[0];
  box.append(make("summary", `${label}: ${first} ... (${text.length} characters)`));
  box.append(make("pre", text, { tabindex: "0", "aria-label": label }));
  return box;
}

function showRecord(trial) {
  const tokens = (trial.input_tokens || 0) + (trial.cache_read_tokens || 0);
  describe($("record"), [
    ["outcome", trial.outcome], ["reason", trial.reason], ["message", trial.message], ["metric", trial.headline],
    ["cost, USD", trial.cost_usd === null ? "unknown" : trial.cost_usd.toFixed(4)],
    ["agent, minutes", trial.run_agent_s === null ? null : (trial.run_agent_s / 60).toFixed(1)],
    ["input tokens", tokens], ["output tokens", trial.output_tokens], ["tries", trial.tries],
    ["agent version", trial.harness_version], ["limits", trial.limits], ["started", trial.started_at], ["run", trial.run_id],
  ]);
}

function showPictures(pictures) {
  for (const picture of pictures) {
    const figure = make("figure");
    figure.append(make("img", null, { src: picture.source, alt: picture.alt }), make("figcaption", picture.title));
    $("pictures").append(figure);
  }
  $("pictures").hidden = pictures.length === 0;
}

function plain(value) {
  return value !== null && typeof value === "object" ? JSON.stringify(value) : value;
}

function tableOf(rows, label) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const table = make("table");
  const head = table.createTHead().insertRow();
  for (const name of names) head.append(make("th", name, { scope: "col" }));
  const body = table.createTBody();
  for (const row of rows.slice(0, MOST_ROWS)) {
    const line = body.insertRow();
    for (const name of names) line.append(make("td", plain(row[name] ?? "")));
  }
  const box = make("div", null, { class: "scroll", role: "region", tabindex: "0", "aria-label": label });
  box.append(table);
  if (rows.length > MOST_ROWS) box.append(make("p", `and ${rows.length - MOST_ROWS} more`));
  return box;
}

function detailNode(name, value) {
  const rows = Array.isArray(value) && value.length > 0 && value.every((row) => row && typeof row === "object" && !Array.isArray(row));
  if (rows) return tableOf(value, name);
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    return tableOf(Object.entries(value).map(([key, inner]) => ({ name: key, value: inner })), name);
  }
  return make("p", Array.isArray(value) ? value.map(plain).join(", ") || "none" : plain(value));
}

function showVerdict(verdict) {
  if (!verdict) return;
  const list = make("dl", null, { class: "record" });
  describe(list, [["reward", verdict.reward], ["reason", verdict.reason], ["message", verdict.message], ["metric", verdict.headline]]);
  describe(list, Object.entries(verdict.metrics));
  $("verdict").append(list);
  for (const [name, value] of Object.entries(verdict.details || {})) {
    const box = make("details");
    box.append(make("summary", `gold: ${name.replaceAll("_", " ")}`), detailNode(name, value));
    $("verdict").append(box);
  }
  $("verdict").hidden = false;
}

function showSubmission(files) {
  for (const file of files) {
    $("submission").append(make("h3", file.bytes === null ? file.name : `${file.name} (${file.bytes} bytes)`));
    $("submission").append(file.text === null ? make("p", "Binary; not shown.") : folded(file.text, file.name));
  }
  $("submission").hidden = files.length === 0;
}

function showBehaviour(found) {
  if (!found) return;
  const bar = make("div", null, { class: "shares", role: "img" });
  const words = [];
  for (const [kind, share] of Object.entries(found.shares)) {
    words.push(`${kind} ${Math.round(100 * share)} %`);
    if (share > 0) bar.append(make("span", share > 0.08 ? kind : "", { class: `kind-${kind}`, "data-share": Math.round(20 * share) }));
  }
  bar.setAttribute("aria-label", `Share of steps: ${words.join(", ")}`);
  $("behaviour").append(bar, make("p", words.join(", ")));
  const list = make("dl", null, { class: "record" });
  describe(list, Object.entries(found).filter(([name]) => name !== "shares"));
  $("behaviour").append(list);
}

function stepNode(step) {
  const node = make("li", null, { class: "step", id: `step-${step.id}`, tabindex: "-1", "data-kind": step.kind });
  if (step.errors) node.dataset.failing = "";
  const head = make("p", null, { class: "head" });
  head.append(make("strong", `${step.id} ${step.source}`));
  if (step.kind) head.append(make("span", step.kind, { class: `kind kind-${step.kind}` }));
  if (step.errors) head.append(make("span", "error", { class: "kind failing" }));
  const [prompt, cached, output] = step.tokens;
  const spent = prompt === null ? "" : `${prompt} in (${cached || 0} cached), ${output || 0} out`;
  const cost = step.cost === null || step.cost === undefined ? "" : `${step.cost.toFixed(4)} USD`;
  head.append(make("small", [spent, cost, step.at].filter(Boolean).join(", ")));
  node.append(head);
  if (step.message) node.append(make("div", step.message, { class: "message" }));
  if (step.reasoning) node.append(folded(step.reasoning, "reasoning"));
  for (const call of step.calls) {
    node.append(make("p", call.name, { class: "call" }));
    if (call.text) node.append(folded(call.text, `call of ${call.name}`));
  }
  for (const result of step.results) if (result) node.append(folded(result, "output"));
  return node;
}

function showSteps(detail) {
  if (!detail.steps.length) return;
  $("steps").append(...detail.steps.map(stepNode));
  showBehaviour(detail.behaviour);
  const form = $("search");
  const texts = detail.steps.map((step) => JSON.stringify([step.message, step.reasoning, step.calls, step.results]).toLowerCase());
  const apply = () => {
    const text = JSON.stringify(form.elements.text.value.toLowerCase()).slice(1, -1);
    const kind = form.elements.kind.value;
    let count = 0;
    [...$("steps").children].forEach((node, index) => {
      node.hidden = !(texts[index].includes(text) && (!kind || node.dataset.kind === kind));
      count += !node.hidden;
    });
    form.querySelector("output").textContent = `${count} of ${texts.length} steps`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  let last = -1;
  const failing = [...$("steps").children].filter((node) => node.dataset.failing !== undefined);
  $("jump").disabled = failing.length === 0;
  $("jump").addEventListener("click", () => {
    last = (last + 1) % failing.length;
    failing[last].hidden = false;
    failing[last].scrollIntoView({ block: "center" });
    failing[last].focus();
  });
  $("trajectory").hidden = false;
  apply();
}

async function main() {
  const query = new URLSearchParams(location.search);
  const file = query.get("task") || "";
  const number = Number(query.get("trial"));
  if (!/^[\w.@+-]+$/.test(file) || !Number.isInteger(number)) throw new Error("no trial is named in the address");
  await load(`data/${encodeURIComponent(file)}.js`);
  const trial = window.hab.task.trials[number];
  if (!trial) throw new Error("there is no such trial");
  $("task-link").href = `tasks/${encodeURIComponent(file)}.html`;
  $("task-link").textContent = window.hab.task.task;
  $("name").textContent = trial.trial_id;
  document.title = `${trial.trial_id} - hab-suite`;
  showRecord(trial);
  if (!trial.detail) {
    $("state").textContent = "The run folder holds no files of this trial.";
    return;
  }
  await load(`data/${encodeURIComponent(file)}.${number}.js`);
  const detail = window.hab.detail;
  showPictures(detail.pictures);
  showVerdict(detail.verdict);
  showSubmission(detail.submission);
  showSteps(detail);
  $("log").hidden = !detail.log;
  $("log").querySelector("pre").textContent = detail.log;
}

main().catch((error) => { $("state").textContent = error.message; });
