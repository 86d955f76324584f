// Problems, as the broker has found them: each sentence links to its place.
function showProblems() {
  const lines = (problems || []).map(problemLine);
  const none = problems ? "The broker has found none." : "This broker looks for none: its setting admin-history is 0s.";
  if (!lines.length) lines.push(make("li", { class: "quiet" }, none));
  setText($("problems-count"), lines.length && problems?.length ? String(lines.length) : "");
  update($("problems"), lines);
  const number = problems?.length ?? 0;
  setText($("nav-problems"), number ? String(number) : "");
  setAttribute($("nav-problems"), "class", problems?.some((each) => each.severity === "critical") ? "badge critical" : "badge");
  document.title = `${number ? `(${number}) ` : ""}Sluice${broker.node ? ` ${broker.node}` : ""}`;
}

function problemLine(problem) {
  const seconds = Math.max(0, (broker.time - problem.since) / 1000);
  return make(
    "li", { class: `problem ${problem.severity}`, "data-key": `${problem.kind} ${problem.link}` }, make("b", { class: "severity" }, problem.severity === "critical" ? "Critical" : "Warning"),
    make("a", { href: problem.link }, problem.sentence), make("span", { class: "quiet" }, seconds < 1 ? "just now" : `for ${since(Math.floor(seconds))}`));
}
