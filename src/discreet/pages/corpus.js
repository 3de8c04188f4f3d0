"use strict";
const box = document.getElementById("find"), found = document.getElementById("found");
const unfold = document.getElementById("unfold");
const items = [...document.querySelectorAll("[data-find]")];
const plain = text => text.normalize("NFKC").toLowerCase();
const texts = items.map(each => plain(each.dataset.find));
const lists = [...document.querySelectorAll(".items")];
function search() {
  const wanted = plain(box.value.trim());
  let shown = 0;
  items.forEach((each, place) => {
    each.hidden = !texts[place].includes(wanted);
    shown += each.hidden ? 0 : 1;
  });
  lists.forEach(each => { each.hidden = ![...each.children].some(item => !item.hidden); });
  found.textContent = wanted
    ? `${shown.toLocaleString("en")} of ${items.length.toLocaleString("en")} have “${box.value.trim()}” in them`
    : `${items.length.toLocaleString("en")} in all, the largest first`;
}
box.addEventListener("input", search);
box.addEventListener("keydown", event => {
  if (event.key === "Escape") { box.value = ""; search(); }
});
unfold.addEventListener("click", () => {
  const open = unfold.getAttribute("aria-pressed") !== "true";
  unfold.setAttribute("aria-pressed", String(open));
  unfold.textContent = open ? "Close all" : "Open all";
  document.querySelectorAll(".items details").forEach(each => { each.open = open; });
});
if (!document.querySelector(".items details")) unfold.hidden = true;
document.querySelector(".search").hidden = !items.length;
search();
