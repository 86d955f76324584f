// Readable numbers. Null stands for no limit; large numbers are strings.
const number = (value) => (value === null ? Infinity : Number(value));
const grouped = new Intl.NumberFormat("en");

function scaled(value, step, units) {
  let index = 0;
  while (value >= step - 0.5 && index + 1 < units.length) { value /= step; index += 1; }
  const digits = index === 0 ? (value % 1 === 0 || value >= 100 ? 0 : 1) : value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return value.toFixed(digits) + units[index];
}
function count(value) {
  if (value === Infinity) return "any";
  return value < 100000 && value % 1 === 0 ? grouped.format(value) : scaled(value, 1000, ["", " k", " M", " G", " T"]);
}
const rate = (value) => (value > 0 && value < 0.05 ? "<0.1" : scaled(value, 1000, ["", " k", " M", " G", " T"]));
const bytes = (value) => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
function duration(seconds) {
  if (seconds < 0.95) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}
// For what has a beginning: 5 min 12 s. Whole seconds, so that it doesn't change its width with each sample.
function since(seconds) {
  if (seconds < 60) return `${Math.max(1, Math.floor(seconds))} s`;
  if (seconds >= 3600) return duration(seconds);
  return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}
const short = (nanoseconds) =>
  nanoseconds >= 1e9 ? `${(nanoseconds / 1e9).toPrecision(2)} s`
    : nanoseconds >= 1e6 ? `${Number((nanoseconds / 1e6).toPrecision(2))} ms` : `${Math.round(nanoseconds / 1e3)} µs`;
const plural = (value, one, many) => `${count(value)} ${value === 1 ? one : many}`;
const nameOf = (peer) => [peer.client || "a client without a name", peer.identity ? `(${peer.identity})` : ""].filter(Boolean).join(" ");
