/// The state of the view in `sluice top`. A value type: keys change it.
struct TopState: Equatable {
  /// The order of the topics.
  enum Sort: String, CaseIterable {
    /// Topics with blocked producers first, then lagging ones, then the busiest.
    case trouble
    case received = "in"
    case sent = "out"
    case lag
    case name
  }

  var sort = Sort.trouble
  var filter = ""
  /// Whether keys go to the filter.
  var isFiltering = false
  /// The selected topic; nil for the first one.
  var selected: String?
  /// The topic whose details are shown.
  var opened: String?
  /// The number of lines by which the details are scrolled.
  var scrolled = 0
  var isOver = false

  /// Whether a topic matches the filter.
  func selects(_ topic: String) -> Bool { filter.isEmpty || topic.contains(filter) }

  /// The rows that are shown, in order.
  func rows(of rows: [TopRow]) -> [TopRow] {
    let shown = rows.filter { selects($0.topic) }
    func less(_ left: TopRow, _ right: TopRow) -> Bool {
      switch sort {
      case .name: return left.topic < right.topic
      case .received where left.inRate != right.inRate: return left.inRate > right.inRate
      case .sent where left.outRate != right.outRate: return left.outRate > right.outRate
      case .lag where left.lagAge != right.lagAge: return left.lagAge > right.lagAge
      case .lag where left.lag != right.lag: return left.lag > right.lag
      case .trouble:
        if left.trouble != right.trouble { return left.trouble > right.trouble }
        let (a, b) = (left.inRate + left.outRate, right.inRate + right.outRate)
        return a != b ? a > b : left.topic < right.topic
      default: return left.topic < right.topic
      }
    }
    return shown.sorted(by: less)
  }

  /// - Parameters:
  ///   - rows: the rows of the last sample.
  ///   - page: the number of rows that fit the screen.
  mutating func press(_ key: TopKey, _ rows: [TopRow], page: Int) {
    if isFiltering { return type(key) }
    if opened != nil { return pressInDetails(key, page: page) }
    let shown = self.rows(of: rows)
    let place = shown.firstIndex { $0.topic == selected } ?? 0
    func select(_ index: Int) -> String? {
      shown.isEmpty ? nil : shown[min(max(index, 0), shown.count - 1)].topic
    }
    switch key {
    case .up, .character("k"): selected = select(place - 1)
    case .down, .character("j"): selected = select(place + 1)
    case .pageUp: selected = select(place - max(page, 1))
    case .pageDown: selected = select(place + max(page, 1))
    case .home: selected = select(0)
    case .end: selected = select(shown.count - 1)
    case .enter: (opened, scrolled) = (select(place), 0)
    case .escape: filter = ""
    case .character("/"): isFiltering = true
    case .character("s"): sort = Self.next(sort, 1)
    case .character("S"): sort = Self.next(sort, -1)
    case .character("q"), .character("Q"): isOver = true
    case .character, .backspace: break
    }
  }

  private mutating func type(_ key: TopKey) {
    switch key {
    case .enter: isFiltering = false
    case .escape: (isFiltering, filter) = (false, "")
    case .backspace: filter = String(filter.dropLast())
    case .character(let character): filter.append(character)
    default: break
    }
  }

  private mutating func pressInDetails(_ key: TopKey, page: Int) {
    switch key {
    case .escape, .enter, .backspace: opened = nil
    case .up, .character("k"): scrolled = max(scrolled - 1, 0)
    case .down, .character("j"): scrolled += 1
    case .pageUp: scrolled = max(scrolled - page, 0)
    case .pageDown: scrolled += page
    case .home: scrolled = 0
    case .character("q"), .character("Q"): isOver = true
    default: break
    }
  }

  private static func next(_ sort: Sort, _ step: Int) -> Sort {
    let all = Sort.allCases
    let index = all.firstIndex(of: sort) ?? 0
    return all[(index + step + all.count) % all.count]
  }
}
