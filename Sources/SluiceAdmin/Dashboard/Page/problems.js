// Problems that the broker has found. Each sentence links to its page. Large numbers of problems are summarised by kind.
const mostProblems = 20;

function showProblems() {
  const number = (problemKinds || []).reduce((sum, kind) => sum + kind.count, 0);
  const lines = number > mostProblems ? problemKinds.map(kindLine) : (problems || []).map(problemLine);
  const none = problems ? "The broker has found none." : "The broker doesn't look for problems: its setting admin-history is 0s.";
  if (!lines.length) lines.push(make("li", { class: "quiet" }, none));
  setText($("problems-count"), number ? String(number) : "");
  update($("problems"), lines);
  setText($("nav-problems"), number ? String(number) : "");
  setAttribute($("nav-problems"), "class", problems?.some((each) => each.severity === "critical") ? "badge critical" : "badge");
  document.title = visible(`${number ? `(${number}) ` : ""}${[nameOfBroker(), addressOfBroker()].filter(Boolean).join(", ")} – Sluice`);
}

function problemAge(problem) {
  const seconds = Math.max(0, (broker.time - problem.since) / 1000);
  return make("span", { class: "quiet" }, seconds < 1 ? "just now" : `for ${since(seconds)}`);
}

const problemSeverity = ({ severity }) => make("b", { class: "severity" }, severity === "critical" ? "Critical" : "Warning");

function problemLine(problem) {
  return make(
    "li", { class: `problem ${problem.severity}`, "data-key": `${problem.kind} ${problem.link}` }, problemSeverity(problem),
    make("a", { href: problem.link }, problem.sentence), problemAge(problem), problem.remedy && make("p", { class: "remedy" }, problem.remedy));
}

// A kind of problem: one sentence for all of its problems, which opens to a list of them.
function kindLine(kind) {
  const listed = problems.filter((each) => each.kind === kind.kind);
  if (kind.count === 1 && listed.length) return problemLine(listed[0]);
  const key = `kind ${kind.kind}`;
  const isOpen = [...$("problems").children].find((each) => each.dataset.key === key)?.querySelector("details")?.open ?? false;
  const rest = kind.count - listed.length;
  const more = rest > 0 && make("li", { class: "quiet" }, `and ${rest} more`);
  return make(
    "li", { class: `problem ${kind.severity}`, "data-key": key }, problemSeverity(kind),
    make("details", { open: isOpen }, make("summary", {}, kind.sentence), make("ul", { class: "problems" }, ...listed.map(problemLine), more)),
    problemAge(kind));
}
