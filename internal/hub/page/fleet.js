// SPDX-License-Identifier: Apache-2.0
// Comfort only: the page works without this.
"use strict";
document.addEventListener("keydown", (e) => {
  const field = document.getElementById("q");
  if (!field || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) {
    e.preventDefault();
    field.focus();
    field.select();
  } else if (e.key === "Escape" && e.target === field) {
    field.blur();
  }
});
const since = document.getElementById("since");
if (since) since.addEventListener("change", () => since.form.requestSubmit());
