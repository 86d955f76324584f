// The limit that blocks producers, by its name.
const limits = {
  "demand": "it has asked for nothing more", "buffer": "records that it has not taken fill the buffer",
  "replay": "records that are kept for its replay fill the buffer", "group demand": "its group has asked for nothing more",
  "group buffer": "records that its group has not taken fill the buffer",
  "group replay": "records that are kept for the replay of its group fill the buffer",
};

// The reason for a subscriber's lag, by its name.
const slow = {
  "demand": "it doesn't ask for more", "client": "the client doesn't read what it was sent", "network": "its network doesn't take what was sent",
  "unread": "the client or its network is slow", "pace": "it reads, but more slowly than records come",
};

// The reason why a producer waits, by its name.
const waits = {
  "subscribers": "the subscribers have asked for nothing more", "storage full": "the store has no room", "storage fails": "the store fails",
  "storage backlog": "records wait to be written to the disk", "memory": "the broker's memory is at its ceiling",
  "not connected": "the topic isn't connected", "rate": "its identity has published as much as its rate allows",
};

// The share of the last minutes in which a cause has blocked producers.
const percent = (share) => (share > 0 && share < 0.01 ? `${(share * 100).toFixed(1)} %` : `${Math.floor(share * 100 + 1e-9)} %`);
const shares = (hold) => `${percent(hold.heldLastMinute)} of the last minute, ${percent(hold.heldLastFiveMinutes)} of the last five`;
