"use strict";
(() => {
  const $ = (s, r = document) => r.querySelector(s), $$ = (s, r = document) => [...r.querySelectorAll(s)];

  // The reader: one fixed place that says a cell in words, by pointer or keyboard. Escape puts it away.
  const reader = $(".reader");
  const hush = () => { reader.hidden = true; };
  for (const cell of $$(".board .c[data-say]")) {
    const say = () => { reader.textContent = cell.dataset.say; reader.hidden = false; };
    cell.addEventListener("focus", say);
    cell.addEventListener("blur", hush);
    cell.addEventListener("pointerenter", (e) => { if (e.pointerType === "mouse") say(); });
  }
  $(".board")?.addEventListener("pointerleave", (e) => { if (e.relatedTarget !== reader) hush(); });
  reader.addEventListener("pointerleave", hush);
  document.addEventListener("keydown", (e) => { if (e.key === "Escape") hush(); });

  // Sorting: by data-v where there is one, undefined last either way.
  for (const table of $$("table.sortable")) $$("thead th button", table).forEach((button) => {
    const th = button.closest("th"), column = th.cellIndex, body = table.tBodies[0];
    button.addEventListener("click", () => {
      const up = th.getAttribute("aria-sort") === "descending";
      $$("th", table).forEach((other) => other.removeAttribute("aria-sort"));
      th.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => {
        const cell = row.cells[column];
        if (cell.dataset.v === undefined) return cell.textContent.trim();
        return cell.dataset.v === "" ? null : Number(cell.dataset.v);
      };
      const order = (a, b) => {
        const x = value(a), y = value(b);
        if (x === null || y === null) return (x === null) - (y === null);
        const d = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
        return up ? d : -d;
      };
      [...body.rows].sort(order).forEach((row) => body.append(row));
    });
  });
})();
