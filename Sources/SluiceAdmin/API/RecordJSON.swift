import SluiceBroker
import SluiceCommand

/// A record in the API. What is text is `text`, anything else `hex`, cut off where it is long; `size` is what it has in fact.
enum RecordJSON {
  /// - Parameter limit: bytes of the payload that are shown.
  static func object(_ record: RecordSnapshot, limit: Int) -> JSONObject {
    var object = JSONObject()
    object.add(number: "offset", record.offset)
    object.add("time", json: String(record.time))
    if let key = record.key { object.add("key", value(key, limit: 256)) }
    if !record.headers.isEmpty {
      object.add(
        "headers",
        record.headers.prefix(32).map { header in
          var object = value(header.value, limit: 256)
          object.add("name", String(decoding: header.name, as: UTF8.self))
          return object
        })
    }
    object.add("payload", value(record.payload, limit: limit))
    return object
  }

  private static func value(_ bytes: [UInt8], limit: Int) -> JSONObject {
    var object = JSONObject()
    let shown = bytes.prefix(limit)
    object.add(number: "size", bytes.count)
    if shown.count < bytes.count { object.add("cut", true) }
    if let text = text(shown, isCut: shown.count < bytes.count) {
      object.add("text", text)
    } else {
      object.add("hex", hex(shown))
    }
    return object
  }

  /// Nil for what a person can't read. A character that was cut through is left out.
  private static func text(_ bytes: ArraySlice<UInt8>, isCut: Bool) -> String? {
    for dropped in 0...(isCut ? min(3, bytes.count) : 0) {
      guard let text = String(validating: bytes.dropLast(dropped), as: UTF8.self) else { continue }
      let isReadable = text.unicodeScalars.allSatisfy { scalar in
        scalar.properties.generalCategory != .control || scalar == "\n" || scalar == "\r" || scalar == "\t"
      }
      return isReadable ? text : nil
    }
    return nil
  }

  private static func hex(_ bytes: ArraySlice<UInt8>) -> String {
    bytes.reduce(into: "") { text, byte in
      text += byte < 16 ? "0" : ""
      text += String(byte, radix: 16)
    }
  }
}
