import SluiceClient

/// How records are written to standard output.
enum OutputFormat {
  /// The payload, and a line break behind it.
  case lines
  /// The payload and nothing else.
  case raw
  /// The length of the payload as `u32`, little-endian, and the payload.
  case frames
  /// An object a line.
  case json(RecordJSON)
  case template(RecordTemplate)

  func append(_ record: TopicRecord, deliveries: Int? = nil, to output: inout [UInt8]) {
    unsafe record.withUnsafeBytes { payload in
      unsafe append(
        payload,
        of: RecordParts(
          topic: record.topic, offset: record.offset, time: record.time, key: record.key,
          headers: record.headers, deliveries: deliveries, payload: payload), to: &output)
    }
  }

  /// - Parameter parts: asked for only where more than the payload is printed.
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
