import SluiceCommand

/// The rows of `sluice top` as text.
enum TopTable {
  /// The table; with a width and a height, what fits a screen of that size.
  static func render(_ rows: [TopRow], title: String, size: (width: Int, height: Int)? = nil) -> String {
    var shown = rows[...]
    // The title, the head, and a line for what is left out.
    if let size { shown = shown.prefix(max(size.height - 3, 1)) }
    let table = TextTable.render(
      [["TOPIC", "STATE", "IN/S", "OUT/S", "SUBSCRIBERS", "PRODUCERS", "ASKED FOR", "HELD UP BY"]]
        + shown.map(cells), leftColumns: 2)
    var lines = [title] + table.split(separator: "\n").map(String.init)
    if shown.count < rows.count { lines.append("… and \(rows.count - shown.count) more") }
    if let size { lines = lines.map { fitted($0, size.width) } }
    return lines.map { $0 + "\n" }.joined()
  }

  static func title(_ rows: [TopRow], server: String) -> String {
    let (received, sent) = rows.reduce((0.0, 0.0)) { ($0.0 + $1.inRate, $0.1 + $1.outRate) }
    return
      "\(server): \(rows.count) topic\(rows.count == 1 ? "" : "s"), in \(rate(received))/s, out \(rate(sent))/s"
  }

  static func line(_ row: TopRow) -> String {
    var object = JSONObject()
    object.add("topic", row.topic)
    object.add("state", row.state)
    object.add("in_per_second", row.inRate, decimals: 1)
    object.add("out_per_second", row.outRate, decimals: 1)
    object.add("subscribers", UInt64(row.subscribers))
    object.add("producers", UInt64(row.producers))
    object.add("outstanding", row.outstanding)
    object.add("holder", row.holder ?? "")
    object.add("holding_ms", row.holding)
    object.add("waiting_producers", UInt64(row.waiting))
    return object.text + "\n"
  }

  private static func cells(_ row: TopRow) -> [String] {
    [
      row.topic, row.state, rate(row.inRate), rate(row.outRate), "\(row.subscribers)", "\(row.producers)",
      row.outstanding.map { "\($0)" } ?? "unlimited", held(row),
    ]
  }

  /// "worker[7] for 1.5s (2 wait)"
  private static func held(_ row: TopRow) -> String {
    guard let holder = row.holder, row.holding > 0 else { return "" }
    let time = TimeSpan.rounded(.milliseconds(Int64(clamping: row.holding)))
    return "\(holder) for \(time) (\(row.waiting) wait\(row.waiting == 1 ? "s" : ""))"
  }

  private static func rate(_ rate: Double) -> String {
    // Whatever a broker says of its offsets.
    Magnitude.grouped(UInt64(min(max(rate, 0), 1e18).rounded()))
  }

  private static func fitted(_ line: String, _ width: Int) -> String {
    line.count <= width ? line : line.prefix(max(width - 1, 0)) + "…"
  }
}
