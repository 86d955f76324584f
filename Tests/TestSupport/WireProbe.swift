import SluiceWire

/// Runs decoders over bytes that may be anything, and checks what must hold whatever they are.
///
/// What the random tests, the fuzzer and the replay of its findings have in common. Nothing here may trap.
public enum WireProbe {
  /// Something that must hold doesn't.
  public struct Violation: Error, CustomStringConvertible {
    public let description: String
  }

  /// A frame of every type that is more than a batch.
  static let frameTypes: [any Frame.Type] = [
    Hello.self, Welcome.self, Ping.self, Pong.self, GoAway.self, Fault.self,
    Subscribe.self, Subscribed.self, Demand.self, Live.self, Lag.self, Cancel.self, Cancelled.self,
    Complete.self,
    PublishOpen.self, PublishOpened.self, Ack.self,
    Authenticate.self, Authenticated.self, TopicCreate.self, TopicShow.self, TopicInfo.self, TopicList.self,
    Topics.self, TopicDelete.self,
    Done.self,
  ]

  private static let maximumFrame = 4096
  private static let maximumRecord = 64

  // MARK: Streams

  /// Takes `bytes` for what a peer sends, in chunks of these lengths and then the rest.
  public static func stream(_ bytes: [UInt8], chunks: [Int], openingAt side: Side?) throws {
    var decoder = FrameDecoder(maximumFrame: maximumFrame, openingAt: side)
    var rest = bytes[...]
    var frames = 0
    for length in chunks + [bytes.count] where !rest.isEmpty {
      let chunk = Array(rest.prefix(length))
      rest = rest.dropFirst(length)
      var violation: Violation?
      do {
        try withExactMemory(chunk) { chunk in
          try decoder.decode(chunk) { header, body throws(WireError) in
            frames += 1
            if body.count != Int(header.length) || body.count > maximumFrame {
              violation = Violation(description: "a body of \(body.count) bytes for \(header)")
            }
            receive(header, body)
            return true
          }
        }
      } catch is WireError {
        return
      }
      if let violation { throw violation }
    }
    guard decoder.pendingBytes < FrameHeader.size + maximumFrame else {
      throw Violation(description: "\(decoder.pendingBytes) bytes are kept")
    }
    guard frames * FrameHeader.size + decoder.pendingBytes <= bytes.count else {
      throw Violation(description: "\(frames) frames came out of \(bytes.count) bytes")
    }
  }

  /// What either side does with a frame.
  private static func receive(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) {
    _ = try? header.admission(at: .broker)
    _ = try? header.admission(at: .client)
    _ = try? serverHandshake.receive(header, body)
    _ = try? clientHandshake.receive(header, body)
    switch header.type {
    case .deliver:
      guard let (header, batch) = try? DeliverHeader.decode(body) else { return }
      var iterator = BatchIterator(batch, count: header.count, time: 0)
      var offset = header.firstOffset
      while let record = try? iterator.next() {
        offset += 1
        if record.isAttributed { _ = try? RecordAttributes(record.body) }
      }
    case .publish:
      guard let (header, batch) = try? PublishHeader.decode(body) else { return }
      try? RecordLayout.validate(batch, count: header.count, maximumRecord: maximumRecord)
    default:
      for type in frameTypes where type.type == header.type { _ = try? type.init(body: body) }
    }
  }

  private static let serverHandshake = ServerHandshake(
    offer: Welcome(
      maximumFrame: 1 << 20, maximumRecord: 1 << 20, maximumStreams: 10, keepalive: 1000, broker: 1,
      software: ""))
  private static let clientHandshake = ClientHandshake(
    hello: Hello(maximumFrame: 1 << 20, keepalive: 1000, name: ""))

  // MARK: Bodies

  /// Takes `bytes` for the body of a frame of every type. What can be decoded must survive its encoding.
  public static func bodies(_ bytes: [UInt8]) throws {
    for type in frameTypes { try body(bytes, of: type) }
  }

