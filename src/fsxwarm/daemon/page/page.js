// Keeps the page fresh, and folds folders. Without it the page reloads by itself and all folders are open.
"use strict";

const folded = new Set();
const contents = document.getElementById("contents");
const AGAIN = 5000;

async function anew() {
  const answer = await fetch(location.href, { credentials: "same-origin" });
  if (!answer.ok) {
    return say(`this page is not fresh any more (${answer.status}); run fsxwarm page again`);
  }
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const section of fresh.querySelectorAll("section[id], body > header")) {
    const name = section.id ? `section#${CSS.escape(section.id)}` : "body > header";
    const old = document.querySelector(name);
    if (old && old.innerHTML !== section.innerHTML) {
      replace(old, section);
    }
  }
  dress();
}

// What the reader has opened, scrolled or is about to press stays so.
function replace(old, section) {
  const open = [...old.querySelectorAll("details[open][id]")].map((one) => one.id);
  const left = [...old.querySelectorAll(".scrolls")].map((one) => one.scrollLeft);
  const active = old.contains(document.activeElement) ? path(old, document.activeElement) : null;
  const there = document.importNode(section, true);
  old.replaceWith(there);
  for (const id of open) {
    there.querySelector(`#${CSS.escape(id)}`)?.setAttribute("open", "");
  }
  there.querySelectorAll(".scrolls").forEach((one, number) => { one.scrollLeft = left[number] ?? 0; });
  dress();
  active?.reduce((node, number) => node?.children[number], there)?.focus({ preventScroll: true });
}

function path(from, to) {
  const steps = [];
  for (let node = to; node !== from; node = node.parentElement) {
    steps.unshift([...node.parentElement.children].indexOf(node));
  }
  return steps;
}

// Folders that have others in them get a button that folds them.
function dress() {
  for (const head of document.querySelectorAll("th[data-folds=yes]")) {
    if (!head.querySelector("button")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "fold";
      button.addEventListener("click", () => {
        const name = called(head);
        folded.has(name) ? folded.delete(name) : folded.add(name);
        fold();
      });
      head.prepend(button);
    }
  }
  fold();
}

function called(head) {
  const names = [];
  for (let place = head.dataset.place; place; place = place.includes(".") ? place.replace(/\.[^.]*$/, "") : "") {
    names.unshift(document.querySelector(`th[data-place="${place}"] bdi`).textContent);
  }
  return JSON.stringify(names);
}

function fold() {
  const closed = [];
  for (const head of document.querySelectorAll("th[data-place]")) {
    head.parentElement.hidden = closed.some((place) => head.dataset.place.startsWith(`${place}.`));
    const button = head.querySelector("button");
    if (button) {
      const is = folded.has(called(head));
      if (is) {
        closed.push(head.dataset.place);
      }
      button.textContent = is ? "▸" : "▾";
      button.setAttribute("aria-expanded", String(!is));
      button.setAttribute("aria-label", `${is ? "unfold" : "fold"} ${head.querySelector("bdi").textContent}`);
    }
  }
}

function say(text) {
  let place = document.getElementById("stale");
  if (!place) {
    place = document.createElement("p");
    place.id = "stale";
    place.className = "problems";
    place.setAttribute("role", "alert");
    contents.prepend(place);
  }
  place.textContent = text;
}

function listen() {
  const events = new EventSource(contents.dataset.stream);
  let busy = false;
  events.onmessage = async () => {
    if (busy || document.hidden) {
      return;
    }
    busy = true;
    try {
      await anew();
      document.getElementById("stale")?.remove();
    } catch {
      say("the daemon does not answer; trying again");
    }
    busy = false;
  };
  events.addEventListener("over", () => { events.close(); say("this session has ended: run fsxwarm page again"); });
  events.onerror = () => {
    say("the daemon does not answer; trying again");
    if (events.readyState === EventSource.CLOSED) {
      setTimeout(listen, AGAIN);
    }
  };
  events.onopen = () => document.getElementById("stale")?.remove();
  document.addEventListener("visibilitychange", () => { document.hidden || anew().catch(() => {}); });
}

dress();
if (contents?.dataset.stream) {
  listen();
}
