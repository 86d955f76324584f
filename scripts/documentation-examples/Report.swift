/// The table at the end: for each file, the number of blocks and their results.
struct Report {
  let results: [Examples.Result]

  var failures: [Failure] { results.flatMap(\.failures) }

  /// The number of blocks of a file with each outcome, in the order of the table's columns.
  private struct Row {
    var cells = [0, 0, 0, 0, 0, 0]

    init(_ result: Examples.Result) {
      cells[0] = result.count
      for (_, outcome) in result.outcomes {
        switch outcome {
        case .ran: cells[1] += 1
        case .compiled: cells[2] += 1
        case .compared: cells[3] += 1
        case .text: cells[4] += 1
        case .notRun: cells[5] += 1
        }
      }
    }
  }

  func print() {
    let rows = results.filter { $0.count > 0 || !$0.failures.isEmpty }.map { ($0.file, Row($0).cells) }
    let total = (0..<6).map { column in rows.reduce(0) { $0 + $1.1[column] } }
    let width = rows.map(\.0.count).max() ?? 0
    func line(_ name: String, _ cells: [String]) {
      let padded = cells.map { String(repeating: " ", count: max(0, 9 - $0.count)) + $0 }.joined()
      Swift.print(name + String(repeating: " ", count: width - name.count) + padded)
    }
    line("file".padded(to: min(width, 4)), ["blocks", "run", "compiled", "checked", "text", "not run"])
    for (name, cells) in rows { line(name, cells.map(String.init)) }
    line("all".padded(to: min(width, 3)), total.map(String.init))
    for result in results {
      for (block, outcome) in result.outcomes {
        if case .notRun(let reason) = outcome {
          Swift.print("\(block.file):\(block.line): not run: \(reason.rawValue)")
        }
      }
      for (block, reason) in result.lines {
        Swift.print("\(block.file):\(block.line): a line isn't run: \(reason.rawValue)")
      }
    }
  }
}

extension String {
  fileprivate func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}
