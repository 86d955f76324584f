import SluiceIO
import TestSupport

@testable import SluiceNATS

/// A session, the clock, and the session's actions as text.
struct SessionUnderTest {
  var session: NATSSession
  var now = MonotonicTime(nanoseconds: 1_000_000_000)
  private var parser = NATSParser()

  static let info =
    #"INFO {"server_id":"N1","server_name":"n1","version":"2.15.1","headers":true,"max_payload":1000,"jetstream":true"#

  init(_ servers: [String] = ["127.0.0.1:1"], _ change: (inout NATSOptions) -> Void = { _ in }) throws {
    var options = NATSOptions()
    change(&options)
    session = NATSSession(try servers.map { try NATSAddress(parsing: $0) }, options: options, seed: 7)
  }

  mutating func start() -> [String] { notes(session.start(at: now)) }

  /// Starts, and completes the handshake.
  mutating func open() throws {
    _ = start()
    try shakeHands()
  }

  mutating func shakeHands(_ credentials: NATSCredentials = .none) throws {
    session.opened(isSecure: false, credentials: credentials, at: now)
    _ = try receive(Self.info + "}\r\n")
    _ = sent()
    let notes = try receive("PONG\r\n")
    try require(notes == ["ready"], "\(notes)")
    _ = sent()
  }

  /// Passes bytes from the server. Returns the session's actions.
  mutating func receive(_ text: String) throws -> [String] {
    var result: [String] = []
    let bytes = bytes(text)
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    defer { memory.deallocate() }
    memory.copyBytes(from: bytes)
    session.heard(at: now)
    let time = now
    let taken = try parser.parse(NATSBytes(UnsafeRawBufferPointer(memory))) { operation in
      result += notes(session.receive(operation, at: time))
      return true
    }
    try require(taken == bytes.count, "took \(taken) bytes")
    return result
  }

  mutating func lost(_ error: NATSError = NATSError(.cutOff, "gone")) -> [String] {
    parser = NATSParser()
    return notes(session.lost(error, at: now))
  }

  /// Advances the clock, step by step.
  mutating func pass(_ duration: Duration) -> [String] {
    let end = now + duration
    var result: [String] = []
    while let next = session.nextDeadline, next <= end {
      now = max(now, next)
      result += notes(session.advance(to: now))
    }
    now = end
    return result
  }

  /// The client's output since the last call; the transport accepts all of it, or `count` bytes.
  mutating func sent(taking count: Int? = nil) -> String {
    let waiting = session.output.waiting.prefix(count ?? .max)
    session.output.took(waiting.count)
    return String(decoding: waiting, as: UTF8.self)
  }

  mutating func request(
    _ subject: String, _ payload: String = "", isMany: Bool = false, timeout: Duration = .seconds(5)
  ) throws -> UInt64 {
    let time = now
    return try bytes(payload).withBytes { payload throws(NATSError) in
      try session.request(subject, payload: payload, isMany: isMany, timeout: timeout, at: time)
    }
  }

  mutating func publish(_ subject: String, _ payload: String) throws {
    try bytes(payload).withBytes { payload throws(NATSError) in
      try session.publish(subject, payload: payload)
    }
  }
}

/// An action as text: its name, and the code of an error.
func notes(_ action: NATSAction) -> [String] {
  switch action {
  case .none: []
  case .connect(let address, let name): ["connect \(address) as \(name)"]
  case .secure(let address, let name): ["secure \(address) as \(name)"]
  case .disconnect: ["disconnect"]
  case .ready: ["ready"]
  case .interrupted(let error): ["interrupted: \(error.code)"]
  case .lameDuck(let server): ["lame duck: \(server)"]
  case .closed(let error): ["closed: \(error.code)"]
  case .deliver(let message): ["\(message.subscription) gets \(message.payload.text)"]
  case .subscriptionEnded(let number, let error): ["\(number) ends: \(error.map { "\($0.code)" } ?? "done")"]
  case .answer(let number, let message): ["request \(number): \(message.payload.text)"]
  case .failed(let number, let error): ["request \(number): \(error.code)"]
  case .several(let actions): actions.flatMap { notes($0) }
  }
}
