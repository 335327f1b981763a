// SPDX-License-Identifier: MIT OR Apache-2.0
// Arrow keys in the heat maps, and a line that says all of the cell that has the focus or the pointer. Texts only ever go to textContent.
"use strict";
(() => {
  const line = document.getElementById("says");

  // The nearest cell with a figure from this one on, in steps of rows and columns; nothing at the border.
  const next = (cell, rows, columns) => {
    const all = [...cell.closest("tbody").rows];
    let row = all.indexOf(cell.parentElement) + rows, column = cell.cellIndex + columns;
    while (all[row] && all[row].cells[column]) {
      const link = all[row].cells[column].querySelector("a");
      if (link) return link;
      row += rows;
      column += columns;
    }
    return null;
  };

  // Its measurement, as the list below has it; the link leads there.
  const says = (link) => [...document.getElementById(link.hash.slice(1)).cells].slice(1).map((cell) => cell.textContent).join(" | ");

  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  for (const table of document.querySelectorAll("table.heat")) {
    const links = [...table.querySelectorAll("td a")];
    // One stop for the tab key in each map; the arrows go on from there.
    links.forEach((link, place) => { link.tabIndex = place ? -1 : 0; });
    table.addEventListener("keydown", (event) => {
      const step = STEPS[event.key], link = event.target.closest("td a");
      if (!step || !link || event.altKey || event.ctrlKey || event.metaKey) return;
      const to = next(link.parentElement, step[0], step[1]);
      event.preventDefault();
      if (!to) return;
      link.tabIndex = -1;
      to.tabIndex = 0;
      to.focus();
    });
    for (const kind of ["focusin", "mouseover"]) {
      table.addEventListener(kind, (event) => {
        const link = event.target.closest("td a");
        if (link) line.textContent = says(link);
      });
    }
  }

  // On paper everything is there.
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
