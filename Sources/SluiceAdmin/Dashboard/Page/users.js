// Users and permissions, to read: the broker's files are changed by the operator.
const ruleText = (rule) => `${rule.rights.length === 4 ? "all" : rule.rights.join(", ")} on ${rule.pattern}`;
const ruleItems = (rules) => rules.map((rule) => make("div", { class: "rule" }, `${rule.rights.length === 4 ? "all" : rule.rights.join(", ")} on `, make("span", { class: "mono" }, rule.pattern)));

let users = null;
function openUsers() {
  keepLoading(() => `/api/users?limit=1000${filterOf("user-filter")}`, (answer) => {
    users = answer;
    showUsers();
  }, $("users-facts"));
}

function showUsers() {
  const [all, selected] = [number(users.count), number(users.selected)];
  const shown = users.identities.length;
  setText($("users-count"), shown < selected ? `the first ${count(shown)} of ${count(selected)}` : selected < all ? `${count(selected)} of ${count(all)}` : count(all));
  const facts = [
    users.everyIdentity.length ? `Every authenticated client: ${users.everyIdentity.map(ruleText).join("; ")}.` : "Clients have only the permissions that are listed for them or carried by their token.",
    users.tokenKeys.length ? `Keys of tokens: ${users.tokenKeys.join(", ")}.` : "Tokens aren't accepted: there are no keys.",
    users.certificatesMustBeListed ? "The name in a client's certificate must be listed." : "",
  ];
  setText($("users-facts"), facts.filter(Boolean).join(" "));
  const header = head("Name", "Password", "Permissions");
  const rows = users.identities.map((each) => make(
    "tr", { "data-key": each.name }, make("th", { scope: "row" }, each.name), make("td", {}, each.password ? "yes" : "no"),
    make("td", {}, ...(each.permissions.length ? ruleItems(each.permissions) : [make("span", { class: "quiet" }, "none of its own")]))));
  if (!rows.length) rows.push(make("tr", {}, make("td", { colspan: "3", class: "quiet" }, all ? "No name matches." : "No users and no permissions.")));
  stack(header, rows);
  update($("users"), [make("table", { class: "stack users", role: "table" }, make("caption", { class: "hidden" }, "Users and permissions"), header, make("tbody", {}, ...rows))]);
}

$("user-filter").addEventListener("input", () => loadAgain());
