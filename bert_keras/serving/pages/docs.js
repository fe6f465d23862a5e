// The routes of openapi.json, by protocol.
"use strict";
fetch("/openapi.json").then((response) => response.json()).then((api) => {
  const groups = {};
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, route] of Object.entries(methods)) {
      const body = route.requestBody?.content["application/json"]?.schema.$ref?.split("/").pop();
      const fields = Object.keys(api.components.schemas[body]?.properties ?? {}).join(", ");
      (groups[route.tags?.[0] ?? ""] ??= []).push([`${method.toUpperCase()} ${path}`, route.summary, fields]);
    }
  }
  for (const [name, routes] of Object.entries(groups)) {
    const heading = document.createElement("h2");
    heading.textContent = name;
    const list = document.createElement("dl");
    for (const [path, summary, fields] of routes) {
      const term = document.createElement("dt");
      term.textContent = path;
      const detail = document.createElement("dd");
      detail.textContent = fields ? `${summary}: ${fields}` : summary;
      list.append(term, detail);
    }
    document.getElementById("routes").append(heading, list);
  }
});
