import TestSupport
import Testing

/// The page's places for settings, users and live records, and the shape of its drawings, in a browser.
@Suite(
  .onItsOwnThread,
  .enabled(if: Chromium.path != nil, "Chromium isn't installed: scripts/bootstrap.sh --tests installs it"))
struct DashboardPlacesTests {
  /// Elements that have to be moved sideways to be seen whole.
  private static let wide =
    "[...document.querySelectorAll('*')].filter((each) => each.clientWidth > 1 && each.scrollWidth > each.clientWidth + 1 && ['auto', 'scroll'].includes(getComputedStyle(each).overflowX))"

  private func open(_ place: String, of broker: BrokerProcess) throws -> HeadlessBrowser {
    let browser = try HeadlessBrowser(try #require(Chromium.path))
    try browser.open("http://\(try #require(broker.adminAddress))/#/\(place)")
    try browser.wait("document.getElementById('state')?.dataset.state === 'live'")
    return browser
  }

  @Test func headerAndTitleNameTheBroker() throws {
    let broker = try BrokerProcess("--admin", "127.0.0.1:0")
    let browser = try open("", of: broker)
    try browser.wait("document.getElementById('broker-address').textContent === '\(broker.address)'")
    #expect(try browser.holds("document.getElementById('broker-name').textContent !== ''"))
    #expect(
      try browser.holds(
        "document.title === document.getElementById('broker-name').textContent + ', \(broker.address) – Sluice'"
      ))
    #expect(browser.complaints == [])
  }

