import SluiceCommand
import SluiceMQTT
import SluiceHTTP
import SluiceWire

/// The format of the records in an answer.
enum HTTPRecordFormat {
  /// An object of JSON on each line.
  case lines
  /// Server-sent events, whose data are the same objects, each with an ``HTTPEventID``.
  case events
  /// The same without IDs, for records of several topics.
  case eventsOfMany
  /// The payloads without separators.
  case raw

  var contentType: String {
    switch self {
    case .lines: "application/x-ndjson"
    case .events, .eventsOfMany: "text/event-stream"
    case .raw: "application/octet-stream"
    }
  }

  /// Text without meaning that may stand between records; nil if every byte is payload.
  var filler: [UInt8]? {
    switch self {
    case .lines: [0x0A]
    case .events, .eventsOfMany: Array(":\n\n".utf8)
    case .raw: nil
    }
  }
}

/// Writes records into an answer, as JSON objects in the format of the command line, or as raw payloads.
///
/// Successive records share a topic and usually a timestamp, so the text of both is kept.
struct HTTPRecordWriter {
  let format: HTTPRecordFormat
  /// Whether the object of a request contains the address for its reply.
  let namesReply: Bool
  /// The prefix of IDs, which names the epoch of the offsets.
  private var epochText: [UInt8] = []
  private var topic = ""
  private var topicText: [UInt8] = []
  private var time = Int64.min
  private var timeText: [UInt8] = []

  init(_ format: HTTPRecordFormat, namesReply: Bool = false) {
    self.format = format
    self.namesReply = namesReply
  }

  /// Sets the epoch of the records that follow.
  mutating func begin(_ epoch: UInt64) { epochText = HTTPEventID.prefix(epoch) }

  /// Appends an event that isn't a record: a line, an event, or nothing among raw payloads.
  ///
  /// The event of the topic's end has an ID: a client that reconnects with it has received everything.
  func append(event: String, _ object: String, to output: inout [UInt8]) {
    switch format {
    case .raw: return
    case .lines:
      output += Array("{\"\(event)\":\(object)}\n".utf8)
      return
    case .events where event == "finished" || event == "failure":
      output.append("id: ")
      output += epochText
      output += Array("\(HTTPEventID.end)\n".utf8)
    case .events, .eventsOfMany: break
    }
    output += Array("event: \(event)\ndata: \(object)\n\n".utf8)
  }

  /// Appends a record.
  ///
  /// - Parameters:
  ///   - record: in place.
  ///   - topic: its topic.
  ///   - offset: its offset there.
  /// - delivery: how often a group has delivered the record, this time included; nil without a group.
  ///   - output: is appended to.
  mutating func append(
    _ record: BatchIterator.Record, topic: String, offset: UInt64, delivery: UInt32? = nil,
    to output: inout [UInt8]
  ) {
    let attributes = record.isAttributed ? try? unsafe RecordAttributes(record.body) : nil
    let payload = unsafe attributes?.payload ?? record.body
    switch format {
    case .raw: unsafe output.append(contentsOf: payload)
    case .lines:
      unsafe appendObject(record.time, attributes, payload, topic, offset, delivery, to: &output)
      output.append(0x0A)
    case .events, .eventsOfMany:
      if format == .events {
        output.append("id: ")
        output += epochText
        output.append(decimal: offset)
        output.append("\n")
      }
      output.append("data: ")
      unsafe appendObject(record.time, attributes, payload, topic, offset, delivery, to: &output)
      output.append("\n\n")
    }
  }

  private mutating func appendObject(
    _ time: Int64, _ attributes: RecordAttributes?, _ payload: UnsafeRawBufferPointer, _ topic: String,
    _ offset: UInt64, _ delivery: UInt32?, to output: inout [UInt8]
  ) {
    output.append("{\"offset\":")
    output.append(decimal: offset)
    if let delivery {
      output.append(",\"delivery\":")
      output.append(decimal: UInt64(delivery))
    }
    if topic != self.topic || topicText.isEmpty {
      self.topic = topic
      topicText = Array(",\"topic\":\(JSONText.quoted(topic)),\"time\":\"".utf8)
    }
    output += topicText
    if time != self.time || timeText.isEmpty {
      self.time = time
      timeText = Array(WallTime.format(time).utf8)
    }
    output += timeText
    output.append("\"")
    if let attributes { append(attributes, to: &output) }
    unsafe Self.append(",\"payload", payload, to: &output)
    output.append("}")
  }

  private func append(_ attributes: RecordAttributes, to output: inout [UInt8]) {
    if let key = unsafe attributes.key { unsafe Self.append(",\"key", key, to: &output) }
    var isFirst = true
    unsafe attributes.forEachHeader { name, value in
      guard unsafe !MQTTRecordHeaders.isInternal(name) else { return }
      output.append(isFirst ? ",\"headers\":[{\"name\":" : ",{\"name\":")
      isFirst = false
      unsafe Self.appendQuoted(name, to: &output)
      unsafe Self.append(",\"value", value, to: &output)
      output.append("}")
    }
    if !isFirst { output.append("]") }
    if namesReply, let path = ReplyAddress.path(of: attributes) {
      output += Array(",\"reply\":\"\(path)\"".utf8)
    }
  }

  /// Appends an object member: as text, or in base64 with `_base64` after the name if the bytes aren't text.
  private static func append(
    _ name: StaticString, _ bytes: UnsafeRawBufferPointer, to output: inout [UInt8]
  ) {
    output.append(name)
    if unsafe isPlain(bytes) {
      output.append("\":\"")
      unsafe output.append(contentsOf: bytes)
      output.append("\"")
    } else if let text = unsafe String(validating: bytes, as: UTF8.self) {
      output.append("\":")
      output += Array(JSONText.quoted(text).utf8)
    } else {
      output.append("_base64\":\"")
      output += Array(unsafe Base64.encode(Array(bytes)).utf8)
      output.append("\"")
    }
  }

  private static func appendQuoted(_ bytes: UnsafeRawBufferPointer, to output: inout [UInt8]) {
    let text = unsafe String(decoding: bytes, as: UTF8.self)
    output += Array(JSONText.quoted(text).utf8)
  }

  /// Whether all bytes can appear unescaped in a JSON string: ASCII without control characters, quotation marks and backslashes.
  private static func isPlain(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // Free of branches, so that the compiler can test many bytes in one step.
    var found: UInt8 = 0
    for index in 0..<bytes.count {
      let byte = unsafe bytes[index]
      found |= (byte &- 0x20 > 0x5E ? 1 : 0) | (byte == 0x22 ? 1 : 0) | (byte == 0x5C ? 1 : 0)
    }
    return found == 0
  }
}

extension [UInt8] {
  fileprivate mutating func append(_ text: StaticString) {
    unsafe append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  fileprivate mutating func append(decimal number: UInt64) {
    unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
      var (rest, start) = (number, 20)
      repeat {
        start -= 1
        unsafe digits[start] = UInt8(ascii: "0") + UInt8(rest % 10)
        rest /= 10
      } while rest > 0
      unsafe append(contentsOf: digits[start...])
    }
  }
}
