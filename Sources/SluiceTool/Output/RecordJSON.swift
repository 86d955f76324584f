import SluiceClient
import SluiceCommand

/// Writes records as objects of JSON, one a line:
///
/// ```
/// {"offset":7,"topic":"orders","time":"2026-02-03T04:05:06.789Z","key":"k","headers":[{"name":"n","value":"v"}],"payload":"text"}
/// ```
///
/// Key and headers are left out when there are none. A record of a group has "deliveries" behind its time. Bytes that aren't UTF-8 stand in base 64, under the name with `_base64` behind it.
final class RecordJSON {
  /// What stands between the offset and the rest, which many records in a row have in common.
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

  /// Printable ASCII that stands for itself.
  @inline(__always)
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }
}
