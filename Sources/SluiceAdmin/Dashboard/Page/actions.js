// Actions: dialogs for the visitor's changes. The page has a token if the broker's setting admin-actions is on.
const token = document.querySelector("meta[name=sluice-token]").content;
const mayAct = token !== "";

async function act(method, path, body) {
  const headers = { "Sluice-Token": token };
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error || `status ${response.status}`);
  return answer;
}

// The settings of a topic: name, choices, meaning of an empty field; fixed ones can't be changed later.
const topicSettings = [
  { name: "storage", choices: ["memory", "durable"], fixed: true },
  { name: "flow", choices: ["free", "lossless", "fastest"] },
  { name: "replay-records", hint: "a number, or everything" },
  { name: "replay-bytes", hint: "like 64MiB, or everything" },
  { name: "replay-age", hint: "like 48h, or everything" },
  { name: "buffer-records", hint: "a number", rare: true },
  { name: "buffer-bytes", hint: "like 1MiB", rare: true },
  { name: "without-subscribers", choices: ["buffer", "hold", "drop"], rare: true },
  { name: "connect", hint: "immediate, auto:2, auto-stay:2, manual", rare: true },
  { name: "lag", choices: ["skip", "fail"], rare: true },
  { name: "auto-delete", choices: ["off", "on"], rare: true },
  { name: "when-producer-lost", hint: "wait, or fail:30s", rare: true },
  { name: "scope", choices: ["forever", "while-connected"], rare: true, fixed: true },
  { name: "compact", choices: ["off", "on"], rare: true, fixed: true },
  { name: "sync", hint: "always, os, or a time like 50ms", rare: true, fixed: true },
];

// Opens a dialog. `run` gets the values of the fields by name; if it fails, its message is shown and the dialog stays open.
function ask({ title, text, fields, confirm, isDanger, run }) {
  const inputs = new Map();
  const field = (each) => {
    const input = each.choices
      ? make("select", {}, make("option", { value: "" }, each.value ? "" : "as the broker's rules say"), ...each.choices.map((choice) => make("option", { value: choice, selected: choice === each.value }, choice)))
      : each.isLong ? make("textarea", { rows: "4", placeholder: each.hint || "", spellcheck: "false" })
      : make("input", { type: "text", value: each.value ?? "", placeholder: each.hint || "", autocomplete: "off", spellcheck: "false", required: each.required });
    inputs.set(each.name, input);
    return make("label", {}, make("span", {}, each.label || each.name), input);
  };
  const usual = fields.filter((each) => !each.rare).map(field);
  const rare = fields.filter((each) => each.rare).map(field);
  const note = make("p", { class: "warn", role: "alert" });
  const cancel = make("button", { type: "button", class: "plain" }, "Cancel");
  const submit = make("button", { type: "submit", class: `plain ${isDanger ? "danger" : "primary"}` }, confirm);
  const form = make(
    "form", {}, make("h2", { id: "dialog-title" }, title), text && make("p", { class: "quiet" }, text), ...usual,
    rare.length ? make("details", {}, make("summary", {}, "More settings"), ...rare) : null, note, make("p", { class: "choices" }, cancel, submit));
  const dialog = make("dialog", { "aria-labelledby": "dialog-title" }, form);
  cancel.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    setText(note, "");
    try {
      await run(Object.fromEntries([...inputs].map(([name, input]) => [name, input.localName === "textarea" ? input.value : input.value.trim()])));
      dialog.close();
      // The button that gets the focus back may be in a row that is about to be removed.
      if (isDanger) document.activeElement?.blur();
    } catch (error) {
      setText(note, error.message);
    }
    submit.disabled = false;
  });
  document.body.append(dialog);
  dialog.showModal();
  // Enter must not delete anything that the visitor hasn't read about.
  if (isDanger) cancel.focus();
}

const topicPath = (name) => `/api/topics/${encodeURIComponent(name)}`;
const stated = (values, names) => Object.fromEntries(names.filter((name) => values[name]).map((name) => [name, values[name]]));

