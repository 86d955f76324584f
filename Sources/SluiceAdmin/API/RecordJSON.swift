import SluiceBroker
import SluiceCommand
import SluiceWire

/// A record in the API. Text is in `text`, other bytes are in `hex`, both cut at a limit; `size` is the full number of bytes.
enum RecordJSON {
  /// Records, the searched range of offsets, and the amount of data searched.
  static func page(_ page: RecordPage, of topic: String, limit: Int) -> JSON {
    [
      "topic": .text(topic), "firstOffset": .exact(page.firstOffset), "nextOffset": .exact(page.nextOffset),
      "from": .exact(page.from), "through": .exact(page.through),
      "scanned": [
        "records": .exact(page.scannedRecords), "bytes": .exact(page.scannedBytes),
        "stopped": .flag(page.isCut),
      ],
      "records": .array(page.records.map { object($0, limit: limit) }),
    ]
  }

  /// - Parameter limit: the most bytes of the payload to show.
  static func object(_ record: RecordSnapshot, limit: Int) -> JSON {
    let headers = record.headers.prefix(32).map { header in
      value(header.value, limit: 256) + ["name": .text(String(decoding: header.name, as: UTF8.self))]
    }
    return [
      "offset": .exact(record.offset), "time": .number(record.time),
      "key": record.key.map { value($0, limit: 256) }, "headers": headers.isEmpty ? nil : .array(headers),
      "payload": value(record.payload, limit: limit),
    ]
  }

  private static func value(_ bytes: [UInt8], limit: Int) -> JSON {
    let shown = bytes.prefix(limit)
    let isCut = shown.count < bytes.count
    let text = text(shown, isCut: isCut)
    return [
      "size": .exact(bytes.count), "cut": isCut ? .flag(true) : nil, "text": text.map { .text($0) },
      "hex": text == nil ? .text(hex(shown)) : nil,
    ]
  }

  /// The bytes as text; nil if they aren't UTF-8 or contain control characters. A character that the limit cuts in two is left out.
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
