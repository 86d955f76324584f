import SluiceWire
import Testing

@testable import SluiceTool

@Suite("The screen of top")
struct TopScreenTests {
  private func row(_ topic: String, in rate: Double = 0, _ change: (inout TopRow) -> Void = { _ in })
    -> TopRow
  {
    var row = TopRow(
      topic: topic, state: "open", inRate: rate, outRate: 0, subscribers: 2, producers: 1, outstanding: 5)
    change(&row)
    return row
  }

  private var rows: [TopRow] {
    [
      row("busy", in: 9_000), row("calm"), row("late", in: 1) { ($0.lag, $0.lagAge) = (5_000, 65_000) },
      row("held", in: 2) { row in
        (row.holder, row.holding, row.limit, row.waiting) = ("orders-ui", 12_000, .demand, 1)
        (row.lag, row.lastMinute) = (1_024, 930)
      },
    ]
  }

  private func screen(
    _ state: TopState, width: Int = 80, height: Int = 10, detail: TopicInfo? = nil, hasColours: Bool = false
  ) -> [String] {
    TopScreen.lines(
      state, rows, titles: ["here: 4 topics"], detail: detail, size: .init(width: width, height: height),
      hasColours: hasColours)
  }

  @Test("problems stand above the topics, in lines that fit, and leave room for the topics")
  func problems() {
    let sentence =
      "orders-ui on connection 7 blocks the producers of orders: it has requested nothing; blocked 93 % of the last minute, 71 % of the last five."
    let problems = (0..<4).map {
      BrokerInfo.Problem(
        severity: $0 == 0 ? .critical : .warning, since: 0,
        sentence: $0 == 0 ? "The store is full." : sentence)
    }
    func lines(_ width: Int, _ height: Int, _ count: Int = 4) -> [String] {
      TopScreen.lines(
        TopState(), rows, Array(problems.prefix(count)), titles: ["here"], detail: nil,
        size: .init(width: width, height: height),
        hasColours: false)
    }
    let large = lines(80, 24)
    #expect(large.count == 24 && large.allSatisfy { $0.count <= 80 })
    #expect(
      Array(large[1...6]) == [
        "! The store is full.",
        "! orders-ui on connection 7 blocks the producers of orders: it has requested",
        "  nothing; blocked 93 % of the last minute, 71 % of the last five.",
        "! orders-ui on connection 7 blocks the producers of orders: it has requested",
        "  nothing; blocked 93 % of the last minute, 71 % of the last five.",
        "! 1 more problem: sluice status",
      ])
    #expect(large[7].contains("TOPIC") && large[8].contains("held"))
    // At most half of a low screen.
    let low = lines(80, 9)
    #expect(low.count == 9 && low[1] == "! The store is full." && low[2].hasPrefix("! 3 more problems"))
    #expect(low[3].contains("TOPIC"))
    #expect(lines(80, 4).count == 4)
    #expect(lines(80, 24, 0)[1].contains("TOPIC"))
    #expect(lines(10, 24).allSatisfy { $0.count <= 10 })
  }

  @Test(
    "One table for a terminal has the worst topics first, and columns that fit", arguments: [40, 80, 200])
  func plain(width: Int) {
    let lines = TopScreen.plain(rows, titles: [String(repeating: "long ", count: 50), "short"], width: width)
      .split(separator: "\n")
    #expect(lines.count == 6 && lines.allSatisfy { $0.count <= width }, "\(lines)")
    #expect(lines[0] == "short")
    #expect(lines[1].hasPrefix("TOPIC") && lines[1].contains("REQUESTED") == (width == 200))
    #expect(lines.dropFirst(2).map { $0.prefix { $0 != " " } } == ["held", "late", "busy", "calm"])
  }

  private func pressed(_ text: String, from state: TopState = TopState()) -> TopState {
    var state = state
    for key in TopKey.keys(in: Array(text.utf8)) { state.press(key, rows, page: 2) }
    return state
  }

  @Test("What a terminal sends for keys")
  func keys() {
    let table: [(String, [TopKey])] = [
      ("q", [.character("q")]), ("\u{1B}[A\u{1B}OB", [.up, .down]),
      ("\u{1B}[5~\u{1B}[6~", [.pageUp, .pageDown]),
      ("\u{1B}", [.escape]), ("\u{1B}q", [.escape, .character("q")]),
      ("\r\n\u{7F}", [.enter, .enter, .backspace]),
      ("\u{1B}[H\u{1B}[4~", [.home, .end]), ("é/", [.character("é"), .character("/")]),
      // Unknown sequences and control characters are ignored.
      ("\u{1B}[15~\u{1B}[1;5C\u{01}x", [.character("x")]),
    ]
    for (text, keys) in table {
      #expect(TopKey.keys(in: Array(text.utf8)) == keys, "\(text.debugDescription)")
    }
    #expect(TopKey.keys(in: [0xC3]) == [] && TopKey.keys(in: [0xFF, 0x41]) == [.character("A")])
    #expect(TopKey.keys(in: [0x1B, 0x5B]) == [])
  }

  @Test("Held-up topics come first, then those that lag, then the busiest; s changes the order")
  func order() {
    func names(_ state: TopState) -> [String] { state.rows(of: rows).map(\.topic) }
    #expect(names(TopState()) == ["held", "late", "busy", "calm"])
    #expect(names(pressed("s")) == ["busy", "held", "late", "calm"])
    #expect(names(pressed("sss")) == ["late", "held", "busy", "calm"])
    #expect(names(pressed("S")) == ["busy", "calm", "held", "late"])
    #expect(pressed("sssss") == TopState())
  }

  @Test("The keys move the bar, and Enter opens the topic in it")
  func moving() {
    #expect(pressed("j").selected == "late" && pressed("jk").selected == "held")
    #expect(pressed("\u{1B}[B\u{1B}[B\u{1B}[B\u{1B}[B").selected == "calm")
    #expect(pressed("\u{1B}[6~").selected == "busy" && pressed("\u{1B}[F\u{1B}[H").selected == "held")
    #expect(pressed("\r").opened == "held" && pressed("j\r").opened == "late")
    let opened = pressed("\r")
    #expect(pressed("jjk", from: opened).scrolled == 1 && pressed("\u{1B}", from: opened).opened == nil)
    #expect(pressed("q").isOver && pressed("q", from: opened).isOver)
  }

  @Test("The filter takes keys until Enter, and Escape drops it")
  func filtering() {
    let filtering = pressed("/la")
    #expect(filtering.filter == "la" && filtering.isFiltering)
    #expect(filtering.rows(of: rows).map(\.topic) == ["late"])
    #expect(screen(filtering).last == "Filter: la_   Enter keeps it, Esc clears it")
    #expect(pressed("/q").filter == "q" && !pressed("/q").isOver)
    #expect(pressed("/la\u{7F}\r").filter == "l" && !pressed("/la\r").isFiltering)
    #expect(pressed("/la\u{1B}").filter == "" && pressed("/la\r\u{1B}").filter == "")
    #expect(screen(pressed("/nowhere\r"))[2] == "  no topic name contains the filter")
    #expect(pressed("/nowhere\r\r").opened == nil)
  }

  @Test("Every size has its lines: none is wider than the terminal, and the keys stand last")
  func sizes() {
    for width in 10...140 {
      for height in 2...12 {
        for state in [TopState(), pressed("jj"), pressed("\r"), pressed("/x")] {
          let lines = screen(state, width: width, height: height)
          #expect(lines.count == height, "\(width) \(height)")
          #expect(lines.allSatisfy { $0.count <= width }, "\(width) \(height)")
        }
      }
    }
  }

  @Test("The title is the longest that fits")
  func titles() {
    func first(_ width: Int) -> String {
      TopScreen.lines(
        TopState(), rows, titles: ["a long title here", "a short one", "least"], detail: nil,
        size: .init(width: width, height: 5), hasColours: false)[0]
    }
    #expect(first(17) == "a long title here" && first(16) == "a short one" && first(10) == "least")
    #expect(first(4) == "lea…")
    let row = row("t") { $0.storage = StorageStatus(state: .working, used: 959 << 17, limit: 125 << 20) }
    #expect(
      TopTable.shortTitles([row], node: "n1") == [
        "node n1: 1 topic, in 0/s, out 0/s; store: 120 MiB of 125 MiB used (95 %)",
        "node n1: 1 topic, in 0/s, out 0/s; store 95 % full",
      ])
    #expect(TopTable.shortTitles([self.row("t")]).last == "1 topic, in 0/s, out 0/s")
  }

  @Test("Eighty columns have rates, lag and what holds up the producers")
  func eighty() {
    let lines = screen(TopState())
    #expect(lines[0] == "here: 4 topics")
    for head in ["TOPIC", "IN/S", "OUT/S", "LAG", "BEHIND", "BLOCKED BY"] { #expect(lines[1].contains(head)) }
    #expect(lines[2].hasPrefix("> held") && lines[2].contains("1,024"))
    #expect(lines[2].contains("orders-ui for 12 s"))
    #expect(lines[3].hasPrefix("  late") && lines[3].contains("1 min 5 s"))
    // There is room for more in a wide terminal.
    #expect(!lines[1].contains("REQUESTED") && screen(TopState(), width: 140)[1].contains("REQUESTED"))
  }

  @Test("Names that peers choose can't control the terminal")
  func controlCharacters() {
    let strange = row("t") { ($0.holder, $0.holding) = ("\u{1B}[2J", 9_000) }
    let lines = TopScreen.lines(
      TopState(), [strange], titles: [""], detail: nil, size: .init(width: 100, height: 5), hasColours: false)
    #expect(!lines.joined().contains("\u{1B}") && lines[2].contains("\\u001b[2J"))
  }

  @Test("The bar stays on the screen")
  func scrolling() {
    let lines = screen(pressed("\u{1B}[F"), height: 5)
    #expect(lines.count == 5 && lines.contains { $0.hasPrefix("> calm") })
  }

  @Test("Without colours there is no escape sequence, and with them held-up topics are marked")
  func colours() {
    #expect(!screen(TopState()).joined().contains("\u{1B}"))
    let lines = screen(pressed("jj"), hasColours: true)
    #expect(
      lines.contains { $0.hasPrefix("\u{1B}[31m  held") }
        && lines.contains { $0.hasPrefix("\u{1B}[33m  late") })
    #expect(lines.contains { $0.hasPrefix("\u{1B}[7m> busy") && $0.hasSuffix("\u{1B}[0m") })
  }

  @Test("A topic's details are those of topic show, and scroll")
  func details() {
    let info = TopicInfo(
      summary: TopicSummary(
        topic: "held", epoch: 1, firstOffset: 0, nextOffset: 0, bytes: 0, ending: nil, subscriptions: 0,
        publications: 0), settings: TopicSettings(), subscriptions: [], publications: [])
    let opened = pressed("\r")
    #expect(
      screen(opened, detail: info)[1].hasPrefix("topic") && screen(opened, detail: info)[1].hasSuffix("held"))
    #expect(screen(pressed("j", from: opened), detail: info)[1].hasPrefix("state"))
    #expect(screen(opened)[1].contains("held"))
    // The cause of the block is shown at the top, and a long value continues in the next line.
    var held = info
    held.subscriptions = [
      .init(
        connection: 3, client: "orders-ui", stream: 1, state: .live, nextOffset: 0, granted: 0, sent: 0,
        holding: 312_900, limit: .buffer, lastMinute: 939, lastFiveMinutes: 710)
    ]
    let lines = screen(opened, width: 60, height: 12, detail: held)
    #expect(
      Array(lines[3...5]) == [
        "blocked by   orders-ui on connection 3, stream 1 (its unread",
        "             records fill the buffer), for 5 min 12 s, 93 %",
        "             of the last minute, 71 % of the last five",
      ], "\(lines)")
    #expect(lines[6].hasPrefix("epoch"))
  }
}
