import Glibc
import SluiceWire

/// A client made of nothing but a socket and the wire codec: it sends what it is told to, right or wrong, and checks all that comes.
///
/// Whatever arrives is put into the accounts of its streams first, so that a broker that breaks a rule is found out by any test.
/// PINGs are answered on the way. Used by one thread at a time.
public final class RawClient {
  public let socket: RawSocket
  public private(set) var welcome: Welcome?
  /// The accounts of subscriptions by stream; they stay when the stream has ended, until the number is used again.
  public var subscriptions: [UInt32: SubscriptionLedger] = [:]
  /// The accounts of members of groups by stream.
  public var members: [UInt32: MemberLedger] = [:]
  /// The accounts of publications by stream.
  public var publications: [UInt32: PublicationLedger] = [:]
  /// Whether PINGs are answered.
  public var answersPings = true
  /// PINGs that came.
  public private(set) var pings = 0
  /// What the broker said about going away.
  public private(set) var goAway: GoAway?

  /// Lives as long as the client: the broker's process.
  var broker: BrokerProcess?

  private var decoder = FrameDecoder(maximumFrame: 64 << 20)
  private var arrived: [ReceivedFrame] = []
  private var nextArrived = 0
  private var outgoing: [UInt8] = []
  private var sent = 0
  private var ending: RawSocket.Closed?
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
  /// However the waits add up, a client isn't used any longer than this.
  private let lifetime = Deadline(in: 900)

  /// Connects, and says nothing yet.
  public init(_ address: String, receiveBuffer: Int? = nil, from source: String? = nil) throws {
    socket = try RawSocket(address, receiveBuffer: receiveBuffer, from: source)
  }

  deinit {
    buffer.deallocate()
  }

  /// HELLO and WELCOME.
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

  /// Sends bytes as they are, all of them; reads meanwhile, so that neither side waits for the other.
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

  /// Sends bytes as far as there is room; `pump()` sends the rest.
  public func enqueue(raw bytes: [UInt8]) throws {
    outgoing += bytes
    try flush()
  }

  /// Whether the connection has ended, with whatever there may still be to be handed out.
  public var hasEnded: Bool { ending != nil }

  /// How many bytes wait for room.
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

  /// The next frame that isn't a PING, accounted for.
  ///
  /// - Throws: ``TestFailure`` when none comes in time; ``RawSocket/Closed`` when the connection has ended and all that came before
  ///   was handed out.
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

  /// The next frame, if one comes by then; nil also at the end of the connection.
  public func receiveIfAny(within seconds: Double) throws -> ReceivedFrame? {
    let deadline = Deadline(in: seconds)
    while true {
      if let frame = try takeArrived() { return frame }
      guard ending == nil, socket.wait(until: deadline) else { return nil }
      try pump()
    }
  }

  /// Takes over what has arrived, and sends what there is room for, without waiting.
  ///
  /// - Parameter reads: how often to read at most, 256 KiB at a time.
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
      // What came before is still to be handed out. A failed write doesn't end what can be read.
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

  /// Accounts for all that has arrived.
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
      // In place: the account may hold many payloads.
      try subscriptions[frame.stream]!.account(frame)
    } else if members[frame.stream] != nil {
      try members[frame.stream]!.account(frame)
    } else if publications[frame.stream] != nil {
      try publications[frame.stream]!.account(frame)
    }
  }

  // MARK: Expecting

  /// The next frame, which must be this one.
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

  /// Nothing more comes, and the broker closes in an orderly way.
  public func expectClosed(within seconds: Double = Deadline.patience) throws {
    do {
      throw TestFailure("expected the end of the connection, got \(try receive(within: seconds))")
    } catch let closed as RawSocket.Closed {
      try require(closed.code == nil, "the connection was reset instead of closed: error \(closed.code!)")
    }
  }

  /// The end of the connection, in whichever way it is told.
  ///
  /// For those that may have sent something after the broker had closed: it waits for its peers for two seconds, and answers them with
  /// a reset from then on.
  public func expectEnd(within seconds: Double = Deadline.patience) throws {
    do {
      throw TestFailure("expected the end of the connection, got \(try receive(within: seconds))")
    } catch is RawSocket.Closed {}
  }

  /// Receives until `condition` holds.
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

  /// Receives until such a frame comes, and returns it.
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

  /// A round trip: whatever the broker did because of earlier frames of this connection has been received afterwards.
  public func roundTrip() throws {
    let token = UInt64.random(in: .min ... .max)
    try send(Ping(token: token), stream: 0)
    _ = try receive("PONG") { try $0.type == .pong && $0.decode(Pong.self).token == token }
  }

  public func close() {
    socket.close()
  }
}
