// The limit that blocks producers, by its name.
const limits = {
  "demand": "has requested nothing", "buffer": "its backlog fills the buffer", "replay": "its replay fills the buffer",
  "group demand": "its group has requested nothing", "group buffer": "its group's backlog fills the buffer",
  "group replay": "its group's replay fills the buffer",
};

// Why a subscriber has a lag, by the name of the reason.
const slow = {
  "demand": "has requested nothing", "client": "doesn't read", "network": "its network takes nothing",
  "unread": "doesn't read", "pace": "slower than the records come",
};

// The reason why a producer waits, by its name.
const waits = {
  "subscribers": "no demand", "storage full": "the store is full", "storage fails": "the store fails",
  "storage backlog": "the disk is slow", "memory": "the memory is at its ceiling",
  "not connected": "the topic isn't connected", "rate": "its identity's rate is used up",
};

// The share of the last minutes in which a cause has blocked producers.
const percent = (share) => (share > 0 && share < 0.01 ? `${(share * 100).toFixed(1)} %` : `${Math.floor(share * 100 + 1e-9)} %`);

// A state: a word, and below it its reason, so that neither moves when the other changes.
function stateCell(word, reason, isTroubled) {
  return make("td", { class: isTroubled ? "state-of warn" : "state-of" }, word, make("div", { class: "reason" }, reason || "\u00a0"));
}

function subscriberState(each) {
  const member = each.group ? `member of ${each.group}` : "";
  if (number(each.holdingSeconds) > 0) {
    return stateCell("blocks producers", `for ${since(each.holdingSeconds)}: ${each.blocked ? "doesn't read" : limits[each.holdingLimit] || each.holdingLimit}; ${percent(each.heldLastMinute)} of the last minute`, true);
  }
  const cause = each.blocked && !slow[each.slowness] ? "doesn't read" : slow[each.slowness] ?? each.slowness;
  const time = number(each.slowSeconds) > 0 && each.slowness !== "pace" ? ` for ${since(each.slowSeconds)}` : "";
  const past = each.heldLastFiveMinutes > 0 ? `blocked producers ${percent(each.heldLastMinute)} of the last minute, ${percent(each.heldLastFiveMinutes)} of the last five` : "";
  return stateCell(each.state, [member, cause && `${cause}${time}`, past].filter(Boolean).join("; "), each.blocked);
}

function producerState(each) {
  const isWaiting = number(each.waitingSeconds) > 0;
  const reason = isWaiting ? `for ${since(each.waitingSeconds)}${each.waitReason ? `: ${waits[each.waitReason] ?? each.waitReason}` : ""}` : "";
  return stateCell(isWaiting ? "waits" : "may publish", reason, isWaiting);
}
