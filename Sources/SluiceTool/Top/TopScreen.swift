import SluiceCommand
import SluiceWire

/// The screen of `sluice top`: computes lines from a state, rows and a size.
enum TopScreen {
  /// How a part of a line is drawn.
  enum Style {
    case plain, dim, bold, bar, warning, bad
  }

  struct Size: Equatable {
    var width: Int
    var height: Int
  }

  /// The number of lines besides the rows: the title, the heading, and the keys.
  static let frame = 3

  /// The most lines of a value in a topic's description.
  private static let valueLines = 4

  /// The most problems shown, and the most lines of each.
  private static let (shownProblems, problemLines) = (3, 3)

  /// - Parameters:
  ///   - problems: the broker's problems; a low screen shows fewer.
  ///   - titles: the first one that fits is shown, the last one if none does.
  ///   - detail: the description of the opened topic; nil while it isn't known.
  ///   - hasColours: whether lines have escape sequences for colors. Without them, `>` marks the selected row.
  static func lines(
    _ state: TopState, _ rows: [TopRow], _ problems: [BrokerInfo.Problem] = [], titles: [String],
    detail: TopicInfo?, size: Size, hasColours: Bool
  ) -> [String] {
    let title = titles.first { $0.count <= size.width } ?? titles.last ?? ""
    var lines = [drawn(fitted(ShownText.line(title), size.width), .bold, hasColours)]
    lines += self.lines(of: problems, atMost: (size.height - frame) / 2, size.width, hasColours)
    let room = max(size.height - frame + 1 - lines.count, 1)
    if let opened = state.opened {
      let text =
        detail.map { TopicTable.show($0) }
        ?? "topic  \(ShownText.line(opened))\n\nThe topic doesn't exist, or its details haven't arrived yet.\n"
      let all = folded(text.split(separator: "\n", omittingEmptySubsequences: false).dropLast(), size.width)
      let first = min(state.scrolled, max(all.count - room - 1, 0))
      lines += all.dropFirst(first).prefix(room + 1).map { fitted(String($0), size.width) }
    } else {
      lines += table(state, rows, room: room, size, hasColours: hasColours)
    }
    lines += Array(repeating: "", count: max(size.height - 1 - lines.count, 0))
    return lines.prefix(max(size.height - 1, 1)) + [
      drawn(fitted(keys(state, size.width), size.width), .dim, hasColours)
    ]
  }

  /// One table for a terminal of that width: the screen's columns, without keys, selection and colors.
  ///
  /// - Parameters:
  ///   - rows: the rows of the last sample.
  ///   - titles: the first one that fits is shown, the last one if none does.
  ///   - width: the terminal's width in characters.
  static func plain(_ rows: [TopRow], titles: [String], width: Int) -> String {
    let title = titles.first { $0.count <= width } ?? titles.last ?? ""
    // The selection mark takes two columns, which are free here.
    let lines = table(
      TopState(), rows, room: max(rows.count, 1), Size(width: width + 2, height: 0), hasColours: false)
    return ([fitted(ShownText.line(title), width)] + lines.map { String($0.dropFirst(2)) }).map { $0 + "\n" }
      .joined()
  }

  /// The problems, each in a line or two, and how many more there are.
  private static func lines(
    of problems: [BrokerInfo.Problem], atMost most: Int, _ width: Int, _ hasColours: Bool
  ) -> [String] {
    var lines: [String] = []
    var shown = 0
    for problem in problems.prefix(shownProblems) {
      let isCritical = problem.severity == .critical
      let text = wrapped(ShownText.line(problem.sentence), "! ", width, lines: problemLines)
      // Leaves a line for the number of other problems.
      guard lines.count + text.count + (shown + 1 < problems.count ? 1 : 0) <= most else { break }
      lines += text.map { drawn($0, isCritical ? .bad : .warning, hasColours) }
      shown += 1
    }
    let rest = problems.count - shown
    if rest > 0, lines.count < most {
      lines.append(
        drawn(
          fitted(
            "! \(rest) \(shown == 0 ? "" : "more ")problem\(rest == 1 ? "" : "s"): sluice status", width),
          .warning, hasColours))
    }
    return lines
  }

  /// The text in lines that break between words; the last line is cut.
  private static func wrapped(_ text: String, _ mark: String, _ width: Int, lines most: Int) -> [String] {
    var lines: [String] = []
    var rest = text[...]
    let room = max(width - mark.count, 1)
    while !rest.isEmpty {
      let indent = lines.isEmpty ? mark : String(repeating: " ", count: mark.count)
      guard rest.count > room, lines.count + 1 < most else {
        lines.append(fitted(indent + rest, width))
        break
      }
      let line = rest.prefix(room + 1)
      let end = line.lastIndex(of: " ") ?? line.index(line.startIndex, offsetBy: room)
      lines.append(indent + rest[..<end])
      rest = rest[end...].drop { $0 == " " }
    }
    return lines
  }

  /// The lines of a topic's description. Values before the first table are wrapped to the width.
  private static func folded(_ lines: some Collection<Substring>, _ width: Int) -> [String] {
    let values = lines.prefix { !$0.isEmpty }
    return values.flatMap { line -> [String] in
      guard let gap = line.firstRange(of: "  ") else { return [String(line)] }
      let value = line[gap.upperBound...].drop { $0 == " " }
      return wrapped(String(value), String(line[..<value.startIndex]), width, lines: valueLines)
    } + lines.dropFirst(values.count).map(String.init)
  }

