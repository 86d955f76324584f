import SluiceCommand
import SluiceWebSocket
import SluiceWire

/// How records are written into an answer.
enum HTTPRecordFormat {
  /// An object of JSON on each line.
  case lines
  /// Server-sent events, whose data are the same objects.
  case events
  /// Payloads, one behind the other.
  case raw

  var contentType: String {
    switch self {
    case .lines: "application/x-ndjson"
    case .events: "text/event-stream"
    case .raw: "application/octet-stream"
    }
  }

  /// Appends a record.
  ///
  /// - Parameters:
  ///   - record: in place.
  ///   - topic: its topic.
  ///   - offset: its offset there.
  ///   - delivery: for which time a group delivers it; nil where none does.
  ///   - namesReply: whether the object of a request has the address for its reply.
  ///   - output: is appended to.
  func append(
    _ record: BatchIterator.Record, topic: String, offset: UInt64, delivery: UInt32? = nil,
    namesReply: Bool = false, to output: inout [UInt8]
  ) {
    let attributes = record.isAttributed ? try? unsafe RecordAttributes(record.body) : nil
    let payload = unsafe attributes?.payload ?? record.body
    switch self {
    case .raw: unsafe output.append(contentsOf: payload)
    case .lines:
      unsafe Self.appendObject(record, attributes, payload, topic, offset, delivery, namesReply, to: &output)
      output.append(0x0A)
    case .events:
      output += Array("id: \(offset)\ndata: ".utf8)
      unsafe Self.appendObject(record, attributes, payload, topic, offset, delivery, namesReply, to: &output)
      output += [0x0A, 0x0A]
    }
  }

  /// Appends something that isn't a record: a line, an event, or nothing among raw payloads.
  func append(event: String, _ object: String, to output: inout [UInt8]) {
    switch self {
    case .raw: break
    case .lines: output += Array("{\"\(event)\":\(object)}\n".utf8)
    case .events: output += Array("event: \(event)\ndata: \(object)\n\n".utf8)
    }
  }

  /// The object that the command line prints, too.
  private static func appendObject(
    _ record: BatchIterator.Record, _ attributes: RecordAttributes?, _ payload: UnsafeRawBufferPointer,
    _ topic: String, _ offset: UInt64, _ delivery: UInt32?, _ namesReply: Bool,
    to output: inout [UInt8]
  ) {
    let times = delivery.map { ",\"delivery\":\($0)" } ?? ""
    output += Array(
      "{\"offset\":\(offset)\(times),\"topic\":\(JSONText.quoted(topic)),\"time\":\"\(WallTime.format(record.time))\""
        .utf8)
    if let attributes {
      if let key = unsafe attributes.key { unsafe append("key", key, to: &output) }
      var isFirst = true
      unsafe attributes.forEachHeader { name, value in
        output += Array(isFirst ? ",\"headers\":[".utf8 : ",".utf8)
        isFirst = false
        let text = unsafe String(decoding: name, as: UTF8.self)
        output += Array("{\"name\":\(JSONText.quoted(text))".utf8)
        unsafe append("value", value, to: &output)
        output.append(UInt8(ascii: "}"))
      }
      if !isFirst { output.append(UInt8(ascii: "]")) }
      if namesReply, let path = ReplyAddress.path(of: attributes) {
        output += Array(",\"reply\":\"\(path)\"".utf8)
      }
    }
    unsafe append("payload", payload, to: &output)
    output.append(UInt8(ascii: "}"))
  }

  private static func append(_ name: String, _ bytes: UnsafeRawBufferPointer, to output: inout [UInt8]) {
    if let text = unsafe String(validating: bytes, as: UTF8.self) {
      output += Array(",\"\(name)\":\(JSONText.quoted(text))".utf8)
    } else {
      output += Array(",\"\(name)_base64\":\"\(unsafe Base64.encode(Array(bytes)))\"".utf8)
    }
  }
}
