import SluiceWire

/// One PUBLISH frame per batch, within the broker's grant; acknowledged, if enabled, when the records are in the log.
struct SluicePublisher: PublisherCodec {
  var replies = Replies()
  /// The number of records that may be published, within both limits of the grant.
  private(set) var granted: UInt64
  var acknowledged: UInt64? { isAcknowledged ? through : nil }
  private let isAcknowledged: Bool
  private var through: UInt64 = 0
  private let template: BatchTemplate

  init(_ target: LoadTarget, _ index: Int, granted: UInt64, bytes: UInt64) {
    isAcknowledged = target.isAcknowledged
    self.granted = min(granted, bytes / UInt64(RecordLayout.wordSize + target.size))
    let word = withUnsafeBytes(of: RecordLayout.word(.plain, length: target.size).littleEndian) { Array($0) }
    template = BatchTemplate(
      publisher: index, target,
      header: [UInt8](repeating: 0, count: FrameHeader.size + PublishHeader.size), prefix: word)
  }

  mutating func encode(first: UInt64, count: Int, stamp: UInt64) -> UnsafeRawBufferPointer {
    let bytes = template.fill(first: first, count: count, stamp: stamp)
    PublishHeader(firstSequence: first, count: UInt32(count))
      .write(at: template.buffer.base, stream: 1, batchLength: count * template.stride)
    return bytes
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    var position = 0
    while let (header, body) = SluiceControl.frame(bytes, at: position) {
      switch header.type {
      case .ack: through = max(through, try Ack(body: body).through)
      case .demand:
        let demand = try Demand(body: body)
        granted = max(granted, min(demand.grantedThrough, demand.bytesThrough / UInt64(template.stride)))
      default: try SluiceControl.take(header, body, &replies)
      }
      position += FrameHeader.size + body.count
    }
    return position
  }
}

/// Reads deliveries as they arrive, record by record, and grants demand: unlimited, or a number of records ahead.
struct SluiceSubscriber: SubscriberCodec {
  var replies = Replies()
  /// The cumulative demand that was last sent.
  private(set) var granted: UInt64
  private let size: Int
  private let demand: UInt64?
  /// Records announced by the deliveries so far.
  private var announced: UInt64 = 0
  /// Bytes of the present delivery that haven't arrived yet.
  private var remaining = 0

  init(_ target: LoadTarget) {
    size = target.size
    demand = target.demand.map { UInt64($0) }
    granted = demand ?? .max
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer, into sink: inout some RecordSink) throws -> Int {
    var position = 0
    while true {
      if remaining > 0 {
        let used = try takeRecords(bytes, from: position, into: &sink)
        position += used
        remaining -= used
        if remaining > 0 { break }
      }
      guard let used = try takeHeader(bytes, at: position) else { break }
      position += used
    }
    grantMore()
    return position
  }

  /// Passes on the complete records of the present delivery. Returns the bytes used.
  @inline(__always)
  private func takeRecords<Sink: RecordSink>(
    _ bytes: UnsafeRawBufferPointer, from start: Int, into sink: inout Sink
  ) throws -> Int {
    let base = bytes.baseAddress! + start
    let end = min(remaining, bytes.count - start)
    let plain = RecordLayout.word(.plain, length: size)
    let mark = RecordLayout.word(.timeMark, length: 8)
    let stride = RecordLayout.wordSize + size
    var position = 0
    while true {
      while end - position >= stride, RecordLayout.word(at: base + position) == plain {
        sink.record(base + position + RecordLayout.wordSize)
        position += stride
      }
      guard end - position >= RecordLayout.wordSize else { return position }
      let word = RecordLayout.word(at: base + position)
      if word == plain { return position }
      guard word == mark else {
        throw BenchError("the broker delivered an item that is not a record of \(size) bytes")
      }
      guard end - position >= RecordLayout.timeMarkSize else { return position }
      position += RecordLayout.timeMarkSize
    }
  }

  /// Reads the beginning of a delivery, or a whole control frame; nil if it isn't complete.
  private mutating func takeHeader(_ bytes: UnsafeRawBufferPointer, at position: Int) throws -> Int? {
    let front = FrameHeader.size + DeliverHeader.size
    guard bytes.count - position >= FrameHeader.size else { return nil }
    let header = FrameHeader(at: bytes.baseAddress! + position)
    guard header.type == .deliver else {
      guard let (_, body) = SluiceControl.frame(bytes, at: position) else { return nil }
      try SluiceControl.take(header, body, &replies)
      return FrameHeader.size + body.count
    }
    guard bytes.count - position >= front else { return nil }
    let start = position + FrameHeader.size
    let delivery = try DeliverHeader.decode(
      UnsafeRawBufferPointer(rebasing: bytes[start..<(position + front)])
    ).header
    guard delivery.firstOffset == announced else {
      throw BenchError("the broker delivered offset \(delivery.firstOffset) after \(announced) records")
    }
    announced += UInt64(delivery.count)
    guard announced <= granted else {
      throw BenchError("the broker sent \(announced) of \(granted) granted records")
    }
    remaining = Int(header.length) - DeliverHeader.size
    return front
  }

  /// Keeps the grant `demand` records ahead, with at most one frame per read.
  private mutating func grantMore() {
    guard let demand, granted - announced <= demand / 2 else { return }
    granted = announced + demand
    replies.append(Demand(grantedThrough: granted).encoded(stream: 1))
  }
}

/// Frames that are not records.
private enum SluiceControl {
  /// The frame at `position`; nil if it isn't complete.
  static func frame(
    _ bytes: UnsafeRawBufferPointer, at position: Int
  ) -> (header: FrameHeader, body: UnsafeRawBufferPointer)? {
    guard bytes.count - position >= FrameHeader.size else { return nil }
    let header = FrameHeader(at: bytes.baseAddress! + position)
    let start = position + FrameHeader.size
    guard bytes.count - start >= Int(header.length) else { return nil }
    return (header, UnsafeRawBufferPointer(rebasing: bytes[start..<(start + Int(header.length))]))
  }

  /// Handles other frames: answers pings, ignores live markers, and fails for anything else.
  static func take(_ header: FrameHeader, _ body: UnsafeRawBufferPointer, _ replies: inout Replies) throws {
    switch header.type {
    case .ping: replies.append(Pong(token: try Ping(body: body).token).encoded(stream: 0))
    case .pong, .live: break
    case .error: throw BenchError("the broker reported: \(try Fault(body: body).message)")
    case .lag: throw BenchError("the broker dropped \(try Lag(body: body).missed) records")
    default:
      if !header.type.isIgnorable { throw BenchError("the broker sent \(header.type)") }
    }
  }
}
