import SluiceIO
import SluiceWire

/// Wrong behaviour of a client, and the response that the broker must give.
struct Attack: Sendable {
  enum Expectation: Sendable {
    /// An ERROR of the connection with one of these codes, then the connection ends.
    case refused([ErrorCode])
    /// An ERROR of stream 1 with one of these codes; the connection stays open.
    case streamEnds([ErrorCode])
    /// No error; the connection stays open.
    case harmless
    /// Any response that the protocol allows.
    case anything
  }

  enum Kind: String, Sendable, CaseIterable {
    // Before the handshake
    case garbage, http, wrongMagic, wrongVersion, tinyFrames, pingFirst, longHello, noHello, halfHello
    // After it
    case unknownFrame, ignorableFrame, unknownFlag, ignorableFlag, wrongDirection, pingOnStream,
      subscribeOnZero
    case longFrame, cutShortBody, invalidTopic, streamTwice, streamTooHigh, zeroDemand, cancelUnopened,
      secondHello
    case wrongSequence, tooManyRecords, miscount, cutShortBatch, timeMark, longRecord, durable, halfFrame
    case pingFlood, listFlood, subscriptionFlood, demandAfterCancel
    /// Frames of every type, one after the other: see ``Storm``.
    case storm

    static let single = allCases.filter { $0 != .storm }
  }

  var kind: Kind
  var seed: UInt64

  static func random(_ random: inout SeededRandom) -> Attack {
    Attack(kind: Kind.single[random.next(in: 0...Kind.single.count - 1)], seed: random.next())
  }

  var beginsWithHandshake: Bool {
    switch kind {
    case .garbage, .http, .wrongMagic, .wrongVersion, .tinyFrames, .pingFirst, .longHello, .noHello,
      .halfHello:
      false
    default: true
    }
  }

  /// Whether it doesn't read for a while.
  var doesNotRead: Bool {
    switch kind {
    case .pingFlood, .listFlood, .subscriptionFlood: true
    default: false
    }
  }

  static let floodSize = 150

  var expectation: Expectation {
    switch kind {
    case .garbage:
      .refused([.notSluice, .frameTooLarge, .unexpectedFrame, .malformedFrame, .handshakeTimeout])
    case .http, .wrongMagic, .pingFirst: .refused([.notSluice])
    case .wrongVersion: .refused([.versionMismatch])
    case .tinyFrames: .refused([.malformedFrame])
    case .longHello: .refused([.frameTooLarge])
    case .noHello, .halfHello: .refused([.handshakeTimeout])
    case .unknownFrame, .unknownFlag: .refused([.unsupportedFrame])
    case .ignorableFrame, .ignorableFlag, .pingFlood, .listFlood, .subscriptionFlood: .harmless
    case .wrongDirection, .secondHello: .refused([.unexpectedFrame])
    case .pingOnStream, .subscribeOnZero, .streamTwice, .streamTooHigh, .cancelUnopened:
      .refused([.invalidStream])
    case .longFrame: .refused([.frameTooLarge])
    case .cutShortBody: .refused([.malformedFrame])
    case .invalidTopic: .streamEnds([.invalidTopic])
    case .zeroDemand: .streamEnds([.invalidDemand])
    // A topic whose producers are blocked grants nothing at first.
    case .wrongSequence, .miscount, .cutShortBatch, .timeMark:
      .streamEnds([.malformedBatch, .demandExceeded])
    case .tooManyRecords: .streamEnds([.demandExceeded])
    case .longRecord: .streamEnds([.recordTooLarge, .demandExceeded])
    case .durable: .streamEnds([.unsupported])
    case .halfFrame: .refused([.keepaliveTimeout])
    case .demandAfterCancel: .refused([.invalidStream])
    case .storm: .anything
    }
  }
}

// MARK: - Its bytes

