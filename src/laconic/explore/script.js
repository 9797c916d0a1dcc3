"use strict";
// What is pointed at, or has the focus, is looked up in the table of rules and told in the panel.
(() => {
  const panel = document.getElementById("phrase");
  if (!panel) return;
  const rest = [...panel.childNodes];
  const selected = () => document.querySelectorAll(".same, .chosen");

  function tell(piece) {
    selected().forEach((each) => each.classList.remove("same", "chosen"));
    panel.classList.toggle("told", Boolean(piece));
    if (!piece) {
      panel.replaceChildren(...rest);
      return;
    }
    const name = piece.dataset.rule, first = document.getElementById(name);
    document.querySelectorAll(`[data-rule="${name}"]`).forEach((each) => each.classList.add("same"));
    piece.classList.add("chosen");
    if (!first) return;
    const list = document.createElement("dl");
    const heads = first.closest("table").tHead.rows[0].cells;
    [...first.parentElement.cells].forEach((cell, k) => {
      const group = document.createElement("div");
      group.append(document.createElement("dt"), document.createElement("dd"));
      group.firstChild.textContent = heads[k].textContent;
      group.lastChild.textContent = cell.textContent;
      if (cell.className) group.lastChild.className = cell.className;
      list.append(group);
    });
    list.className = first.nextElementSibling.textContent;
    panel.replaceChildren(list);
  }

  const phrase = (target) => target instanceof Element && target.closest("[data-rule]");
  for (const kind of ["mouseover", "click", "focusin"]) {
    document.addEventListener(kind, (event) => {
      const piece = phrase(event.target);
      if (piece) tell(piece);
    });
  }

  const inside = (piece) => piece.querySelector("[data-rule]");
  const sibling = (piece, way) => {
    let next = piece[way];
    while (next && !next.dataset.rule) next = next[way];
    return next;
  };
  function beside(piece, way) {
    for (; piece && piece.dataset.rule; piece = piece.parentElement) {
      const next = sibling(piece, way);
      if (next) return next;
    }
    return null;
  }
  const moves = {
    ArrowRight: (piece) => beside(piece, "nextElementSibling"),
    ArrowLeft: (piece) => beside(piece, "previousElementSibling"),
    ArrowDown: inside,
    ArrowUp: (piece) => phrase(piece.parentElement),
    Home: (piece, text) => inside(text),
    End: (piece, text) => [...text.children].at(-1),
  };
  document.addEventListener("keydown", (event) => {
    const text = event.target.closest(".phrases");
    if (!text || event.ctrlKey || event.altKey || event.metaKey) return;
    const piece = phrase(event.target);
    if (event.key === "Escape") {
      text.focus();
      tell(null);
    } else if (event.key in moves) {
      const to = piece ? moves[event.key](piece, text) : inside(text);
      event.preventDefault();
      if (!to) return;
      to.tabIndex = -1;
      to.focus();
    }
  });
})();
