/// Medians over the runs of several cases.
struct MicroReport: Codable {
  struct Figure: Codable {
    var column: Column
    var median: Double
    var least: Double
    var most: Double
  }

  struct Row: Codable {
    var table: String
    var name: String
    var figures: [Figure]
  }

  var machine = Machine()
  var runs: Int
  var rows: [Row]

  /// Measures all cases in turn, `runs` times.
  init(_ cases: [MicroCase], runs: Int, seconds: Double) throws {
    self.runs = runs
    var readings = cases.map { _ in [Column: [Double]]() }
    var columns = cases.map { _ in [Column]() }
    for _ in 0..<runs {
      for (index, item) in cases.enumerated() {
        for reading in try item.run(seconds) {
          if readings[index][reading.column] == nil { columns[index].append(reading.column) }
          readings[index][reading.column, default: []].append(reading.value)
        }
      }
    }
    rows = cases.indices.map { index in
      Row(
        table: cases[index].table, name: cases[index].name,
        figures: columns[index].map { column in
          let values = readings[index][column] ?? []
          return Figure(
            column: column, median: Statistics.median(values) ?? 0, least: values.min() ?? 0,
            most: values.max() ?? 0)
        })
    }
  }

  /// A text table for each group of rows.
  func rendered() -> String {
    var tables: [String] = []
    for row in rows where !tables.contains(row.table) { tables.append(row.table) }
    let title = "\(machine), medians of \(runs)"
    return ([title] + tables.map(rendered)).joined(separator: "\n\n")
  }

  private func rendered(_ table: String) -> String {
    let rows = rows.filter { $0.table == table }
    var columns: [Column] = []
    for row in rows {
      for figure in row.figures where !columns.contains(figure.column) { columns.append(figure.column) }
    }
    var text = TextTable(header: [table] + columns.map(\.title) + ["spread"])
    for row in rows {
      text.add(
        [row.name]
          + columns.map { column in
            row.figures.first { $0.column == column }.map { column.text($0.median) } ?? "–"
          } + [row.figures.first.map(spread) ?? "–"])
    }
    return text.rendered()
  }

  /// The difference between the extremes of a row's first figure.
  private func spread(_ figure: Figure) -> String {
    figure.median > 0 ? "\(Int((figure.most - figure.least) / figure.median * 100)) %" : "–"
  }
}
