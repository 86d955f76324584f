import Foundation

/// `sluice-bench summary`: medians and ratios of the reports of many runs in a file.
enum SummaryCommand {
  static let usage = """
    sluice-bench summary FILE [--json FILE]   (FILE: a report a line, as `load --json-file` appends them)
    """

  static func run(_ words: [String]) throws {
    var arguments = Arguments(words)
    let output = try arguments.text("json")
    let files = try arguments.rest()
    guard files.count == 1 else { throw UsageError("summary takes one file") }
    guard let content = FileManager.default.contents(atPath: files[0]) else {
      throw BenchError("cannot read \(files[0])")
    }
    let decoder = JSONDecoder()
    let reports = try content.split(separator: 10).map { try decoder.decode(LoadReport.self, from: $0) }
    let summary = Summary(reports)
    print(summary.rendered())
    if let output {
      let content = try summary.json(.prettyPrinted)
      guard FileManager.default.createFile(atPath: output, contents: content) else {
        throw BenchError("cannot write \(output)")
      }
    }
    if summary.workloads.contains(where: { $0.results.contains { !$0.faults.isEmpty } }) {
      throw BenchError("some runs lost or reordered records, or did not end: see above")
    }
  }
}
