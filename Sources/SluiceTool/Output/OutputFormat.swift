import SluiceClient
import SluiceCommand
import SluiceWire

/// The format of records on standard output.
enum OutputFormat {
  /// The payload and a line break.
  case lines
  /// The payload and nothing else.
  case raw
  /// The length of the payload as `u32`, little-endian, and the payload.
  case frames
  /// An object a line.
  case json(RecordJSON)
  case template(RecordTemplate)

  /// - Parameter isShown: whether the output is a terminal, which must not execute control sequences of a record.
  func append(
    _ record: TopicRecord, deliveries: Int? = nil, isShown: Bool = false, to output: inout [UInt8]
  ) {
    unsafe record.withUnsafeBytes { payload in
      let parts = unsafe RecordParts(
        topic: record.topic, offset: record.offset, time: record.time.millisecondsSince1970, key: record.key,
        headers: record.headers, deliveries: deliveries, payload: payload)
      guard isShown else { return unsafe append(payload, of: parts, to: &output) }
      append(shown: parts, to: &output)
    }
  }

  /// Writes the record for a terminal, with escapes in everything that its producer chose, except for `--raw`.
  func append(shown parts: RecordParts, to output: inout [UInt8]) {
    switch self {
    case .raw, .frames, .json: unsafe append(parts.payload, of: parts, to: &output)
    case .lines, .template:
      let payload = unsafe Array(ShownText.escaped(bytes: parts.payload, in: .lines).utf8)
      unsafe payload.withUnsafeBytes { payload in
        var shown = parts
        shown.topic = ShownText.line(parts.topic)
        shown.key = parts.key.map { Array(ShownText.escaped(bytes: $0, in: .line).utf8) }
        shown.headers = parts.headers.map {
          Message.Header(ShownText.line($0.name), Array(ShownText.escaped(bytes: $0.value, in: .line).utf8))
        }
        shown.size = unsafe parts.payload.count
        unsafe shown.payload = payload
        unsafe append(payload, of: shown, to: &output)
      }
    }
  }

  /// - Parameter parts: evaluated only if more than the payload is printed.
  func append(
    _ payload: UnsafeRawBufferPointer, of parts: @autoclosure () -> RecordParts, to output: inout [UInt8]
  ) {
    switch self {
    case .lines:
      unsafe output.append(contentsOf: payload)
      output.append(UInt8(ascii: "\n"))
    case .raw:
      unsafe output.append(contentsOf: payload)
    case .frames:
      unsafe withUnsafeBytes(of: UInt32(payload.count).littleEndian) { unsafe output.append(contentsOf: $0) }
      unsafe output.append(contentsOf: payload)
    case .json(let json):
      json.append(parts(), to: &output)
    case .template(let template):
      template.append(parts(), to: &output)
    }
  }
}

/// The parts of a record that can be printed.
@safe
struct RecordParts {
  var topic: String
  var offset: UInt64
  /// Milliseconds since 1970.
  var time: Int64
  var key: [UInt8]?
  var headers: [Message.Header]
  /// How many times the group has delivered it, this one included; nil without a group.
  var deliveries: Int?
  /// Valid for the lifetime of the record.
  var payload: UnsafeRawBufferPointer
  /// The size of the published payload; nil for the size of ``payload``.
  var size: Int?
}

/// Writes records as objects of JSON, one a line:
///
/// ```
/// {"offset":7,"topic":"orders","time":"2026-02-03T04:05:06.789Z","key":"k","headers":[{"name":"n","value":"v"}],"payload":"text"}
/// ```
///
/// Key and headers are left out if the record has none. A record of a group has "deliveries" after its time. Bytes that aren't UTF-8 are encoded in base 64,
/// under the name with `_base64` appended.
final class RecordJSON {
  /// The last topic and time as JSON, since many records in a row share them.
  private var common: (topic: String, time: Int64, text: [UInt8]) = ("", 0, [])

  func append(_ record: RecordParts, to output: inout [UInt8]) {
    output.append(contentsOf: "{\"offset\":".utf8)
    Decimal.append(record.offset, to: &output)
    appendCommon(record, to: &output)
    if let deliveries = record.deliveries {
      output.append(contentsOf: ",\"deliveries\":".utf8)
      Decimal.append(UInt64(deliveries), to: &output)
    }
    if let key = record.key { unsafe key.withUnsafeBytes { unsafe append("key", $0, to: &output) } }
    if !record.headers.isEmpty { append(record.headers, to: &output) }
    unsafe append("payload", record.payload, to: &output)
    output.append(contentsOf: "}\n".utf8)
  }

  private func appendCommon(_ record: RecordParts, to output: inout [UInt8]) {
    if record.time != common.time || common.text.isEmpty || record.topic != common.topic {
      let text = ",\"topic\":\(JSONText.quoted(record.topic)),\"time\":\"\(WallTime.format(record.time))\""
      common = (record.topic, record.time, Array(text.utf8))
    }
    output += common.text
  }

  private func append(_ headers: [Message.Header], to output: inout [UInt8]) {
    output.append(contentsOf: ",\"headers\":[".utf8)
    for (index, header) in headers.enumerated() {
      if index > 0 { output.append(UInt8(ascii: ",")) }
      output.append(contentsOf: "{\"name\":\(JSONText.quoted(header.name))".utf8)
      unsafe header.value.withUnsafeBytes { unsafe append("value", $0, to: &output) }
      output.append(UInt8(ascii: "}"))
    }
    output.append(UInt8(ascii: "]"))
  }

  private func append(_ name: String, _ bytes: UnsafeRawBufferPointer, to output: inout [UInt8]) {
    output.append(contentsOf: ",\"".utf8)
    output.append(contentsOf: name.utf8)
    if unsafe bytes.allSatisfy(Self.isPlain) {
      output.append(contentsOf: "\":\"".utf8)
      unsafe output.append(contentsOf: bytes)
      output.append(UInt8(ascii: "\""))
    } else if let text = unsafe String(validating: bytes, as: UTF8.self) {
      output.append(contentsOf: "\":".utf8)
      output.append(contentsOf: JSONText.quoted(text).utf8)
    } else {
      output.append(contentsOf: "_base64\":\"".utf8)
      unsafe Base64.append(bytes, to: &output)
      output.append(UInt8(ascii: "\""))
    }
  }

  /// Printable ASCII that needs no escape in JSON.
  @inline(__always)
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }
}

/// Writes numbers as digits without allocating a string.
enum Decimal {
  static func append(_ number: UInt64, to output: inout [UInt8]) {
    unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
      var position = 20
      var rest = number
      repeat {
        position -= 1
        unsafe digits.initializeElement(at: position, to: UInt8(ascii: "0") + UInt8(rest % 10))
        rest /= 10
      } while rest > 0
      unsafe output.append(contentsOf: UnsafeBufferPointer(rebasing: digits[position...]))
    }
  }
}

/// Base 64 of RFC 4648, with padding.
enum Base64 {
  private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func append(_ bytes: UnsafeRawBufferPointer, to output: inout [UInt8]) {
    output.reserveCapacity(output.count + (bytes.count + 2) / 3 * 4)
    var position = 0
    while position < bytes.count {
      let count = min(3, bytes.count - position)
      var group: UInt32 = 0
      for index in 0..<3 {
        group = unsafe group << 8 | (index < count ? UInt32(bytes[position + index]) : 0)
      }
      for index in 0..<4 {
        let letter = letters[Int(group >> (18 - 6 * UInt32(index)) & 63)]
        output.append(index <= count ? letter : UInt8(ascii: "="))
      }
      position += 3
    }
  }
}
