import SluiceWire
import TestSupport
import Testing

/// The dashboard in a browser.
@Suite(
  .onItsOwnThread,
  .enabled(if: Chromium.path != nil, "Chromium isn't installed: scripts/bootstrap.sh --tests installs it"))
struct DashboardTests {
  private static let row = "[...document.querySelectorAll('tr.topic button')]"

  private func publish(_ record: String, to topic: String, _ broker: BrokerProcess) throws {
    #expect(try broker.sluice("pub", topic, record, "--quiet").waitForExit() == .code(0))
  }

  @Test func itShowsTheBrokerAsItIs() throws {
    let broker = try BrokerProcess("--admin", "127.0.0.1:0")
    try publish("<img src=x onerror=document.body.remove()>", to: "orders.eu", broker)
    let browser = try HeadlessBrowser(try #require(Chromium.path))
    try browser.show(width: 1280, dark: false)
    try browser.open("http://\(try #require(broker.adminAddress))/")
    try browser.wait("document.getElementById('state')?.dataset.state === 'live'")
    try browser.wait("\(Self.row).some((button) => button.textContent === 'orders.eu')")

    // A broker without a store shows no storage figure.
    #expect(try browser.holds("document.getElementById('storage-figure').offsetParent === null"))

    // Later records are shown as well, and so are the attached clients.
    #expect(try broker.sluice("topic", "create", "jobs").waitForExit() == .code(0))
    let subscriber = try broker.sluice("sub", "jobs", "--demand", "7")
    try browser.wait("\(Self.row).some((button) => button.textContent === 'jobs')")
    try browser.run("\(Self.row).find((button) => button.textContent === 'jobs').click()")
    try browser.wait("document.getElementById('detail')?.textContent.includes('demand for 7 more')")
    subscriber.stop()
    try browser.wait("document.getElementById('detail').textContent.includes('No subscribers.')")

    // Records are displayed as text, whatever markup they contain.
    try browser.run("\(Self.row).find((button) => button.textContent === 'orders.eu').click()")
    try browser.wait(
      "\(Self.row).find((button) => button.textContent === 'orders.eu').ariaExpanded === 'true'")
    try browser.run("document.querySelector('#detail .browse').click()")
    try browser.wait("document.querySelector('.preview')?.textContent.includes('onerror')")
    try browser.run("document.querySelector('#records-list details').open = true")
    try browser.wait("document.querySelector('#records-list pre')?.textContent.includes('onerror')")
    #expect(try browser.holds("document.querySelectorAll('img').length === 0"))

    for width in [1280, 360] {
      try browser.show(width: width, dark: true)
      #expect(try browser.holds("document.documentElement.scrollWidth <= \(width)"), "\(width)")
    }
    #expect(try browser.holds("getComputedStyle(document.documentElement).colorScheme === 'dark'"))
    try browser.run("document.getElementById('theme').click()")
    #expect(try browser.holds("getComputedStyle(document.documentElement).colorScheme === 'light'"))
    #expect(browser.complaints == [])

    broker.process.stop()
    try browser.wait("document.getElementById('state').dataset.state === 'lost'")
  }

  @Test func tablesAndButtonsAreWhatTheySay() throws {
    let broker = try BrokerProcess("--admin", "127.0.0.1:0")
    for topic in ["b", "a10", "a9"] { try publish("x", to: topic, broker) }
    let browser = try HeadlessBrowser(try #require(Chromium.path))
    try browser.open("http://\(try #require(broker.adminAddress))/")
    func order(_ names: String) -> String {
      "\(Self.row).map((button) => button.textContent).join() === '\(names)'"
    }
    try browser.wait(order("a9,a10,b"))
    try browser.run("document.querySelector('[data-sort=name] button').click()")
    #expect(try browser.holds(order("b,a10,a9")))
    #expect(try browser.holds("document.querySelector('[data-sort=name]').ariaSort === 'descending'"))
    try browser.run(
      "document.getElementById('filter').value = 'A'; document.getElementById('filter').dispatchEvent(new Event('input'))"
    )
    #expect(try browser.holds(order("a10,a9")))
    #expect(
      try browser.holds(
        "[...document.querySelectorAll('table')].every((table) => table.caption?.textContent)"))
    #expect(
      try browser.holds("[...document.querySelectorAll('thead th')].every((cell) => cell.scope === 'col')"))
    #expect(
      try browser.holds(
        "[...document.querySelectorAll('button')].every((button) => button.textContent.trim())"))
    #expect(browser.complaints == [])
  }

  @Test func everyPlaceHasAnAddressAndBackLeadsToTheOneBefore() throws {
    let broker = try BrokerProcess("--admin", "127.0.0.1:0", "--admin-problem-hold", "100ms")
    try publish("x", to: "orders.eu", broker)
    #expect(try broker.sluice("topic", "create", "jobs").waitForExit() == .code(0))
    let subscriber = try broker.sluice("sub", "jobs", "--cursor", "billing", "--demand", "1", "--count", "9")
    let address = try #require(broker.adminAddress)
    let browser = try HeadlessBrowser(try #require(Chromium.path))
    try browser.open("http://\(address)/#/topics/orders.eu")
    // A topic's URL opens its details and charts.
    try browser.wait("document.querySelector('#detail figure svg text')")
    #expect(try browser.holds("document.querySelector('#problems').offsetParent === null"))
    try browser.run(
      "[...document.querySelectorAll('nav a')].find((link) => link.hash === '#/connections').click()")
    try browser.wait("document.querySelector('#connection-rows .links a')?.textContent === 'jobs'")
    try browser.run("document.querySelector('#connection-rows .links a').click()")
    try browser.wait(
      "\(Self.row).find((button) => button.textContent === 'jobs')?.ariaExpanded === 'true'")
    try browser.wait("document.getElementById('detail')?.textContent.includes('billing')")
    try browser.run("history.back()")
    try browser.wait("location.hash === '#/connections' && document.querySelector('#connection-rows .links')")
    try browser.run("history.back()")
    try browser.wait(
      "\(Self.row).find((button) => button.textContent === 'orders.eu')?.ariaExpanded === 'true'")
    try browser.run("location.hash = '#/consumers'")
    try browser.wait("document.querySelector('#consumers tbody th')?.textContent.includes('billing')")
    // Without a cluster, the cluster page shows a message instead of empty tables.
    try browser.run("location.hash = '#/cluster'")
    try browser.wait("document.getElementById('cluster-facts').textContent.includes('node of a cluster')")
    #expect(try browser.holds("document.getElementById('node-rows').offsetParent === null"))
    #expect(try browser.holds("document.getElementById('cluster-charts').offsetParent === null"))
    // The page of a missing topic shows a message, too.
    try browser.run("location.hash = '#/topics/nothing'")
    try browser.wait("document.getElementById('topics-missing').textContent.includes('nothing')")
    #expect(try browser.holds("document.getElementById('topics-missing').offsetParent !== null"))
    for width in [1280, 360] {
      try browser.show(width: width, dark: false)
      for place in ["", "consumers", "connections", "storage", "cluster", "topics/jobs"] {
        try browser.run("location.hash = '#/\(place)'")
        #expect(try browser.holds("document.documentElement.scrollWidth <= \(width)"), "\(place) \(width)")
      }
    }
    #expect(browser.complaints == [])
    subscriber.stop()
  }

  @Test func recordsAreBrowsedByAddressesAndLookedFor() throws {
    let broker = try BrokerProcess("--admin", "127.0.0.1:0", "--admin-actions", "on")
    let numbers = (0..<100).map { "number=\($0)" }.joined(separator: "\n")
    let producer = try broker.sluice(
      "pub", "orders.eu", "--key", "k", "--quiet", input: .bytes(Array(numbers.utf8)))
    #expect(try producer.waitForExit() == .code(0))
    let browser = try HeadlessBrowser(try #require(Chromium.path))
    let list = "[...document.querySelectorAll('#records-list .offset')].map((each) => each.textContent)"
    func shows(_ first: Int, _ last: Int) throws {
      try browser.wait("\(list)[0] === '#\(last)' && \(list).at(-1) === '#\(first)'")
    }
    try browser.open("http://\(try #require(broker.adminAddress))/#/topics/orders.eu/records")
    try shows(80, 99)
    #expect(try browser.holds("document.getElementById('records-newer').disabled"))
    try browser.run("document.getElementById('records-older').click()")
    try shows(60, 79)
    #expect(try browser.holds("location.hash === '#/topics/orders.eu/records?before=80'"))
    try browser.run("document.getElementById('records-newer').click()")
    try shows(80, 99)
    try browser.run("history.back()")
    try shows(60, 79)
    try browser.run("location.hash = '#/topics/orders.eu/records?from=offset:7&count=3'")
    try shows(7, 9)
    #expect(
      try browser.holds("document.getElementById('records-note').textContent === 'Shown: offsets 7 to 9.'"))
    #expect(
      try browser.holds("document.getElementById('records-range').textContent === 'offsets 0 to 99 are kept'")
    )
    try browser.run("location.hash = '#/topics/orders.eu/records?from=offset:7&count=1'")
    try shows(7, 7)
    #expect(try browser.holds("document.getElementById('records-note').textContent === 'Shown: offset 7.'"))
    try browser.run("location.hash = '#/topics/orders.eu/records?from=earliest'")
    try shows(0, 19)
    #expect(try browser.holds("document.getElementById('records-older').disabled"))

    // The URL reflects the form.
    try browser.run("document.getElementById('records-text').value = 'number=4'")
    try browser.run("document.querySelector('#records-form [type=submit]').click()")
    try shows(4, 49)
    #expect(try browser.holds("location.hash.includes('from=earliest&text=number%3D4')"))
    try browser.wait(
      "document.getElementById('records-note').textContent.includes('11 records found among 100')")
    try browser.run("document.getElementById('records-key').value = 'other'")
    try browser.run("document.querySelector('#records-form [type=submit]').click()")
    try browser.wait(
      "document.getElementById('records-note').textContent.includes('0 records found among 100')")

    // Publish a record by hand; it is shown.
    try browser.run("document.getElementById('records-key').value = ''")
    try browser.run("document.getElementById('publish-record').click()")
    try browser.wait("document.querySelector('dialog:modal textarea')")
    try browser.run("document.querySelector('dialog textarea').value = 'number=4 by hand'")
    try browser.run("document.querySelector('dialog [type=submit]').click()")
    try browser.wait("!document.querySelector('dialog')")
    try browser.run("location.hash = '#/topics/orders.eu/records'")
    try browser.wait("document.querySelector('#records-list .preview')?.textContent === 'number=4 by hand'")
    for width in [1280, 360] {
      try browser.show(width: width, dark: false)
      #expect(try browser.holds("document.documentElement.scrollWidth <= \(width)"), "\(width)")
    }
    #expect(browser.complaints == [])
  }

  @Test func topicsAreCreatedChangedTrimmedAndDeletedInDialogs() throws {
    let broker = try BrokerProcess("--admin", "127.0.0.1:0", "--admin-actions", "on")
    let browser = try HeadlessBrowser(try #require(Chromium.path))
    try browser.open("http://\(try #require(broker.adminAddress))/#/topics")
    try browser.wait("document.getElementById('state')?.dataset.state === 'live'")
    func press(_ text: String, in place: String) throws {
      try browser.wait(
        "[...document.querySelectorAll('\(place) button')].some((each) => each.textContent === '\(text)')")
      try browser.run(
        "[...document.querySelectorAll('\(place) button')].find((each) => each.textContent === '\(text)').click()"
      )
    }
    func fill(_ label: String, _ value: String) throws {
      try browser.run(
        "[...document.querySelectorAll('dialog label')].find((each) => each.textContent.startsWith('\(label)')).lastElementChild.value = '\(value)'"
      )
    }
    try press("Create a topic…", in: "section")
    try browser.wait("document.querySelector('dialog:modal')")
    try fill("Name", "or ders")
    try press("Create", in: "dialog")
    // A denial is shown, and the dialog stays open.
    try browser.wait("document.querySelector('dialog [role=alert]').textContent !== ''")
    try fill("Name", "orders")
    try fill("flow", "lossless")
    for width in [1280, 360] {
      try browser.show(width: width, dark: width == 360)
      #expect(try browser.holds("document.querySelector('dialog').getBoundingClientRect().right <= \(width)"))
      #expect(try browser.holds("document.documentElement.scrollWidth <= \(width)"), "\(width)")
    }
    try press("Create", in: "dialog")
    try browser.wait("!document.querySelector('dialog') && location.hash === '#/topics/orders'")
    try browser.wait("document.getElementById('detail')?.textContent.includes('flow lossless')")

    try press("Settings…", in: "#detail")
    try browser.wait("document.querySelector('dialog:modal')")
    try fill("replay-records", "5")
    try press("Change", in: "dialog")
    try browser.wait("document.getElementById('detail').textContent.includes('replay-records 5')")

    try publish("x", to: "orders", broker)
    try browser.wait("document.getElementById('detail').textContent.includes('1 record, 5 B, offset 0')")
    try press("Trim…", in: "#detail")
    try browser.wait("document.querySelector('dialog:modal')")
    #expect(try browser.holds("document.activeElement.textContent === 'Cancel'"))
    try fill("Keep the newest", "0")
    try press("Trim", in: "dialog")
    try browser.wait("document.getElementById('detail').textContent.includes('no records, next offset 1')")

    // A cursor is moved, and deleted.
    #expect(
      try broker.sluice("cursor", "move", "orders", "billing", "--to", "earliest").waitForExit() == .code(0))
    try publish("y", to: "orders", broker)
    try browser.wait("document.querySelector('#detail tbody th')?.textContent.includes('billing')")
    let behind = "document.querySelector('#detail [data-name=Behind]').textContent"
    try browser.wait("\(behind) === '1'")
    try press("Move…", in: "#detail")
    try fill("To", "nowhere")
    try press("Move", in: "dialog")
    try browser.wait("document.querySelector('dialog [role=alert]').textContent.includes('nowhere')")
    try fill("To", "new")
    try press("Move", in: "dialog")
    try browser.wait("!document.querySelector('dialog') && \(behind) === '0'")
    try press("Delete…", in: "#detail .buttons")
    try press("Delete", in: "dialog")
    try browser.wait("document.getElementById('detail').textContent.includes('No groups and no cursors.')")

    try press("Delete…", in: "#detail .actions")
    try browser.wait("document.querySelector('dialog:modal')")
    try press("Delete", in: "dialog")
    try browser.wait("!\(Self.row).some((button) => button.textContent === 'orders')")

    let subscriber = try broker.sluice("sub", "elsewhere.>")
    try browser.run("location.hash = '#/connections'")
    try browser.wait(
      "document.querySelector('#connection-rows .links')?.textContent.trim() === 'elsewhere.>'")
    try press("Close…", in: "#connection-rows")
    try browser.wait("document.querySelector('dialog:modal')")
    try press("Close", in: "dialog")
    try browser.wait("!document.querySelector('dialog')")
    subscriber.stop()
    #expect(browser.complaints == [])
  }

  @Test func moreProblemsThanCanBeReadAreSummarisedByKind() throws {
    let broker = try BrokerProcess(
      "--admin", "127.0.0.1:0", "--admin-problem-lag", "100ms", "--admin-problem-hold", "100ms")
    let client = try broker.client()
    func fall(behind topics: Range<Int>) throws {
      for number in topics {
        try client.publishAll(["x"], to: "t\(number)")
        try client.moveCursor("billing", of: "t\(number)", to: .earliest)
      }
    }
    try fall(behind: 0..<20)
    let browser = try HeadlessBrowser(try #require(Chromium.path))
    try browser.open("http://\(try #require(broker.adminAddress))/")
    // That many are listed one by one.
    try browser.wait("document.querySelectorAll('#problems > li > a').length === 20")
    #expect(try browser.holds("!document.querySelector('#problems summary')"))

    try fall(behind: 20..<25)
    _ = try broker.sluice("topic", "create", "held", "--flow", "lossless", "--without-subscribers", "hold")
      .waitForExit()
    let producer = try broker.sluice("pub", "held", "x")
    let summary = "document.querySelector('#problems summary')"
    try browser.wait(
      "\(summary)?.textContent === '25 durable cursors and groups are behind.' && document.querySelectorAll('#problems > li').length === 2"
    )
    // A kind with a single problem shows that problem.
    #expect(
      try browser.holds(
        "document.querySelector('#problems > li > a').textContent.startsWith('The producers of held are blocked')"
      ))
    #expect(try browser.holds("document.querySelector('#nav-problems').textContent === '26'"))
    #expect(try browser.holds("document.title === '(26) Sluice'"))

    // It opens, stays open while the page updates, and links to the affected topics.
    try browser.run("\(summary).click()")
    try browser.run("window.time = document.querySelector('#problems > li > .quiet').textContent")
    try browser.wait("document.querySelector('#problems > li > .quiet').textContent !== window.time")
    #expect(try browser.holds("document.querySelector('#problems details').open"))
    #expect(
      try browser.holds(
        "[...document.querySelectorAll('#problems details a')].every((link) => link.textContent.includes('Cursor billing of t'))"
      ))
    for width in [1280, 360] {
      try browser.show(width: width, dark: false)
      #expect(try browser.holds("document.documentElement.scrollWidth <= \(width)"), "\(width)")
    }
    try browser.run("document.querySelector('#problems details a').click()")
    try browser.wait("document.getElementById('detail')?.textContent.includes('billing')")
    #expect(browser.complaints == [])
    producer.stop()
  }

  @Test func theLagOfATopicIsAlsoThatOfItsCursors() throws {
    let broker = try BrokerProcess("--admin", "127.0.0.1:0")
    let client = try broker.client()
    try client.publishAll((0..<30).map { "\($0)" }, to: "orders")
    try client.moveCursor("billing", of: "orders", to: .earliest)
    let browser = try HeadlessBrowser(try #require(Chromium.path))
    try browser.open("http://\(try #require(broker.adminAddress))/#/topics")
    try browser.wait(
      "document.querySelector('tr.topic')?.lastElementChild.previousSibling.textContent === '30'")
    #expect(browser.complaints == [])
  }

  @Test func itLeadsWithProblemsThatLinkToTheirPlaces() throws {
    let broker = try BrokerProcess("--admin", "127.0.0.1:0", "--admin-problem-hold", "100ms")
    _ = try broker.sluice("topic", "create", "held", "--flow", "lossless", "--without-subscribers", "hold")
      .waitForExit()
    let producer = try broker.sluice("pub", "held", "x")
    let browser = try HeadlessBrowser(try #require(Chromium.path))
    try browser.open("http://\(try #require(broker.adminAddress))/")
    try browser.wait(
      "document.querySelector('#problems a')?.textContent.includes('The producers of held are blocked')")
    #expect(try browser.holds("document.querySelector('main h2').textContent.startsWith('Problems')"))
    // The page's other sections show the number of problems.
    #expect(try browser.holds("document.querySelector('#nav-problems').textContent === '1'"))
    #expect(try browser.holds("document.title === '(1) Sluice'"))

    // A line that changes keeps the focus.
    try browser.run("window.line = document.querySelector('#problems a'); window.line.focus()")
    try browser.run("window.time = document.querySelector('#problems .quiet').textContent")
    try browser.wait("document.querySelector('#problems .quiet').textContent !== window.time")
    #expect(try browser.holds("document.activeElement === window.line && window.line.isConnected"))
    try browser.run("document.querySelector('#problems a').click()")
    try browser.wait(
      "\(Self.row).find((button) => button.textContent === 'held')?.ariaExpanded === 'true'")
    #expect(browser.complaints == [])
    producer.stop()
  }
}
