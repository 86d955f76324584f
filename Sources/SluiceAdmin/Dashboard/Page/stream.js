// The stream of samples, and the message when it stops.
let stream = null;
let retry = null;

function showState(state, text) {
  setAttribute($("state"), "data-state", state);
  setText($("state-text"), text);
  document.body.classList.toggle("stale", state === "lost");
}

function watch() {
  clearTimeout(retry);
  if (stream) stream.close();
  stream = new EventSource(opened === null ? "/api/events" : `/api/events?topic=${encodeURIComponent(opened)}`);
  stream.addEventListener("sample", (event) => {
    const { sum, changed } = take(JSON.parse(event.data));
    showState("live", "Live");
    showFigures(sum);
    showProblems();
    showTopics(changed);
    showStoredTopics();
    setText($("nav-connections"), count(number(broker.connections)));
  });
  stream.addEventListener("topic", (event) => showDetail(JSON.parse(event.data)));
  stream.addEventListener("error", lose);
}

function lose() {
  const since = sampledAt ? ` The page shows the state at ${new Date(sampledAt).toLocaleTimeString()}.` : "";
  showState("lost", `The connection to the broker is lost; trying again.${since}`);
  // After an answer without events, a browser doesn't reconnect by itself.
  if (stream.readyState === EventSource.CLOSED) {
    clearTimeout(retry);
    retry = setTimeout(watch, 3000);
  }
}

// A browser may not notice a lost connection.
setInterval(() => {
  if (sampledAt && Date.now() - sampledAt > 6000) { lose(); if (Date.now() - sampledAt > 15000 && !document.hidden) watch(); }
}, 2000);

addEventListener("hashchange", showPlace);
showPlace();
seed();
watch();
