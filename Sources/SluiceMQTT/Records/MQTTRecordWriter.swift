import SluiceWire

/// Converts messages to records.
package enum MQTTRecordWriter {
  /// Appends a message as a record to a batch: see ``RecordLayout`` and ``MQTTRecordHeaders``.
  ///
  /// - Parameters:
  ///   - key: the record's key, which replaces a key of the message.
  /// - Returns: false, with nothing appended, if the message has more parts than a record can have.
  package static func append(
    _ message: MQTTPublish, key: UnsafeRawBufferPointer? = nil, to batch: inout [UInt8]
  ) -> Bool {
    if unsafe key == nil && message.properties.bytes.isEmpty { return appendPlain(message, to: &batch) }
    let start = batch.count
    var writer = ByteWriter(batch)
    batch = []
    writer.integer(RecordLayout.word(.attributed, length: 0))
    let isAppended = unsafe append(message, key: key, start, &writer)
    batch = writer.bytes
    if !isAppended { batch.removeLast(batch.count - start) }
    return isAppended
  }

  /// Appends a message without key and properties: the frequent case.
  ///
  /// ```
  ///  0        4   5        7        9       13           17
  ///  +--------+---+--------+--------+--------+-----------+-------+----------+
  ///  | word   | 2 | 1      | 4      | mqtt   | 1         | flags | payload …|
  ///  +--------+---+--------+--------+--------+-----------+-------+----------+
  /// ```
  private static func appendPlain(_ message: MQTTPublish, to batch: inout [UInt8]) -> Bool {
    let length = unsafe 14 + message.payload.count
    guard length <= RecordLayout.maximumBody else { return false }
    let flags = MQTTRecordFlags(qos: message.qos, isRetained: message.isRetained)
    let word = UInt64(RecordLayout.word(.attributed, length: length))
    let start = word | UInt64(RecordAttributes.Flag.headers) << 32 | 1 << 40 | 4 << 56
    let mqtt: UInt64 = 0x7474_716D
    let middle = mqtt << 8 | 1 << 40
    let end = UInt16(flags.byte) << 8
    unsafe batch.append(room: 18 + message.payload.count) { position in
      unsafe position.storeBytes(of: start.littleEndian, as: UInt64.self)
      unsafe position.storeBytes(of: middle.littleEndian, toByteOffset: 8, as: UInt64.self)
      unsafe position.storeBytes(of: end.littleEndian, toByteOffset: 16, as: UInt16.self)
      unsafe position += 18
      unsafe position.write(message.payload)
    }
    return true
  }

  private static func append(
    _ message: MQTTPublish, key: UnsafeRawBufferPointer?, _ start: Int, _ writer: inout ByteWriter
  ) -> Bool {
    var key = unsafe key
    var count = 1
    var format: MQTTRecordFlags.Format?
    if unsafe !message.properties.bytes.isEmpty {
      message.properties.forEachProperty { item in
        switch item.property {
        case .payloadFormat: format = MQTTRecordFlags.Format(rawValue: item.number)
        case .userProperty where unsafe MQTTRecordHeaders.isEqual(item.value, MQTTRecordHeaders.key):
          if unsafe key == nil { unsafe key = unsafe item.second }
        case .contentType, .responseTopic, .correlationData, .messageExpiry, .userProperty: count += 1
        default: break
        }
      }
    }
    guard count <= Int(UInt16.max) else { return false }
    let hasKey = unsafe key != nil
    writer.integer(RecordAttributes.Flag.headers | (hasKey ? RecordAttributes.Flag.key : 0))
    if let key = unsafe key {
      writer.integer(UInt16(truncatingIfNeeded: min(key.count, Int(UInt16.max))))
      unsafe writer.raw(UnsafeRawBufferPointer(rebasing: key[..<min(key.count, Int(UInt16.max))]))
    }
    writer.integer(UInt16(count))
    let flags = MQTTRecordFlags(qos: message.qos, isRetained: message.isRetained, format: format)
    writer.string(MQTTRecordHeaders.flags)
    writer.integer(UInt32(1))
    writer.integer(flags.byte)
    if count > 1 { message.properties.forEachProperty { append($0, &writer) } }
    unsafe writer.raw(message.payload)
    let length = writer.bytes.count - start - RecordLayout.wordSize
    guard length <= RecordLayout.maximumBody else { return false }
    let word = RecordLayout.word(.attributed, length: length)
    unsafe writer.bytes.withUnsafeMutableBytes {
      unsafe $0.storeBytes(of: word.littleEndian, toByteOffset: start, as: UInt32.self)
    }
    return true
  }

  private static func append(_ item: MQTTPropertyView.Item, _ writer: inout ByteWriter) {
    switch item.property {
    case .contentType:
      writer.string(MQTTRecordHeaders.contentType)
      unsafe append(item.value, &writer)
    case .correlationData:
      writer.string(MQTTRecordHeaders.correlationID)
      unsafe append(item.value, &writer)
    case .responseTopic:
      let name = try? MQTTTopicName.brokerName(item.string)
      writer.string(name == nil ? MQTTRecordHeaders.foreignReplyTo : MQTTRecordHeaders.replyTo)
      unsafe Array((name ?? item.string).utf8).withUnsafeBytes { unsafe append($0, &writer) }
    case .messageExpiry:
      writer.string(MQTTRecordHeaders.expiry)
      unsafe Array(String(item.number).utf8).withUnsafeBytes { unsafe append($0, &writer) }
    case .userProperty where unsafe MQTTRecordHeaders.isEqual(item.value, MQTTRecordHeaders.key): break
    case .userProperty:
      if unsafe MQTTRecordHeaders.known(item.value) == .other {
        unsafe writer.integer(UInt16(item.value.count))
        unsafe writer.raw(item.value)
      } else {
        writer.string(MQTTRecordHeaders.userPrefix + item.string)
      }
      unsafe append(item.second, &writer)
    default: break
    }
  }

  private static func append(_ value: UnsafeRawBufferPointer, _ writer: inout ByteWriter) {
    writer.integer(UInt32(value.count))
    unsafe writer.raw(value)
  }
}