  @Test func settingsAreATableThatMarksChangedOnes() throws {
    let broker = try BrokerProcess("--admin", "127.0.0.1:0", "--max-record", "2MiB")
    let browser = try open("settings", of: broker)
    func cells(_ setting: String) -> String {
      "[...document.querySelectorAll('#settings [data-key=\(setting)] .value')].map((each) => each.textContent).join()"
    }
    try browser.wait("\(cells("max-record")).startsWith('2MiB,')")
    #expect(
      try browser.holds(
        "document.querySelector('#settings [data-key=max-record] .tag')?.textContent === 'changed'"))
    #expect(try browser.holds("\(cells("log-level")) === 'info,info'"))
    #expect(try browser.holds("!document.querySelector('#settings [data-key=log-level] .tag')"))
    try browser.run("document.getElementById('settings-changed').click()")
    #expect(try browser.holds("!document.querySelector('#settings [data-key=log-level]')"))
    #expect(try browser.holds("document.querySelector('#settings [data-key=max-record]')"))
    try browser.run("document.getElementById('settings-changed').click()")
    try browser.run("document.getElementById('settings-filter').value = 'LOG-'")
    try browser.run("document.getElementById('settings-filter').dispatchEvent(new Event('input'))")
    #expect(try browser.holds("document.querySelector('#settings [data-key=log-level]')"))
    #expect(try browser.holds("!document.querySelector('#settings [data-key=max-record]')"))
    #expect(browser.complaints == [])
  }

  @Test func usersAndPermissionsAreShownAndNoSecrets() throws {
    let stage = try AdminAccessTests.Stage(
      permissions:
        "* subscribe public.>\nalice all >\nbob publish,create jobs.>\n\"<i>eve</i>\" subscribe prices\n")
    let browser = try HeadlessBrowser(try #require(Chromium.path))
    // The browser keeps the credentials of this answer for the page.
    try browser.open("http://alice:alice%27s%20secret@\(stage.address)/api/broker")
    try browser.wait("document.body?.textContent.includes('authenticatesClients')")
    try browser.open("http://\(stage.address)/#/users")
    let rows =
      "[...document.querySelectorAll('#users tbody tr')].map((each) => [...each.cells].map((cell) => cell.textContent).join('|'))"
    try browser.wait("\(rows).includes('bob|yes|publish, create on jobs.>')")
    #expect(try browser.holds("\(rows).includes('alice|yes|all on >')"))
    #expect(try browser.holds("\(rows).includes('<i>eve</i>|no|subscribe on prices')"))
    #expect(
      try browser.holds(
        "document.getElementById('users-facts').textContent.includes('subscribe on public.>')"))
    #expect(try browser.holds("!document.body.textContent.includes('scrypt')"))
    #expect(try browser.holds("!document.getElementById('nav-users').hidden"))
    #expect(browser.complaints == [])

    let other = try open("users", of: try BrokerProcess("--admin", "127.0.0.1:0"))
    try other.wait("document.getElementById('users-facts').textContent.includes('--users')")
    #expect(try other.holds("document.getElementById('nav-users').hidden"))
  }

  @Test func theLiveTailShowsAsManyRecordsAsRequested() throws {
    let broker = try BrokerProcess("--admin", "127.0.0.1:0")
    let client = try broker.client()
    try client.publishAll(["before"], to: "orders")
    let browser = try open("topics/orders/tail", of: broker)
    let shown = "[...document.querySelectorAll('#tail-list .preview')].map((each) => each.textContent).join()"
    let numbers = "document.getElementById('tail-numbers').textContent"
    // Counts later requests for records.
    try browser.run(
      "window.asked = []; window.original = window.fetch; window.fetch = (...all) => { if (String(all[0]).includes('/records')) window.asked.push(all[0]); return window.original(...all); }"
    )
    try browser.wait("document.getElementById('tail-note').textContent.startsWith('Request records')")
    try client.publishAll(["<b>one</b>", "two", "three"], to: "orders")
    try browser.wait("\(numbers) === 'lag 3 records'")
    // Without demand nothing is fetched.
    #expect(try browser.holds("\(shown) === '' && window.asked.length === 0"))
    func request(_ count: Int) throws {
      try browser.run("document.getElementById('tail-count').value = '\(count)'")
      try browser.run("document.getElementById('tail-request').click()")
    }
    try request(1)
    try browser.wait("\(shown) === '<b>one</b>'")
    try browser.wait("\(numbers) === '1 of 1 received, lag 2 records'")
    try request(10)
    try browser.wait("\(shown) === 'three,two,<b>one</b>'")
    try client.publishAll(["four"], to: "orders")
    try browser.wait("\(shown) === 'four,three,two,<b>one</b>'")
    #expect(try browser.holds("document.querySelectorAll('#tail-list b').length === 0"))
    try browser.run("document.getElementById('tail-stop').click()")
    try browser.wait("document.getElementById('tail-note').textContent === 'Stopped.'")

    // Filtered-out records use no demand.
    try browser.run("document.getElementById('tail-text').value = 'wanted'")
    try request(1)
    try browser.wait("document.getElementById('tail-note').textContent === 'Waiting for records.'")
    try client.publishAll(["other", "wanted"], to: "orders")
    try browser.wait("\(shown).startsWith('wanted,four')")

    // A place that was left fetches no more.
    try request(10)
    try browser.run("location.hash = '#/connections'; window.asked = []")
    try client.publishAll(["wanted too"], to: "orders")
    try browser.wait("document.querySelectorAll('#connection-rows tr').length > 0")
    try browser.run("location.hash = '#/topics/orders/records'")
    try browser.wait("document.querySelector('#records-list .preview')?.textContent === 'wanted too'")
    #expect(try browser.holds("window.asked.length === 1"))
    #expect(browser.complaints == [])
  }

  @Test func countsHaveWholeNumbersAndLinesFillTheirPlace() throws {
    let broker = try BrokerProcess("--admin", "127.0.0.1:0")
    let producer = try broker.sluice("pub", "orders", input: .open)
    let browser = try open("", of: broker)
    let figure =
      "[...document.querySelectorAll('#broker-charts figure')].find((each) => each.textContent.startsWith('Connections'))"
    let axis =
      "[...\(figure).querySelectorAll('text[text-anchor=end]')].map((each) => each.textContent).filter((each) => !each.includes(':'))"
    try browser.wait("\(axis).length === 3")
    #expect(try browser.holds("\(axis).every((each) => Number.isInteger(Number(each)))"))
    try producer.write(Array("x\n".utf8))
    let line = "(document.querySelector('tr.topic .stroke')?.getAttribute('d') ?? '')"
    try browser.wait("\(line).startsWith('M0.0,') && \(line).split('L').at(-1).startsWith('110.0,')")
    #expect(browser.complaints == [])
    producer.stop()
  }

  @Test func theStoresLimitIsDrawn() throws {
    let directory = try TemporaryDirectory()
    let broker = try BrokerProcess(
      "--admin", "127.0.0.1:0", "--data", directory.path, "--storage-limit", "2MiB", "--storage", "durable")
    try broker.client().publishAll((0..<8).map { _ in String(repeating: "x", count: 60_000) }, to: "big")
    let browser = try open("storage", of: broker)
    try browser.wait(
      "document.querySelector('#storage-charts .limit-text')?.textContent === 'limit 2.00 MiB'")
    try browser.wait("document.querySelector('#storage-charts line.limit')")
    #expect(browser.complaints == [])
  }

  @Test func nothingScrollsSidewaysOnANarrowScreen() throws {
    let broker = try BrokerProcess(
      "--admin", "127.0.0.1:0", "--admin-actions", "on", "--admin-problem-hold", "100ms")
    let name = "a-topic-with-a-long-name.of-a-plant.hall-12.machine-4711"
    try broker.run("topic", "create", "\(name).held", "--flow", "lossless", "--without-subscribers", "hold")
    let producer = try broker.sluice("pub", "\(name).held", "x")
    try broker.run("pub", name, "x", "--quiet")
    try broker.run("cursor", "move", name, "billing", "--to", "earliest")
    let subscriber = try broker.sluice("sub", name, "--demand", "7")
    let browser = try open("", of: broker)
    try browser.wait("document.querySelector('#problems .remedy')")
    for width in [360, 800] {
      try browser.show(width: width, dark: false)
      for place in [
        "", "topics", "topics/\(name).held", "topics/\(name)", "topics/\(name)/records",
        "topics/\(name)/tail", "consumers",
        "connections",
        "settings",
      ] {
        try browser.run("location.hash = '#/\(place)'")
        let row =
          switch place {
          case "topics/\(name)", "topics/\(name).held": "#detail .streams td"
          case "topics/\(name)/records": "#records-list li"
          case "consumers", "settings": "#\(place) tbody tr"
          case "connections": "#connection-rows .links"
          default: "main"
          }
        try browser.wait("document.querySelector('\(row)')")
        #expect(try browser.holds("\(Self.wide).length === 0"), "\(place) \(width)")
        #expect(try browser.holds("document.documentElement.scrollWidth <= \(width)"), "\(place) \(width)")
      }
    }
    #expect(browser.complaints == [])
    subscriber.stop()
    producer.stop()
  }
}