extension Attack {
  /// The bytes to send. `topic` is used by others, too.
  func bytes(_ welcome: Welcome?, topic: String) -> [UInt8] {
    var random = SeededRandom(seed: seed)
    func subscribe(_ stream: UInt32, _ topic: String, granting: UInt64 = 0) -> [UInt8] {
      Subscribe(topic: topic, grantedThrough: granting).encoded(stream: stream)
    }
    let limits =
      welcome
      ?? Welcome(maximumFrame: 0, maximumRecord: 0, maximumStreams: 0, keepalive: 0, broker: 0, software: "")
    switch kind {
    case .garbage:
      return (0..<random.next(in: 12...200)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    case .http: return Array("GET / HTTP/1.1\r\nHost: broker\r\n\r\n".utf8)
    case .wrongMagic: return changed(hello().encoded(stream: 0), at: FrameHeader.size)
    case .wrongVersion: return hello(versions: 90...91).encoded(stream: 0)
    case .tinyFrames: return hello(maximumFrame: 1_000).encoded(stream: 0)
    case .pingFirst: return Ping(token: 1).encoded(stream: 0)
    case .longHello: return header(.hello, length: 9_000, stream: 0)
    case .noHello, .storm: return []
    case .halfHello: return Array(hello().encoded(stream: 0).dropLast(random.next(in: 1...20)))
    case .unknownFrame: return header(FrameType(rawValue: 0x7F), length: 0, stream: 0)
    case .ignorableFrame: return header(FrameType(rawValue: 0x90), length: 5, stream: 77) + [1, 2, 3, 4, 5]
    case .unknownFlag: return flagged(1)
    case .ignorableFlag: return flagged(0x80)
    case .wrongDirection: return Live(nextOffset: 0).encoded(stream: 1)
    case .pingOnStream: return Ping(token: 1).encoded(stream: 3)
    case .subscribeOnZero: return subscribe(0, topic)
    case .longFrame: return header(.publish, length: limits.maximumFrame + 1, stream: 1)
    case .cutShortBody: return header(.subscribe, length: 3, stream: 1) + [9, 0, 65]
    case .invalidTopic: return subscribe(1, "no such..topic")
    // Uses a topic that no producer completes; otherwise the stream number would be free again.
    case .streamTwice: return subscribe(1, "attacked") + subscribe(1, "attacked")
    case .streamTooHigh: return subscribe(limits.maximumStreams + 1, topic)
    case .zeroDemand: return subscribe(1, "attacked") + Demand(grantedThrough: 0).encoded(stream: 1)
    case .cancelUnopened: return Cancel().encoded(stream: 9)
    case .secondHello: return hello().encoded(stream: 0)
    case .wrongSequence: return publication(topic) + publish(first: 5, count: 1, records(1))
    case .tooManyRecords:
      let count = 3_000
      return publication(topic) + publish(first: 0, count: UInt32(count), records(count))
    case .miscount: return publication(topic) + publish(first: 0, count: 2, records(1))
    case .cutShortBatch: return publication(topic) + publish(first: 0, count: 2, records(2).dropLast())
    case .timeMark:
      var mark = [UInt8](repeating: 0, count: RecordLayout.timeMarkSize)
      mark.withUnsafeMutableBytes { RecordLayout.writeTimeMark(1, at: $0.baseAddress!) }
      return publication(topic) + publish(first: 0, count: 1, mark[...])
    case .longRecord:
      return publication(topic) + publish(first: 0, count: 1, records(1, size: Int(limits.maximumRecord) + 1))
    case .durable: return PublishOpen(topic: topic, acknowledgement: .durable).encoded(stream: 1)
    case .halfFrame: return Array(subscribe(1, topic).dropLast(3))
    case .pingFlood: return (0..<Self.floodSize).flatMap { Ping(token: UInt64($0)).encoded(stream: 0) }
    case .listFlood:
      return (0..<Self.floodSize).flatMap { TopicList(after: "", limit: 100).encoded(stream: UInt32($0) + 1) }
    case .subscriptionFlood:
      return (0..<Self.floodSize).flatMap { subscribe(UInt32($0) + 1, topic, granting: Credit.unlimited) }
    case .demandAfterCancel:
      return subscribe(1, topic) + Cancel().encoded(stream: 1) + Demand(grantedThrough: 5).encoded(stream: 1)
    }
  }

  func hello(versions: ClosedRange<UInt16> = 1...1, maximumFrame: UInt32 = 1 << 20) -> Hello {
    Hello(versions: versions, maximumFrame: maximumFrame, keepalive: 500, name: "attacker \(kind)")
  }

  private func header(_ type: FrameType, length: UInt32, stream: UInt32, flags: UInt8 = 0) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: FrameHeader.size)
    bytes.withUnsafeMutableBytes {
      FrameHeader(length: length, type: type, flags: flags, stream: stream).write(at: $0.baseAddress!)
    }
    return bytes
  }

  private func flagged(_ flags: UInt8) -> [UInt8] {
    header(.ping, length: 8, stream: 0, flags: flags) + [0, 0, 0, 0, 0, 0, 0, 0]
  }

  private func changed(_ bytes: [UInt8], at position: Int) -> [UInt8] {
    var bytes = bytes
    bytes[position] ^= 0xFF
    return bytes
  }

  private func publication(_ topic: String) -> [UInt8] {
    PublishOpen(topic: topic, acknowledgement: .received).encoded(stream: 1)
  }

  private func records(_ count: Int, size: Int = 3) -> ArraySlice<UInt8> {
    var builder = BatchBuilder()
    let payload = [UInt8](repeating: 0xAA, count: size)
    for _ in 0..<count { payload.withUnsafeBytes { builder.append($0) } }
    return builder.bytes[...]
  }

  private func publish(first: UInt64, count: UInt32, _ batch: ArraySlice<UInt8>) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: FrameHeader.size + PublishHeader.size)
    bytes.withUnsafeMutableBytes {
      PublishHeader(firstSequence: first, count: count).write(
        at: $0.baseAddress!, stream: 1, batchLength: batch.count)
    }
    return bytes + batch
  }
}
