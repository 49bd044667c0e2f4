// Tables: a click on a head sorts, numbers downwards first; what is undefined stays last, counts stay on top.
{
  const valueOf = (cell) => (cell.dataset.value === undefined ? null : Number(cell.dataset.value));

  function compare(a, b, direction) {
    const [x, y] = [valueOf(a), valueOf(b)];
    if (x !== null && y !== null) return direction * (x - y);
    if (x !== null || y !== null) return x === null ? 1 : -1;
    return direction * a.textContent.trim().localeCompare(b.textContent.trim());
  }

  function sortBy(table, head) {
    const column = [...head.parentNode.children].indexOf(head);
    const body = table.tBodies[0];
    const rows = [...body.rows].filter((row) => !row.classList.contains("count"));
    const numbers = rows.some((row) => valueOf(row.cells[column]) !== null);
    const first = numbers ? "descending" : "ascending";
    const other = numbers ? "ascending" : "descending";
    const next = head.getAttribute("aria-sort") === first ? other : first;
    for (const cell of head.parentNode.children) cell.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", next);
    const direction = next === "ascending" ? 1 : -1;
    body.append(...rows.sort((a, b) => compare(a.cells[column], b.cells[column], direction)));
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    for (const button of table.tHead.querySelectorAll("button")) {
      button.addEventListener("click", () => sortBy(table, button.closest("th")));
    }
  }

  // Tables of a family take turns; on paper all are shown.
  for (const chooser of document.querySelectorAll(".chooser[data-for]")) {
    const members = [...document.getElementById(chooser.dataset.for).children];
    const buttons = [...chooser.children];
    const show = (chosen) => {
      buttons.forEach((button, k) => button.setAttribute("aria-pressed", String(k === chosen)));
      members.forEach((member, k) => member.classList.toggle("turned-away", k !== chosen));
    };
    buttons.forEach((button, k) => button.addEventListener("click", () => show(k)));
    show(0);
  }
}
