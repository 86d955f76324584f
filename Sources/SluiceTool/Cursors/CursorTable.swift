import SluiceCommand
import SluiceWire

/// Durable cursors and groups, for people and as objects of JSON.
enum CursorTable {
  static func list(_ cursors: [CursorInfo]) -> String {
    guard !cursors.isEmpty else { return "" }
    return TextTable.render(
      [["CURSOR", "KIND", "NEXT", "BEHIND", "MEMBERS", "OUTSTANDING", "IDLE"]]
        + cursors.map { cursor in
          [
            cursor.name, kind(cursor), "\(cursor.nextOffset)", "\(behind(cursor))", "\(cursor.members)",
            cursor.kind == .group ? "\(cursor.outstanding)" : "",
            cursor.idle == 0 ? "" : TimeSpan.exact(.milliseconds(Int64(clamping: cursor.idle))),
          ]
        }, leftColumns: 2)
  }

  static func line(_ cursor: CursorInfo) -> String {
    var object = JSONObject()
    object.add("cursor", cursor.name)
    object.add("kind", kind(cursor))
    // A text, as a topic's.
    object.add("epoch", TopicTable.hexadecimal(cursor.epoch))
    object.add("next_offset", cursor.nextOffset)
    object.add("behind", behind(cursor))
    object.add("members", UInt64(cursor.members))
    object.add("outstanding", cursor.outstanding)
    object.add("idle_ms", cursor.idle)
    return object.text + "\n"
  }

  static func behind(_ cursor: CursorInfo) -> UInt64 {
    cursor.end - min(cursor.end, cursor.nextOffset)
  }

  private static func kind(_ cursor: CursorInfo) -> String {
    switch cursor.kind {
    case .cursor: "cursor"
    case .group: "group"
    }
  }
}
