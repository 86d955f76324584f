import SluiceBroker
import SluiceCommand
import SluiceWire

extension RecordQuery {
  /// Takes the query's parameters from a target: `from` or `before`, `key`, `text`, `count`.
  ///
  /// - Throws: 400 with the reason.
  init(_ target: inout RequestTarget, _ limits: AdminLimits) throws(AdminProblem) {
    let start: Start
    switch (target.take("from"), target.take("before")) {
    case (nil, nil): start = .before(nil)
    case (let text?, nil): start = .from(try Self.position(text, named: "from"))
    case (nil, let text?):
      guard let offset = UInt64(text) else { throw .badRequest("before: '\(text)' isn't an offset") }
      start = .before(offset)
    case (_?, _?): throw .badRequest("state from, or before; not both")
    }
    self.init(
      start, key: target.take("key").map { Array($0.utf8) }, text: Array((target.take("text") ?? "").utf8),
      count: try target.takeCount("count", standard: 20, most: limits.records), bytes: limits.recordBytes,
      scannedBytes: limits.scannedBytes)
  }

  /// Parses the positions of ``Values/position(_:)``, and `time:-10m`.
  ///
  /// - Parameters:
  ///   - name: the parameter's name in messages.
  ///   - others: words that the caller accepts, for messages.
  static func position(_ text: String, named name: String, or others: String = "") throws(AdminProblem)
    -> Subscribe.Start
  {
    if case ("time", let time?) = Values.word(text), time.hasPrefix("-") {
      if let ago = try? TimeSpan.milliseconds(String(time.dropFirst())) { return .time(WallTime.now - ago) }
    } else if let start = Values.position(text) {
      return start
    }
    throw .badRequest(
      "\(name): '\(text)' isn't a start; it can be \(others)earliest, last:N, offset:K, time:2026-02-03T04:05:06Z or time:-10m"
    )
  }
}
