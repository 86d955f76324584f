// Settings as tables: those of the broker, and those of the open topic. Values that differ from the default are marked.
const isChanged = (each) => (each.value ?? "") !== (each.default ?? "");
const shownValue = (value) => (value === null || value === undefined || value === "" ? "–" : value);

// - hasHelp: whether each row says what its setting does.
function settingRow(each, hasHelp) {
  const mark = isChanged(each) && make("span", { class: "tag changed" }, "changed");
  return make(
    "tr", { class: isChanged(each) ? "changed" : "", "data-key": each.name }, make("th", { scope: "row" }, `${each.name} `, mark),
    make("td", { class: "value" }, shownValue(each.value)), make("td", { class: "value quiet" }, shownValue(each.default)), hasHelp && make("td", { class: "quiet help" }, each.help));
}

function topicSettingsTable(topic) {
  const defaults = topic.defaultSettings || {};
  const rows = Object.entries(topic.settings).map(([name, value]) => settingRow({ name, value, default: defaults[name] }, false));
  return make("table", { class: "settings" }, make("caption", { class: "hidden" }, "Settings of the topic"), head("Setting", "Value", "Default"), make("tbody", {}, ...rows));
}

let brokerSettings = [];
function openSettings() {
  keepLoading(() => "/api/settings", (answer) => {
    brokerSettings = answer.settings;
    setText($("settings-facts"), "");
    showSettings();
  }, $("settings-facts"));
}

function showSettings() {
  const wanted = $("settings-filter").value.trim().toLowerCase();
  const onlyChanged = $("settings-changed").checked;
  const rows = brokerSettings.filter((each) => (!onlyChanged || isChanged(each)) && `${each.section} ${each.name} ${each.value ?? ""}`.toLowerCase().includes(wanted));
  const header = head("Setting", "Value", "Default", "Meaning");
  const parts = [];
  let section = null;
  for (const each of rows) {
    if (each.section !== section) parts.push(make("tr", { class: "section", "data-key": `section ${each.section}` }, make("th", { colspan: "4", scope: "rowgroup" }, each.section || "general")));
    section = each.section;
    parts.push(settingRow(each, true));
  }
  if (!parts.length) parts.push(make("tr", {}, make("td", { colspan: "4", class: "quiet" }, onlyChanged && !wanted ? "Every setting has its default." : "No setting matches.")));
  stack(header, parts);
  const changed = brokerSettings.filter(isChanged).length;
  setText($("settings-count"), `${rows.length < brokerSettings.length ? `${rows.length} of ` : ""}${brokerSettings.length}, ${changed} changed`);
  update($("settings"), [make("table", { class: "stack settings of-broker", role: "table" }, make("caption", { class: "hidden" }, "Settings of the broker"), header, make("tbody", {}, ...parts))]);
}

$("settings-filter").addEventListener("input", showSettings);
$("settings-changed").addEventListener("input", showSettings);
