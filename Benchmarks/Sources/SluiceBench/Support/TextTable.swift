/// Columns of text: the first aligned left, the others right.
struct TextTable {
  private var rows: [[String]] = []

  init(header: [String]) {
    rows.append(header)
  }

  mutating func add(_ row: [String]) {
    rows.append(row)
  }

  /// The lines, two spaces between columns, a rule beneath the header.
  func rendered() -> String {
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in
      rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
    }
    var lines = rows.map { row in
      row.enumerated().map { column, cell in
        let padding = String(repeating: " ", count: widths[column] - cell.count)
        return column == 0 ? cell + padding : padding + cell
      }.joined(separator: "  ")
    }
    lines.insert(widths.map { String(repeating: "-", count: $0) }.joined(separator: "  "), at: 1)
    return lines.joined(separator: "\n")
  }
}
