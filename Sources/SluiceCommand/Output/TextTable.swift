/// Columns of text.
public enum TextTable {
  /// Rows as lines, the columns aligned and two spaces apart: the first `leftColumns` to the left, the others, being numbers, to the right.
  ///
  /// Control characters are escaped: what a peer has named can't steer the terminal, or make up rows.
  public static func render(_ rows: [[String]], leftColumns: Int) -> String {
    let rows = rows.map { $0.map { JSONText.escaped($0, quotes: false) } }
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in
      rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
    }
    return rows.map { row in
      let cells = row.enumerated().map { column, cell in
        let space = String(repeating: " ", count: widths[column] - cell.count)
        return column < leftColumns ? cell + space : space + cell
      }
      let line = cells.joined(separator: "  ")
      return String(line[..<(line.lastIndex { $0 != " " }.map(line.index(after:)) ?? line.startIndex)]) + "\n"
    }.joined()
  }
}