  private static func body<F: Frame>(_ bytes: [UInt8], of type: F.Type) throws {
    guard let frame = try? withExactMemory(bytes, { try F(body: $0) }) else { return }
    let encoded = Array(frame.encoded(stream: 1)[FrameHeader.size...])
    let again = try withExactMemory(encoded) { try F(body: $0) }
    // Texts beyond their limits are cut by the first encoding, and by no other.
    guard Array(again.encoded(stream: 1)[FrameHeader.size...]) == encoded else {
      throw Violation(description: "\(frame) isn't the same after encoding")
    }
  }

  // MARK: Batches

  /// Takes `bytes` for a batch with so many records. What the broker accepts, every receiver must be able to walk.
  public static func batch(_ bytes: [UInt8], count: UInt32) throws {
    _ = try? walk(bytes, count: nil)
    let walked = try? walk(bytes, count: count)
    do {
      try withExactMemory(bytes) {
        try RecordLayout.validate($0, count: count, maximumRecord: maximumRecord)
      }
    } catch {
      return
    }
    guard let walked, walked.records == Int(count) else {
      throw Violation(description: "a valid batch can't be walked")
    }
    guard walked.longest <= maximumRecord, walked.areAttributesValid else {
      throw Violation(description: "a valid batch has a record that isn't")
    }
  }

  private static func walk(
    _ bytes: [UInt8], count: UInt32?
  ) throws -> (records: Int, longest: Int, areAttributesValid: Bool) {
    try withExactMemory(bytes) { batch in
      var iterator = BatchIterator(batch, count: count, time: 0)
      var found = (records: 0, longest: 0, areAttributesValid: true)
      while let record = try iterator.next() {
        found.records += 1
        found.longest = max(found.longest, record.body.count)
        guard record.isAttributed else { continue }
        guard let attributes = try? RecordAttributes(record.body) else {
          found.areAttributesValid = false
          continue
        }
        var parts = (attributes.key?.count ?? 0) + attributes.payload.count
        attributes.forEachHeader { parts += $0.reduce(0) { sum, _ in sum + 1 } + $1.count }
        guard parts < record.body.count else {
          throw Violation(description: "\(parts) bytes of parts in a body of \(record.body.count)")
        }
      }
      return found
    }
  }

  // MARK: Topic names

  /// Takes `bytes` for a topic's name.
  public static func topicName(_ bytes: [UInt8]) throws {
    let name = String(decoding: bytes, as: UTF8.self)
    do {
      try TopicName.validate(name)
    } catch {
      guard error.code == .invalidTopic, error.message.utf8.count < 1000 else {
        throw Violation(description: "a topic name was refused with \(error)")
      }
      return
    }
    let tokens = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard name.utf8.count <= TopicName.maximumLength, tokens.allSatisfy({ !$0.isEmpty }),
      !name.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F })
    else {
      throw Violation(description: "\(name) was taken for a topic name")
    }
  }

  /// Memory of just the bytes, so that the address sanitizer finds a read outside.
  private static func withExactMemory<T>(
    _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws -> T
  ) rethrows -> T {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    defer { memory.deallocate() }
    memory.copyBytes(from: bytes)
    return try body(UnsafeRawBufferPointer(memory))
  }
}

extension WireProbe {
  /// What the fuzzer runs, each with its own corpus. An input's first bytes say how the rest is taken.
  public enum Target: String, CaseIterable, Sendable {
    /// One byte for the side, one for the number of chunks, one for each chunk's length; then the stream.
    case streams
    /// One byte for the type of frame; then the body.
    case bodies
    /// One byte for the count of records; then the batch.
    case batches
    /// A name.
    case topicNames
  }

  public static func run(_ target: Target, on input: [UInt8]) throws {
    var rest = input[...]
    switch target {
    case .streams:
      let side: [Side?] = [nil, .broker, .client]
      let choice = Int(rest.popFirst() ?? 0) % side.count
      let count = Int(rest.popFirst() ?? 0) % 16
      let chunks = rest.prefix(count).map { Int($0) }
      try stream(Array(rest.dropFirst(count)), chunks: chunks, openingAt: side[choice])
    case .bodies:
      let choice = Int(rest.popFirst() ?? 0) % frameTypes.count
      try body(Array(rest), of: frameTypes[choice])
    case .batches:
      let count = UInt32(rest.popFirst() ?? 0)
      try batch(Array(rest), count: count)
    case .topicNames: try topicName(input)
    }
  }
}
