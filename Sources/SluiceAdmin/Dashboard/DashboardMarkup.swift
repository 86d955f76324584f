/// The body of the page: what is there before the first sample. Everything that comes from the broker is put in by the script, as text.
enum DashboardMarkup {
  static let body = #"""
    <body>
    <a class="skip" href="#topics">Skip to the topics</a>
    <header>
      <h1>Sluice</h1>
      <p id="state" class="state" role="status" data-state="waiting"><span class="dot" aria-hidden="true"></span><span id="state-text">Connecting…</span></p>
      <p id="about" class="quiet"></p>
      <button id="theme" type="button" class="plain">Theme: automatic</button>
    </header>
    <noscript><p class="notice">This page needs JavaScript. The same is at <a href="/metrics">/metrics</a> and <a href="/api/broker">/api/broker</a>.</p></noscript>
    <main>
    <section aria-labelledby="now-title">
      <h2 id="now-title" class="hidden">Now</h2>
      <div class="figures">
        <div class="figure">
          <h3>Published</h3>
          <p class="value"><b id="in-rate">–</b> <span class="unit">records/s</span></p>
          <p class="quiet" id="in-bytes"> </p>
          <svg id="in-line" class="line" viewBox="0 0 180 36" preserveAspectRatio="none" role="img" aria-label="Published, over the last three minutes"><path class="area"/><path class="stroke"/></svg>
        </div>
        <div class="figure">
          <h3>Delivered</h3>
          <p class="value"><b id="out-rate">–</b> <span class="unit">records/s</span></p>
          <p class="quiet" id="out-bytes"> </p>
          <svg id="out-line" class="line" viewBox="0 0 180 36" preserveAspectRatio="none" role="img" aria-label="Delivered, over the last three minutes"><path class="area"/><path class="stroke"/></svg>
        </div>
        <div class="figure">
          <h3>Delivery latency</h3>
          <p class="value"><b id="latency-half">–</b> <span class="unit">median</span></p>
          <p class="quiet" id="latency-tail"> </p>
          <div id="latency-bars" class="columns" role="img" aria-label="No deliveries yet"></div>
          <p class="axis" aria-hidden="true"><span>1 µs</span><span>32 µs</span><span>1 ms</span><span>32 ms</span><span>1 s</span></p>
        </div>
        <div class="figure">
          <h3>Memory</h3>
          <p class="value"><b id="memory">–</b> <span class="unit" id="memory-unit"></span></p>
          <p class="quiet" id="memory-more"> </p>
          <div class="meter" id="memory-meter" role="img" aria-label=""><i></i></div>
        </div>
        <div class="figure">
          <h3>Connections</h3>
          <p class="value"><b id="connections-count">–</b></p>
          <p class="quiet" id="connections-more"> </p>
          <svg id="connections-line" class="line" viewBox="0 0 180 36" preserveAspectRatio="none" role="img" aria-label="Connections, over the last three minutes"><path class="area"/><path class="stroke"/></svg>
        </div>
        <div class="figure" id="storage-figure" hidden>
          <h3>Storage</h3>
          <p class="value"><b id="storage">–</b> <span class="unit" id="storage-unit"></span></p>
          <p class="quiet" id="storage-more"> </p>
          <div class="meter" id="storage-meter" role="img" aria-label=""><i></i></div>
        </div>
      </div>
    </section>

    <section aria-labelledby="holds-title">
      <h2 id="holds-title">Who waits for whom</h2>
      <ul id="holds" class="holds"><li class="quiet">Nobody waits.</li></ul>
    </section>

    <section aria-labelledby="topics-title">
      <div class="bar-above">
        <h2 id="topics-title">Topics <span id="topics-count" class="quiet"></span></h2>
        <label class="field"><span class="hidden">Show topics whose names contain</span><input id="filter" type="search" placeholder="Filter by name" autocomplete="off" spellcheck="false"></label>
        <label class="check"><input id="busy" type="checkbox"> Busy ones only</label>
      </div>
      <div class="card">
      <table id="topics" class="topics" tabindex="-1">
        <caption class="hidden">Topics. The button in a row shows who is attached to the topic, and its last records.</caption>
        <thead><tr>
          <th scope="col" data-sort="name" aria-sort="ascending"><button type="button">Topic</button></th>
          <th scope="col" data-sort="in" class="n"><button type="button">In<span class="wide">, records/s</span></button></th>
          <th scope="col" data-sort="out" class="n"><button type="button">Out<span class="wide">, records/s</span></button></th>
          <th scope="col" class="middle">Last minutes</th>
          <th scope="col" data-sort="records" class="n middle"><button type="button">Records</button></th>
          <th scope="col" data-sort="bytes" class="n wide"><button type="button">Size</button></th>
          <th scope="col" data-sort="subscriptions" class="n middle"><button type="button">Subscribers</button></th>
          <th scope="col" data-sort="publications" class="n wide"><button type="button">Producers</button></th>
          <th scope="col" data-sort="lag" class="n middle"><button type="button">Lag</button></th>
          <th scope="col" data-sort="outstanding" class="n wide"><button type="button">Asked for</button></th>
        </tr></thead>
        <tbody id="topic-rows"><tr><td colspan="10" class="quiet">No topics yet.</td></tr></tbody>
      </table>
      </div>
      <p class="pager"><button id="back" type="button" class="plain">Previous</button> <span id="page" class="quiet"></span> <button id="forth" type="button" class="plain">Next</button></p>
    </section>

    <section aria-labelledby="connections-title">
      <h2 id="connections-title">Connections <span id="connections-shown" class="quiet"></span></h2>
      <div class="card scroll" role="region" aria-labelledby="connections-title" tabindex="0">
      <table>
        <caption class="hidden">Connections</caption>
        <thead><tr>
          <th scope="col">Client</th><th scope="col">Who</th><th scope="col">From</th><th scope="col" class="n">Subscriptions</th>
          <th scope="col" class="n">Publications</th><th scope="col" class="n">Waiting</th><th scope="col" class="n">For</th><th scope="col">TLS</th>
        </tr></thead>
        <tbody id="connection-rows"></tbody>
      </table>
      </div>
    </section>
    </main>
    <footer class="quiet">
      <a href="/metrics">/metrics</a> <a href="/api/broker">/api/broker</a> <a href="/api/topics">/api/topics</a> <a href="/api/connections">/api/connections</a>
    </footer>
    </body>
    """#
}
