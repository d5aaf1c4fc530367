"use strict";
(() => {
  const tip = document.getElementById("tip");
  let cursor = null;

  const hide = () => {
    tip.hidden = true;
    if (cursor) cursor.setAttribute("visibility", "hidden");
    cursor = null;
  };

  // The words for the cell of a map under the pointer.
  const cell = (map, event) => {
    const pes = map.dataset.pes.split("|");
    const box = map.getBoundingClientRect();
    const place = (offset, length) => Math.min(pes.length - 1, Math.max(0, Math.floor(offset / length * pes.length)));
    const to = place(event.clientX - box.left, box.width);
    const from = place(event.clientY - box.top, box.height);
    cursor = map.parentNode.querySelector(".cursor");
    const side = Number(cursor.getAttribute("width"));
    cursor.setAttribute("x", Number(map.getAttribute("x")) + to * side);
    cursor.setAttribute("y", Number(map.getAttribute("y")) + from * side);
    cursor.setAttribute("visibility", "visible");
    map.values = map.values || map.dataset.values.split("|");
    const value = map.values[from * pes.length + to];
    return pes[from] + " to " + pes[to] + "\n" + (value || (from === to ? "itself" : "no value"));
  };

  document.addEventListener("pointermove", (event) => {
    const hit = event.target instanceof Element ? event.target.closest(".hit") : null;
    if (!hit) return hide();
    tip.textContent = hit.dataset.values === undefined ? hit.dataset.tip : cell(hit, event);
    tip.hidden = false;
    const beside = (at, length, room) => Math.max(4, at + 16 + length > room ? at - 12 - length : at + 16);
    tip.style.left = beside(event.clientX, tip.offsetWidth, innerWidth) + "px";
    tip.style.top = beside(event.clientY, tip.offsetHeight, innerHeight) + "px";
  });
  document.addEventListener("pointerleave", hide);
  addEventListener("scroll", hide);
})();