  private static func keys(_ state: TopState, _ width: Int) -> String {
    if state.isFiltering { return "Filter: \(state.filter)_   Enter keeps it, Esc clears it" }
    if state.opened != nil { return "Esc back   Up/Down scroll   q quit" }
    let filter = state.filter.isEmpty ? "/ filter" : "/ filter: \(state.filter)"
    let rest = "Enter topic   s sort: \(state.sort.rawValue)   \(filter)"
    let all = "q quit   Up/Down select   \(rest)"
    return all.count <= width ? all : "q quit   \(rest)"
  }

  /// A column: its heading, its text, and its order of removal on a narrow screen; 0 is never removed.
  private struct Column {
    var head: String
    var dropped: Int
    var text: (TopRow) -> String
  }

  private static var columns: [Column] {
    [
      Column(head: "IN/S", dropped: 0) { TopTable.rate($0.inRate) },
      Column(head: "OUT/S", dropped: 0) { TopTable.rate($0.outRate) },
      Column(head: "LAG", dropped: 0) { TopTable.lag($0) },
      Column(head: "BEHIND", dropped: 1) {
        $0.isMeasured ? ($0.lagAge == 0 ? "" : HoldText.time($0.lagAge)) : TopTable.unknown
      },
      Column(head: "SUBS", dropped: 2) { "\($0.subscribers)" },
      Column(head: "PRODS", dropped: 3) { "\($0.producers)" },
      Column(head: "REQUESTED", dropped: 4) { $0.outstanding.map { "\($0)" } ?? "unlimited" },
    ]
  }

  private static func table(
    _ state: TopState, _ rows: [TopRow], room: Int, _ size: Size, hasColours: Bool
  ) -> [String] {
    let all = state.rows(of: rows)
    let place = all.firstIndex { $0.topic == state.selected } ?? 0
    // Keeps the selected row on the screen.
    let first = max(min(place - room / 2, all.count - room), 0)
    let shown = all.dropFirst(first).prefix(room)
    let held = shown.contains { !TopTable.held($0).isEmpty }
    // A topic's name has at least 16 columns, and the blocking client with its time 26.
    let holder = held ? 28 : 0
    let fixed = 2 + 16 + holder
    var chosen = columns
    var widths: [Int] = []
    repeat {
      widths = chosen.map { column in shown.map { column.text($0).count }.reduce(column.head.count, max) + 2 }
      guard fixed + widths.reduce(0, +) > size.width,
        let last = chosen.indices.filter({ chosen[$0].dropped > 0 }).max(by: {
          chosen[$0].dropped < chosen[$1].dropped
        })
      else { break }
      chosen.remove(at: last)
    } while true
    let rest = max(size.width - 2 - widths.reduce(0, +), 16)
    let longest = shown.map(\.topic.count).max() ?? 5
    let name = min(max(longest, 16), max(rest - holder, 16))
    func line(_ mark: String, _ topic: String, _ cells: [String], _ held: String) -> String {
      var text = "\(mark) " + padded(fitted(ShownText.line(topic), name), name)
      for (cell, width) in zip(cells, widths) {
        text += String(repeating: " ", count: max(width - cell.count, 1)) + cell
      }
      return fitted(held.isEmpty ? text : "\(text)  \(ShownText.line(held))", size.width)
    }
    var lines = [
      drawn(line(" ", "TOPIC", chosen.map(\.head), held ? "BLOCKED BY" : ""), .dim, hasColours)
    ]
    for row in shown {
      let isSelected = row.topic == all[place].topic
      let text = line(isSelected ? ">" : " ", row.topic, chosen.map { $0.text(row) }, TopTable.held(row))
      let style: Style =
        isSelected ? .bar : row.isHeldUp ? .bad : row.lagAge >= TopRow.lagging ? .warning : .plain
      lines.append(drawn(isSelected ? padded(text, size.width) : text, style, hasColours))
    }
    let none = state.filter.isEmpty ? "  no topics" : "  no topic name contains the filter"
    if all.isEmpty { lines.append(fitted(none, size.width)) }
    return lines
  }

  private static func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(width - text.count, 0))
  }

  private static func fitted(_ text: String, _ width: Int) -> String {
    text.count <= width ? text : text.prefix(max(width - 1, 0)) + "…"
  }

  private static func drawn(_ text: String, _ style: Style, _ hasColours: Bool) -> String {
    guard hasColours else { return text }
    let code =
      switch style {
      case .plain: ""
      case .dim: "2"
      case .bold: "1"
      case .bar: "7"
      case .warning: "33"
      case .bad: "31"
      }
    return code.isEmpty ? text : "\u{1B}[\(code)m\(text)\u{1B}[0m"
  }
}

extension TopRow {
  /// The age from which a lag is marked, in milliseconds.
  static let lagging: UInt64 = 10_000

  var isHeldUp: Bool { holding > 0 || waited > 0 }

  /// The urgency of a topic: blocked producers come before lag; 0 without either.
  var trouble: UInt64 {
    if isHeldUp { return (1 << 62) + min(max(holding, waited), 1 << 60) }
    return lagAge >= Self.lagging ? lagAge : 0
  }
}
