// Tables: sorting by header buttons, filters, and groups of which one member shows.
"use strict";

function sortTable(table, index, button) {
  const header = button.closest("th");
  const body = table.tBodies[0];
  const up = header.getAttribute("aria-sort") === "descending" || !header.hasAttribute("aria-sort");
  const numeric = [...body.rows].some((row) => row.cells[index].dataset.sort !== undefined);
  const value = (row) => {
    const cell = row.cells[index];
    if (!numeric) return cell.textContent.toLowerCase();
    return cell.dataset.sort === undefined ? NaN : Number(cell.dataset.sort);
  };
  const rows = [...body.rows].map((row, place) => ({ row, place, value: value(row) }));
  rows.sort((a, b) => {
    if (numeric && (isNaN(a.value) || isNaN(b.value))) return isNaN(a.value) - isNaN(b.value) || a.place - b.place;
    const order = a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
    return (up ? order : -order) || a.place - b.place;
  });
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
  body.append(...rows.map((entry) => entry.row));
}

function filterTable(form) {
  const table = document.getElementById(form.dataset.filters);
  const text = form.elements.text.value.toLowerCase();
  const category = form.elements.category ? form.elements.category.value : "";
  let count = 0;
  for (const row of table.tBodies[0].rows) {
    const fits = (!category || row.dataset.category === category) && row.textContent.toLowerCase().includes(text);
    row.hidden = !fits;
    count += fits;
  }
  form.querySelector("output").textContent = `${count} of ${table.tBodies[0].rows.length} rows`;
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((cell, index) => {
    const button = cell.querySelector("button");
    button.addEventListener("click", () => sortTable(table, index, button));
  });
}
for (const form of document.querySelectorAll("form[data-filters]")) {
  form.addEventListener("input", () => filterTable(form));
  form.addEventListener("submit", (event) => event.preventDefault());
  filterTable(form);
}
for (const button of document.querySelectorAll("button[data-shows]")) {
  button.addEventListener("click", () => {
    for (const other of document.querySelectorAll(`button[data-group="${button.dataset.group}"]`)) {
      other.setAttribute("aria-pressed", String(other === button));
    }
    for (const member of document.querySelectorAll(`[data-member="${button.dataset.group}"]`)) {
      member.hidden = member.id !== button.dataset.shows;
    }
  });
}
