import Glibc
import SluiceWire

/// A client consisting of a socket and the wire codec: it sends any frames, valid or invalid, and checks every frame it receives.
///
/// Each received frame is first recorded in the ledger of its stream, so that any test detects a broker that breaks a rule. PINGs are answered
/// automatically. Used by one thread at a time.
public final class RawClient {
  public let socket: RawSocket
  public private(set) var welcome: Welcome?
  /// The ledgers of subscriptions by stream. They stay after the end of the stream, until its number is reused.
  public var subscriptions: [UInt32: SubscriptionLedger] = [:]
  /// The ledgers of members of groups by stream.
  public var members: [UInt32: MemberLedger] = [:]
  /// The ledgers of publications by stream.
  public var publications: [UInt32: PublicationLedger] = [:]
  /// Whether PINGs are answered.
  public var answersPings = true
  /// The number of received PINGs.
  public private(set) var pings = 0
  /// The broker's GOAWAY.
  public private(set) var goAway: GoAway?

  /// The broker's process, retained as long as the client.
  var broker: BrokerProcess?

  private var decoder = FrameDecoder(maximumFrame: 64 << 20)
  private var arrived: [ReceivedFrame] = []
  private var nextArrived = 0
  private var outgoing: [UInt8] = []
  private var sent = 0
  private var ending: RawSocket.Closed?
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
  /// The longest use of a client, over all waits.
  private let lifetime = Deadline(in: 900)

  /// Connects without sending anything.
  public init(_ address: String, receiveBuffer: Int? = nil, from source: String? = nil) throws {
    socket = try RawSocket(address, receiveBuffer: receiveBuffer, from: source)
  }

  deinit {
    buffer.deallocate()
  }

  /// Sends HELLO and receives WELCOME.
  @discardableResult
  public func shakeHands(
    name: String = "test", versions: ClosedRange<UInt16> = 1...1, keepalive: UInt32 = 0,
    maximumFrame: UInt32 = 4 << 20
  ) throws -> Welcome {
    try send(
      Hello(versions: versions, maximumFrame: maximumFrame, keepalive: keepalive, name: name), stream: 0)
    let welcome = try expect(Welcome.self, stream: 0)
    self.welcome = welcome
    return welcome
  }

  // MARK: Sending

  public func send(_ frame: some Frame, stream: UInt32) throws {
    try send(raw: frame.encoded(stream: stream))
  }

  /// Sends all bytes unchanged. Reads meanwhile, so that neither side waits for the other.
  public func send(raw bytes: [UInt8], within seconds: Double = Deadline.patience) throws {
    try enqueue(raw: bytes)
    let deadline = Deadline(in: seconds)
    while sent < outgoing.count {
      if let ending { throw ending }
      guard !deadline.isOver, socket.wait(toWrite: true, until: deadline) else {
        throw TestFailure("the broker doesn't take \(outgoing.count - sent) bytes")
      }
      try pump()
    }
  }

  /// Sends as many bytes as the socket accepts; `pump()` sends the rest.
  public func enqueue(raw bytes: [UInt8]) throws {
    outgoing += bytes
    try flush()
  }

  /// Whether the connection has ended. Received frames may still be waiting.
  public var hasEnded: Bool { ending != nil }

  /// The number of bytes not sent yet.
  public var unsentBytes: Int { outgoing.count - sent }

  private func flush() throws {
    while sent < outgoing.count {
      let count = try outgoing.withUnsafeBytes {
        try socket.write(UnsafeRawBufferPointer(rebasing: $0[sent...]))
      }
      if count == 0 { return }
      sent += count
    }
    outgoing.removeAll(keepingCapacity: true)
    sent = 0
  }

  // MARK: Receiving

  /// The next frame other than a PING, recorded in its ledger.
  ///
  /// - Throws: ``TestFailure`` if none arrives in time; ``RawSocket/Closed`` if the connection has ended and all received frames were returned.
  public func receive(within seconds: Double = Deadline.patience) throws -> ReceivedFrame {
    let deadline = Deadline(in: seconds)
    while true {
      if let frame = try takeArrived() { return frame }
      if let ending { throw ending }
      guard !lifetime.isOver, socket.wait(until: deadline) else {
        throw TestFailure("nothing came from the broker for \(seconds) s")
      }
      try pump()
    }
  }

  /// The next frame, if one arrives in time; nil also at the end of the connection.
  public func receiveIfAny(within seconds: Double) throws -> ReceivedFrame? {
    let deadline = Deadline(in: seconds)
    while true {
      if let frame = try takeArrived() { return frame }
      guard ending == nil, socket.wait(until: deadline) else { return nil }
      try pump()
    }
  }

