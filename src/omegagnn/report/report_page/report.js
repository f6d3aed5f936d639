// Sorts a table by the column whose head is pressed; without this script the tables stand as they were written.

const numberOf = (text) => Number.parseFloat(text.replace(/[,%–]/g, "").trim()); // "81.2 (80.6 to 81.9)" is 81.2

function compare(one, other) {
  const [a, b] = [numberOf(one), numberOf(other)];
  if (Number.isNaN(a) && Number.isNaN(b)) return one.localeCompare(other);
  if (Number.isNaN(a)) return 1; // what is no number stands last, whichever way
  return Number.isNaN(b) ? -1 : a - b;
}

function sortBy(table, column, head) {
  const falling = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [row.cells[column].textContent, row]);
  rows.sort(([a], [b]) => (falling ? compare(b, a) : compare(a, b)));
  body.append(...rows.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  if (table.tBodies[0].rows.length < 2) continue;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sortBy(table, column, head));
  });
}

// Everything is on paper, folded or not.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
