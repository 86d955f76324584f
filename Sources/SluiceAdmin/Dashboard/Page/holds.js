// The limit that blocks producers, by its name.
const limits = {
  "demand": "it has requested nothing", "buffer": "its unread records fill the buffer",
  "replay": "its replay fills the buffer", "group demand": "its group has requested nothing",
  "group buffer": "unread records of its group fill the buffer",
  "group replay": "the replay of its group fills the buffer",
};

// The reason for a subscriber's lag, by its name.
const slow = {
  "demand": "it has requested nothing", "client": "the client doesn't read", "network": "its network is slow",
  "unread": "the client or its network is slow", "pace": "it reads more slowly than records come",
};

// The reason why a producer waits, by its name.
const waits = {
  "subscribers": "the subscribers have requested nothing more", "storage full": "the store is full", "storage fails": "the store fails",
  "storage backlog": "records wait to be written to the disk", "memory": "the broker's memory is at its ceiling",
  "not connected": "the topic isn't connected", "rate": "its identity publishes at its limit",
};

// The share of the last minutes in which a cause has blocked producers.
const percent = (share) => (share > 0 && share < 0.01 ? `${(share * 100).toFixed(1)} %` : `${Math.floor(share * 100 + 1e-9)} %`);
const shares = (hold) => `${percent(hold.heldLastMinute)} of the last minute, ${percent(hold.heldLastFiveMinutes)} of the last five`;