  /// Reads received bytes, and sends as many bytes as the socket accepts, without waiting.
  ///
  /// - Parameter reads: the most reads, of up to 256 KiB each.
  public func pump(reads: Int = 8) throws {
    guard ending == nil else { return }
    do {
      try flush()
      for _ in 0..<reads {
        guard let count = try socket.read(into: buffer) else { return }
        try decoder.decode(UnsafeRawBufferPointer(rebasing: buffer[..<count])) {
          header, body throws(WireError) in
          arrived.append(ReceivedFrame(header: header, body: [UInt8](body)))
          return true
        }
      }
    } catch let closed as RawSocket.Closed {
      // Frames received before are still returned. After a failed write, reading may still succeed.
      while let count = try? socket.read(into: buffer) {
        try decoder.decode(UnsafeRawBufferPointer(rebasing: buffer[..<count])) {
          header, body throws(WireError) in
          arrived.append(ReceivedFrame(header: header, body: [UInt8](body)))
          return true
        }
      }
      ending = closed
    }
  }

  /// Records all received frames in their ledgers.
  public func settle() throws {
    while try takeArrived() != nil {}
  }

  private func takeArrived() throws -> ReceivedFrame? {
    while nextArrived < arrived.count {
      let frame = arrived[nextArrived]
      nextArrived += 1
      if nextArrived == arrived.count {
        arrived.removeAll(keepingCapacity: true)
        nextArrived = 0
      }
      if frame.type == .ping {
        pings += 1
        if answersPings { try enqueue(raw: Pong(token: frame.decode(Ping.self).token).encoded(stream: 0)) }
        continue
      }
      try account(frame)
      return frame
    }
    return nil
  }

  private func account(_ frame: ReceivedFrame) throws {
    if frame.type == .goAway { goAway = try frame.decode(GoAway.self) }
    if subscriptions[frame.stream] != nil {
      // In place, because the ledger may contain many payloads.
      try subscriptions[frame.stream]!.account(frame)
    } else if members[frame.stream] != nil {
      try members[frame.stream]!.account(frame)
    } else if publications[frame.stream] != nil {
      try publications[frame.stream]!.account(frame)
    }
  }

  // MARK: Expecting

  /// The next frame, which must be of this type and stream.
  public func expect<F: Frame>(
    _ type: F.Type, stream: UInt32, within seconds: Double = Deadline.patience
  ) throws -> F {
    let frame = try receive(within: seconds)
    try require(frame.stream == stream, "expected \(F.type) on stream \(stream), got \(frame)")
    return try frame.decode(F.self)
  }

  /// The next frame, which must be an ERROR with that code.
  @discardableResult
  public func expectFault(
    _ code: ErrorCode, stream: UInt32, within seconds: Double = Deadline.patience
  ) throws -> Fault {
    let fault = try expect(Fault.self, stream: stream, within: seconds)
    try require(fault.code == code, "expected ERROR \(code), got \(fault.code): \(fault.message)")
    try require(!fault.message.isEmpty, "ERROR \(code) says nothing")
    return fault
  }

  /// Checks that no further frame arrives and that the broker closes the connection in order.
  public func expectClosed(within seconds: Double = Deadline.patience) throws {
    do {
      throw TestFailure("expected the end of the connection, got \(try receive(within: seconds))")
    } catch let closed as RawSocket.Closed {
      try require(closed.code == nil, "the connection was reset instead of closed: error \(closed.code!)")
    }
  }

  /// Waits for the end of the connection, orderly or by a reset.
  ///
  /// For clients that may have sent bytes after the broker closed: the broker waits two seconds for its peers, and then answers with a reset.
  public func expectEnd(within seconds: Double = Deadline.patience) throws {
    do {
      throw TestFailure("expected the end of the connection, got \(try receive(within: seconds))")
    } catch is RawSocket.Closed {}
  }

  /// Receives until `condition` returns true.
  public func receive(
    until what: @autoclosure () -> String, within seconds: Double = Deadline.patience,
    _ condition: () throws -> Bool
  ) throws {
    let deadline = Deadline(in: seconds)
    while try !condition() {
      guard !deadline.isOver else { throw TestFailure("not within \(seconds) s: \(what())") }
      do {
        _ = try receive(within: seconds)
      } catch let closed as RawSocket.Closed {
        throw TestFailure("\(closed) while waiting for \(what())")
      }
    }
  }

  /// Receives until a matching frame arrives, and returns it.
  public func receive(
    _ what: @autoclosure () -> String, within seconds: Double = Deadline.patience,
    where isWanted: (ReceivedFrame) throws -> Bool
  ) throws -> ReceivedFrame {
    var found: ReceivedFrame?
    let deadline = Deadline(in: seconds)
    while found == nil {
      guard !deadline.isOver else { throw TestFailure("not within \(seconds) s: \(what())") }
      let frame = try receive(within: seconds)
      if try isWanted(frame) { found = frame }
    }
    return found!
  }

  /// Makes a round trip: afterwards, all effects of earlier frames on this connection have been received.
  public func roundTrip() throws {
    let token = UInt64.random(in: .min ... .max)
    try send(Ping(token: token), stream: 0)
    _ = try receive("PONG") { try $0.type == .pong && $0.decode(Pong.self).token == token }
  }

  public func close() {
    socket.close()
  }
}
