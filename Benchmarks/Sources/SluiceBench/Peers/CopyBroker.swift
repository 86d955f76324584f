/// `sluice-bench copy-server`, the limit: bytes from one publisher are written to all subscribers. Records are `u32 length` and payload, little-endian.
struct CopyDriver: LoadDriver {
  let target: LoadTarget

  func openPublisher(_ index: Int) throws -> Opened<CopyPublisher> {
    guard index == 0 else { throw UsageError("the copy server takes one publisher") }
    let handshake = try Handshake(target)
    try handshake.send([CopyServer.publisherRole])
    return Opened(handshake, CopyPublisher(target))
  }

  func openSubscriber() throws -> Opened<CopySubscriber> {
    var handshake = try Handshake(target)
    try handshake.send([CopyServer.subscriberRole])
    guard try handshake.read(1) == [CopyServer.subscriberRole] else { throw BenchError("not a copy server") }
    return Opened(handshake, CopySubscriber(target))
  }
}

struct CopyPublisher: TemplateCodec {
  var replies = Replies()
  let template: BatchTemplate

  init(_ target: LoadTarget) {
    let prefix = (0..<4).map { UInt8(truncatingIfNeeded: target.size >> ($0 * 8)) }
    template = BatchTemplate(publisher: 0, target, prefix: prefix)
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    throw BenchError("the copy server answered a publisher")
  }
}

struct CopySubscriber: SubscriberCodec {
  var replies = Replies()
  private let size: Int

  init(_ target: LoadTarget) {
    size = target.size
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer, into sink: inout some RecordSink) throws -> Int {
    let base = bytes.baseAddress!
    let end = bytes.count
    let size = size
    var position = 0
    while end - position >= 4 + size {
      guard (base + position).loadUnaligned(as: UInt32.self) == UInt32(size) else {
        throw BenchError("a record of another size")
      }
      sink.record(base + position + 4)
      position += 4 + size
    }
    return position
  }
}
