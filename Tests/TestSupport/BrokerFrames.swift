import SluiceWire

/// A batch of plain records, after a time mark if `time` is given.
public func batch(_ records: [String], time: Int64? = nil) -> [UInt8] {
  var bytes: [UInt8] = []
  if let time {
    bytes = [UInt8](repeating: 0, count: RecordLayout.timeMarkSize)
    bytes.withUnsafeMutableBytes { RecordLayout.writeTimeMark(time, at: $0.baseAddress!) }
  }
  for record in records {
    let payload = Array(record.utf8)
    withUnsafeBytes(of: RecordLayout.word(.plain, length: payload.count).littleEndian) {
      bytes.append(contentsOf: $0)
    }
    bytes += payload
  }
  return bytes
}

/// A DELIVER frame.
public func deliver(
  stream: UInt32, firstOffset: UInt64, _ records: [String], time: Int64? = nil, count: UInt32? = nil
) -> [UInt8] {
  let batch = batch(records, time: time)
  var frame = [UInt8](repeating: 0, count: FrameHeader.size + DeliverHeader.size)
  frame.withUnsafeMutableBytes {
    DeliverHeader(firstOffset: firstOffset, count: count ?? UInt32(records.count))
      .write(at: $0.baseAddress!, stream: stream, batchLength: batch.count)
  }
  return frame + batch
}

extension Welcome {
  /// A WELCOME as a broker would send it.
  public static func test(
    version: UInt16 = 1, features: UInt64 = 0, maximumFrame: UInt32 = 1 << 20,
    maximumRecord: UInt32 = 1 << 16,
    maximumStreams: UInt32 = 3, keepalive: UInt32 = 1_000
  ) -> Welcome {
    Welcome(
      version: version, features: features, maximumFrame: maximumFrame, maximumRecord: maximumRecord,
      maximumStreams: maximumStreams,
      keepalive: keepalive, broker: 7, software: "test")
  }
}
