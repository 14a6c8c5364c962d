"use strict";
const find = document.getElementById("find");
const doubtful = document.getElementById("doubtful");
const order = document.getElementById("order");
const large = document.getElementById("large");
const groups = [...document.querySelectorAll(".group")];
let tiles = [...document.querySelectorAll(".group .tile")];
let open = null;

const shown = () => tiles.filter((tile) => !tile.hidden);

function filter() {
  const words = find.value.trim().toLowerCase();
  let any = false;
  for (const group of groups) {
    const whole = group.dataset.title.toLowerCase().includes(words);
    let some = false;
    for (const tile of group.querySelectorAll(".tile")) {
      const named = whole || tile.firstElementChild.alt.toLowerCase().includes(words);
      tile.hidden = !named || (doubtful.checked && !tile.classList.contains("doubtful"));
      some ||= !tile.hidden;
    }
    group.hidden = !some && (words !== "" || doubtful.checked);
    any ||= !group.hidden;
  }
  document.getElementById("none").hidden = any;
}

function reorder() {
  // The page has every class with the surest first; the other order is its reverse.
  for (const grid of document.querySelectorAll(".group .grid")) grid.append(...[...grid.children].reverse());
  tiles = [...document.querySelectorAll(".group .tile")];
}

function show(tile) {
  open = tile;
  const picture = large.querySelector("img");
  picture.src = tile.href;
  picture.alt = tile.firstElementChild.alt;
  large.querySelector("strong").textContent = picture.alt;
  large.querySelector("span").textContent = tile.dataset.detail;
  if (!large.open) large.showModal();
}

function step(from, by) {
  const list = shown();
  return list[Math.min(list.length - 1, Math.max(0, list.indexOf(from) + by))];
}

function below(from, down) {
  // The nearest picture of the next row that has one, in this class or the next.
  const list = shown(), box = from.getBoundingClientRect(), middle = box.left + box.width / 2;
  let best = null, row = null;
  for (let i = list.indexOf(from) + down; i >= 0 && i < list.length; i += down) {
    const other = list[i].getBoundingClientRect();
    if (down * (other.top - box.top) < 1) continue;
    row ??= other.top;
    if (Math.abs(other.top - row) > 1) break;
    const distance = Math.abs(other.left + other.width / 2 - middle);
    if (best === null || distance < best.distance) best = { tile: list[i], distance };
  }
  return best === null ? from : best.tile;
}

function go(tile) {
  if (!tile) return;
  if (large.open) show(tile);
  tile.focus();
  tile.scrollIntoView({ block: "nearest" });
}

function jump(by) {
  const list = groups.filter((group) => !group.hidden && group.querySelector(".tile:not([hidden])"));
  const now = document.activeElement.closest?.(".group");
  const at = now ? list.indexOf(now) + by : by > 0 ? 0 : list.length - 1;
  const group = list[Math.min(list.length - 1, Math.max(0, at))];
  if (!group) return;
  group.scrollIntoView();
  group.querySelector(".tile:not([hidden])").focus({ preventScroll: true });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === find) {
    if (event.key === "Escape") { find.value = ""; filter(); find.blur(); }
    return;
  }
  const tile = large.open ? open : document.activeElement.closest?.(".group .tile");
  const moves = {
    ArrowRight: () => go(tile ? step(tile, 1) : shown()[0]),
    ArrowLeft: () => tile && go(step(tile, -1)),
    ArrowDown: () => tile && go(large.open ? step(tile, 1) : below(tile, 1)),
    ArrowUp: () => tile && go(large.open ? step(tile, -1) : below(tile, -1)),
  };
  const others = {
    n: () => jump(1),
    p: () => jump(-1),
    d: () => { doubtful.checked = !doubtful.checked; filter(); },
    "/": () => find.focus(),
  };
  const move = moves[event.key] ?? (large.open ? undefined : others[event.key]);
  if (move && (tile || event.key in others || event.key === "ArrowRight")) {
    event.preventDefault();
    move();
  }
});
document.addEventListener("click", (event) => {
  const tile = event.target.closest?.(".tile");
  if (tile && !(event.ctrlKey || event.metaKey || event.shiftKey || event.button)) {
    event.preventDefault();
    show(tile);
  } else if (event.target === large) {
    large.close();
  }
});
large.addEventListener("close", () => open?.focus());
find.addEventListener("input", filter);
doubtful.addEventListener("change", filter);
order.addEventListener("change", reorder);
if (order.value === "least") reorder();
