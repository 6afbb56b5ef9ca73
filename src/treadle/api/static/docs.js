"use strict";

// Addresses are relative, so that it works below any prefix. Nothing is asked of another host, and
// a token is kept by this page alone, as long as it is open.
const form = document.querySelector("form");
const said = form.querySelector("output");

async function show(token) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch("openapi.json", { headers });
  const found = await answer.json();
  form.hidden = answer.ok;
  if (!answer.ok) {
    said.textContent = token ? found.detail : "";
    return;
  }
  const ui = SwaggerUIBundle({
    spec: found,
    dom_id: "#reference",
    deepLinking: true,
    displayRequestDuration: true,
    persistAuthorization: false,
    tryItOutEnabled: true,
    validatorUrl: null,
  });
  if (token) ui.preauthorizeApiKey("token", token);
}

function start(token) {
  show(token).catch((error) => {
    form.hidden = false;
    said.textContent = String(error);
  });
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  start(form.elements.token.value.trim());
});
start("");
