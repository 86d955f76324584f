// Problems, as the broker has found them: each sentence links to its place.
function showProblems() {
  const lines = (problems || []).map(problemLine);
  const none = problems ? "The broker has found none." : "This broker looks for none: its setting admin-history is 0s.";
  if (!lines.length) lines.push(make("li", { class: "quiet" }, none));
  setText($("problems-count"), lines.length && problems?.length ? String(lines.length) : "");
  const list = $("problems");
  // Only changed lines are replaced, so that a screen reader keeps its place.
  lines.forEach((line, index) => {
    const old = list.children[index];
    if (!old) list.append(line);
    else if (old.textContent !== line.textContent || old.className !== line.className) old.replaceWith(line);
  });
  while (list.children.length > lines.length) list.lastElementChild.remove();
}

function problemLine(problem) {
  const seconds = Math.max(0, (broker.time - problem.since) / 1000);
  return make(
    "li", { class: `problem ${problem.severity}` }, make("b", { class: "severity" }, problem.severity === "critical" ? "Critical" : "Warning"),
    make("a", { href: problem.link }, problem.sentence), make("span", { class: "quiet" }, seconds < 1 ? "just now" : `for ${since(Math.floor(seconds))}`));
}