function createTopic() {
  ask({
    title: "Create a topic", confirm: "Create", fields: [{ name: "name", label: "Name", hint: "orders.eu", required: true }, ...topicSettings],
    run: async (values) => {
      await act("PUT", topicPath(values.name), { settings: stated(values, topicSettings.map((each) => each.name)) });
      go(`#/topics/${encodeURIComponent(values.name)}`);
    },
  });
}

async function changeTopic(name) {
  const settings = (await (await fetch(topicPath(name))).json()).settings || {};
  const fields = topicSettings.filter((each) => !each.fixed).map((each) => ({ ...each, value: settings[each.name] }));
  ask({
    title: `Settings of ${name}`, confirm: "Change", fields,
    text: "Clients stay attached. Storage, sync, scope and compact can't be changed while the topic exists.",
    run: (values) => {
      const changed = fields.map((each) => each.name).filter((each) => values[each] !== (settings[each] ?? ""));
      if (!changed.length) throw new Error("Nothing was changed.");
      return act("PATCH", topicPath(name), { settings: stated(values, changed) });
    },
  });
}

function trimTopic(name) {
  ask({
    title: `Trim ${name}`, confirm: "Trim", isDanger: true, text: "Drops the oldest records. Offsets don't change. In a lossless topic, attached subscribers still get the records of their backlog.",
    fields: [{ name: "keepLast", label: "Keep the newest", hint: "records; 0 drops all" }, { name: "before", label: "Or drop those before offset" }],
    run: (values) => {
      if (!values.keepLast === !values.before) throw new Error("State one of the two.");
      return act("POST", `${topicPath(name)}/trim`, values.keepLast ? { keepLast: values.keepLast } : { before: values.before });
    },
  });
}

function deleteTopic(name) {
  const records = topics.has(name) ? count(number(topics.get(name).row.records)) : "its";
  ask({
    title: `Delete ${name}?`, confirm: "Delete", isDanger: true, fields: [],
    text: `Deletes the topic with ${records} records, its cursors and its groups, from the disk as well. Streams of attached clients fail.`,
    run: async () => {
      await act("DELETE", topicPath(name));
      go("#/topics");
    },
  });
}

const consumerPath = (each, topic) => `${topicPath(topic)}/consumers/${encodeURIComponent(each.name)}`;

function moveConsumer(each, topic) {
  ask({
    title: `Move ${each.kind} ${each.name}`, confirm: "Move", isDanger: true,
    text: `It is at offset ${grouped.format(each.nextOffset)} of ${topic}. Subscriptions that use it end; when they subscribe again, they continue at the new position.`,
    fields: [{ name: "to", label: "To", hint: "earliest, new, last:10, offset:7, time:-10m", required: true }],
    run: async (values) => {
      await act("POST", `${consumerPath(each, topic)}/move`, { to: values.to });
      showPlace();
    },
  });
}

function deleteConsumer(each, topic) {
  ask({
    title: `Delete ${each.kind} ${each.name}?`, confirm: "Delete", isDanger: true, fields: [],
    text: `Deletes its position in ${topic}; its backlog is ${plural(number(each.lag), "record", "records")}. Subscriptions that use it end. The topic's records stay.`,
    run: async () => {
      await act("DELETE", consumerPath(each, topic));
      showPlace();
    },
  });
}

function disconnect(connection) {
  ask({
    title: `Close connection ${connection.id}?`, confirm: "Close", isDanger: true, fields: [],
    text: `Closes the connection of ${connection.client || "the client"} at ${connection.peer}. Most clients connect again.`,
    run: async () => {
      await act("DELETE", `/api/connections/${connection.id}`);
      openConnections(null);
    },
  });
}

const actionButton = (text, run) => {
  const button = make("button", { type: "button", class: "plain" }, text);
  button.addEventListener("click", run);
  return button;
};

// The buttons of the open topic; none without the permission to change anything.
function topicActions(name) {
  if (!mayAct) return null;
  return make(
    "p", { class: "actions" }, actionButton("Settings…", () => changeTopic(name)), actionButton("Trim…", () => trimTopic(name)),
    actionButton("Delete…", () => deleteTopic(name)));
}

$("create-topic").hidden = !mayAct;
$("create-topic").addEventListener("click", createTopic);
