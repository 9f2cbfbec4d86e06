"use strict";
(() => {
  // Contents, from the headings that are there.
  const contents = document.getElementById("contents");
  for (const section of document.querySelectorAll("section[id]")) {
    const link = document.createElement("a");
    link.href = "#" + section.id;
    link.textContent = section.querySelector("h2").textContent;
    contents.append(link);
  }

  // Light or dark: what the machine says, until the button says otherwise.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const now = root.dataset.theme || (dark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
  });

  const value = (row, column) => {
    const cell = row.cells[column];
    const given = cell.dataset.v;
    if (given === undefined) return cell.textContent.trim().toLowerCase();
    return given === "" ? null : Number(given);
  };
  const compare = (a, b) =>
    a === b ? 0 : a === null ? 1 : b === null ? -1 : typeof a === "string" ? a.localeCompare(b) : a - b;

  for (const block of document.querySelectorAll(".sortable")) {
    const body = block.querySelector("tbody");
    const heads = [...block.querySelectorAll("th")];
    heads.forEach((head, column) =>
      head.querySelector("button").addEventListener("click", () => {
        const falling = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", falling ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [value(row, column), row]);
        // Unknown values stay last either way.
        rows.sort(([a], [b]) => (a === null || b === null ? compare(a, b) : falling ? compare(b, a) : compare(a, b)));
        body.append(...rows.map(([, row]) => row));
      }),
    );
    const filter = block.querySelector("input[type=search]");
    if (filter)
      filter.addEventListener("input", () => {
        const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
        for (const row of body.rows) {
          const text = row.textContent.toLowerCase();
          row.hidden = !words.every((word) => text.includes(word));
        }
      });
  }
})();
