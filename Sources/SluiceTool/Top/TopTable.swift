import SluiceCommand
import SluiceWire

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
    let storage = rows.first { $0.storage.state != .none }.flatMap { TopicTable.storage($0.storage) }
    return
      "\(server): \(rows.count) topic\(rows.count == 1 ? "" : "s"), in \(rate(received))/s, out \(rate(sent))/s"
      + (storage.map { "; store: \($0)" } ?? "")
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
    object.add("holding_limit", HoldText.name(row.limit))
    object.add(share: "held_last_minute", row.lastMinute)
    object.add(share: "held_last_five_minutes", row.lastFiveMinutes)
    object.add("waiting_producers", UInt64(row.waiting))
    object.add("wait_reason", StorageText.reason(row.reason))
    if row.storage.state != .none {
      object.add("store_state", StorageText.state(row.storage.state))
      object.add("store_used_bytes", row.storage.used)
      object.add("store_limit_bytes", row.storage.limit == .max ? nil : row.storage.limit)
    }
    return object.text + "\n"
  }

  private static func cells(_ row: TopRow) -> [String] {
    [
      row.topic, row.state, rate(row.inRate), rate(row.outRate), "\(row.subscribers)", "\(row.producers)",
      row.outstanding.map { "\($0)" } ?? "unlimited", held(row),
    ]
  }

  /// "worker[7] for 1 min 5 s, its demand, 93 % of the last minute (2 wait)"
  private static func held(_ row: TopRow) -> String {
    let waiting = "(\(row.waiting) wait\(row.waiting == 1 ? "s" : ""))"
    if row.waited > 0 {
      return "\(StorageText.reason(row.reason)) for \(HoldText.time(row.waited)) \(waiting)"
    }
    guard let holder = row.holder, row.holding > 0 else { return "" }
    let limit = row.limit == .none ? "" : ", \(HoldText.words(row.limit))"
    return
      "\(holder) for \(HoldText.time(row.holding))\(limit), \(HoldText.share(row.lastMinute)) of the last minute \(waiting)"
  }

  private static func rate(_ rate: Double) -> String {
    // Whatever a broker says of its offsets.
    Magnitude.grouped(UInt64(min(max(rate, 0), 1e18).rounded()))
  }

  private static func fitted(_ line: String, _ width: Int) -> String {
    line.count <= width ? line : line.prefix(max(width - 1, 0)) + "…"
  }
}
