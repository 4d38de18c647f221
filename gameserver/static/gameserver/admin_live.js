// Follow a game: replace the page's content when the server renders another one.
"use strict";
(() => {
  const PAUSE_MS = 3000;
  const box = document.getElementById("live");
  const state = document.getElementById("live-state");

  async function look() {
    if (document.hidden) return;
    try {
      const response = await fetch("?live=1", { credentials: "same-origin", redirect: "error" });
      if (!response.ok) throw new Error(String(response.status));
      const fresh = document.createElement("template");
      fresh.innerHTML = await response.text();
      const before = box.querySelector("[data-actions]");
      const after = fresh.content.querySelector("[data-actions]");
      if (before.dataset.actions !== after.dataset.actions) {
        // Other things can be done now, or the game is over: show the whole page anew.
        location.reload();
        return;
      }
      box.replaceChildren(fresh.content);
      state.textContent = `As of ${new Date().toLocaleTimeString()}. This page follows the game.`;
    } catch {
      state.textContent = "The server does not answer; trying again.";
    }
  }
  setInterval(look, PAUSE_MS);
})();
