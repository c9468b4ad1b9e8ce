// SPDX-License-Identifier: Apache-2.0
// Swaps the part of the page that changes when the server sends it anew. Without this file, a reload does the same.
"use strict";
(() => {
  const live = document.getElementById("live");
  const connection = document.getElementById("connection");
  document.documentElement.classList.add("js");
  if (!live || !window.EventSource) return;

  // An element is found again by its id, or by its kind and address and which of those it is.
  const kin = (e) => e.id ? [document.getElementById(e.id)] :
    [...live.querySelectorAll(e.tagName)].filter((o) =>
      o.getAttribute("href") === e.getAttribute("href") && o.getAttribute("aria-label") === e.getAttribute("aria-label"));
  const scrolls = () => [...live.querySelectorAll(".scroll")].map((e) => e.scrollLeft);

  let waiting = null, pressed = false;
  const swap = (html) => {
    const selection = window.getSelection();
    if (pressed || selection && !selection.isCollapsed && live.contains(selection.anchorNode)) {
      waiting = html; // somebody is in the middle of a click, or about to copy something
      return;
    }
    waiting = null;
    const next = new DOMParser().parseFromString(html, "text/html").body;
    if (next.innerHTML.trim() === live.innerHTML.trim()) return;
    const active = live.contains(document.activeElement) ? document.activeElement : null;
    const nth = active ? kin(active).indexOf(active) : -1;
    const places = scrolls();
    live.replaceChildren(...next.childNodes);
    [...live.querySelectorAll(".scroll")].forEach((e, i) => { e.scrollLeft = places[i] || 0; });
    if (active) {
      const same = kin(active);
      (same[nth] || same[0] || document.getElementById("main")).focus({ preventScroll: true });
    }
    countdown();
  };

  const countdown = () => {
    for (const e of document.querySelectorAll("time[data-until]")) {
      const left = Math.max(0, Math.round((Date.parse(e.dateTime) - Date.now()) / 1000));
      const h = Math.floor(left / 3600), m = Math.floor(left / 60) % 60, s = left % 60;
      e.textContent = (h ? h + "h" : "") + (h || m ? m + "m" : "") + s + "s";
    }
  };
  setInterval(countdown, 1000);
  countdown();
  const later = () => setTimeout(() => { if (waiting !== null) swap(waiting); });
  document.addEventListener("selectionchange", later);
  document.addEventListener("pointerdown", () => { pressed = true; });
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => { pressed = false; later(); });

  // A browser allows a few connections to a host at once, so a tab that nobody sees holds none. A stream begins with the present state.
  let source = null;
  const close = () => { if (source) source.close(); source = null; };
  const open = () => {
    close();
    if (document.hidden) return;
    source = new EventSource("/live?at=" + encodeURIComponent(location.pathname + location.search));
    source.addEventListener("view", (event) => swap(event.data));
    source.addEventListener("read", (event) => {
      const read = document.getElementById("read");
      read.dateTime = read.textContent = event.data;
    });
    source.onopen = () => { connection.textContent = "live"; connection.className = "on"; };
    source.onerror = () => { connection.textContent = "not connected: what you see may be old"; connection.className = "off"; };
  };
  document.addEventListener("visibilitychange", open);
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => { if (event.persisted) open(); });
  open();

  // A form of filters applies what somebody types or chooses: the address changes, and so does what is followed.
  const form = document.querySelector("form[data-live]");
  let typing;
  const apply = () => {
    clearTimeout(typing);
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim()));
    const to = location.pathname + (query.size ? "?" + query : "");
    if (to === location.pathname + location.search) return;
    history.replaceState(null, "", to);
    open();
  };
  if (form) {
    form.addEventListener("submit", (event) => { event.preventDefault(); apply(); });
    form.addEventListener("change", apply);
    form.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(apply, 250); });
    // After a comma another term begins, and the browser suggests only what continues the whole text.
    const labels = document.getElementById("labels"), terms = [...labels.list.options];
    for (const option of terms) option.dataset.term = option.value;
    labels.addEventListener("input", () => {
      const before = labels.value.slice(0, labels.value.lastIndexOf(",") + 1);
      for (const option of terms) option.value = before + option.dataset.term;
    });
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const code = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch { // the browser does not let us: the person may copy what is selected
      window.getSelection().selectAllChildren(code);
      return;
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });

  // "/" goes to the search, as on many pages.
  document.addEventListener("keydown", (event) => {
    const search = document.getElementById("search");
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || !search) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    search.focus();
    search.select();
  });
})();
