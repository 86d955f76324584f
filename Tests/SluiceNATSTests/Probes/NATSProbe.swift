import SluiceIO
import TestSupport

@testable import SluiceNATS

/// Passes any bytes to the parsers of a NATS server's output, its replies, and credentials files.
enum NATSProbe: Probe {
  enum Target: String, CaseIterable, Sendable {
    /// One byte for the number of chunks, one for each chunk's length; then the stream.
    case natsStreams
    /// Encoded headers.
    case natsHeaders
    /// A session: steps of the client and of time, and what the server sends.
    case natsSessions
    /// The JSON of an acknowledgement.
    case natsAcknowledgements
    /// The subject of a delivered message's acknowledgement.
    case natsPositions
    /// Seeds and credentials files.
    case natsCredentials
    /// Addresses, and lists of them.
    case natsAddresses
  }

  static func run(_ target: Target, on bytes: [UInt8]) throws {
    switch target {
    case .natsStreams: try stream(bytes)
    case .natsHeaders: try headers(bytes)
    case .natsSessions: try session(bytes)
    case .natsAcknowledgements: try acknowledgement(bytes)
    case .natsPositions: try position(bytes)
    case .natsCredentials: try credentials(bytes)
    case .natsAddresses: try addresses(bytes)
    }
  }

  // MARK: The stream

  private static let maximumPayload = 256

  /// However a stream is split, the result is the same, and never larger than the input.
  private static func stream(_ bytes: [UInt8]) throws {
    var input = ProbeInput(bytes)
    let count = Int(input.byte()) % 16
    let lengths = input.bytes(count).map { Int($0) }
    let stream = input.remaining()
    var chunks: [[UInt8]] = []
    var rest = stream[...]
    for length in lengths {
      chunks.append(Array(rest.prefix(length)))
      rest = rest.dropFirst(length)
    }
    chunks.append(Array(rest))
    let whole = parse([stream])
    let cut = parse(chunks)
    // If a chunk breaks the protocol, the operations that it completes are lost.
    guard whole.error == cut.error, whole.operations == cut.operations else {
      throw ProbeViolation("\(whole) in one piece, \(cut) in \(chunks.map(\.count))")
    }
  }

  private static func parse(_ chunks: [[UInt8]]) -> (operations: [String], error: NATSError.Code?) {
    var parser = NATSParser(maximumPayload: maximumPayload)
    var operations: [String] = []
    for chunk in chunks {
      do {
        _ = try withExactMemory(chunk) { memory in
          try parser.parse(NATSBytes(memory)) { operation in
            operations.append(describe(operation))
            return true
          }
        }
      } catch {
        return (operations, (error as? NATSError)?.code)
      }
    }
    return (operations, nil)
  }

  private static func describe(_ operation: NATSOperation) -> String {
    switch operation {
    case .info(let json): return "info \(json.array)"
    case .ping: return "ping"
    case .pong: return "pong"
    case .ok: return "ok"
    case .error(let text):
      let read = NATSError.read(text.text)
      return "error \(text.array) \(read.error.code)"
    case .message(let message):
      var headers = ""
      message.headers?.visit { name, value in
        headers += "\(name.array):\(value.array);"
        return true
      }
      return
        "message \(message.subject.array) \(message.subscription) \(message.reply?.array ?? []) \(message.status ?? -1) \(headers) \(message.payload.array)"
    }
  }

  // MARK: Headers

  private static func headers(_ block: [UInt8]) throws {
    try withExactMemory(block) { memory in
      guard NATSHeadersView.isValid(NATSBytes(memory)) else { return }
      let view = NATSHeadersView(NATSBytes(memory))
      _ = view.statusText
      let copy = NATSHeaders(view)
      guard copy.status == view.status, copy.encodedCount == block.count else {
        throw ProbeViolation("a copy of headers is another")
      }
      var names: [String] = []
      view.visit { name, value in
        names.append(name.text)
        return true
      }
      for name in names where name.utf8.elementsEqual(Array(name.utf8)) {
        guard view[name]?.text == copy[name] else {
          throw ProbeViolation("a copy has another value of \(name)")
        }
      }
    }
  }

  // MARK: Sessions

  /// Each request completes at most once, subscriptions get nothing after their end, and there is never more than one connection.
  private static func session(_ bytes: [UInt8]) throws {
    var input = ProbeInput(bytes)
    var options = NATSOptions()
    options.seed = 1
    var session = NATSSession(
      [NATSAddress("127.0.0.1", port: 1), NATSAddress("127.0.0.1", port: 2)], options: options, seed: 1)
    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    var parser = NATSParser(maximumPayload: maximumPayload)
    var scene = SessionScene()
    try scene.note(session.start(at: now))
    while !input.isEmpty {
      switch input.byte() % 12 {
      case 0:
        if scene.state == .connecting {
          session.opened(isSecure: input.bool(), credentials: .none, at: now)
          scene.state = .open
          parser = NATSParser(maximumPayload: maximumPayload)
        }
      case 1:
        if scene.state == .securing {
          scene.state = .open
          try scene.note(session.secured(at: now))
        }
      case 2:
        if scene.state != .none {
          scene.state = .none
          try scene.note(session.lost(NATSError(.cutOff, "gone"), at: now))
        }
      case 3:
        now = now + .milliseconds(Int(input.byte()) * 50)
        try scene.note(session.advance(to: now))
      case 4:
        session.output.took(min(session.output.count, Int(input.byte())))
      case 5:
        let isMany = input.bool()
        if let number = try? session.request(
          "a", payload: NATSBytes(UnsafeRawBufferPointer(start: nil, count: 0)), isMany: isMany,
          timeout: .milliseconds(Int(input.byte())), at: now)
        {
          scene.requests[number] = isMany
        }
      case 6:
        let limit = input.byte()
        if let number = try? session.subscribe("b.*", limit: limit == 0 ? nil : UInt64(limit)) {
          scene.subscriptions.insert(number)
        }
      case 7:
        let number = UInt64(input.byte())
        session.unsubscribe(number)
        scene.subscriptions.remove(number)
      case 8:
        let number = UInt64(input.byte())
        session.endRequest(number)
        scene.requests[number] = nil
      case 9:
        try receive(words(&input, session), &session, &parser, &scene, now)
      default:
        try receive(input.bytes(Int(input.byte())), &session, &parser, &scene, now)
      }
      if scene.isClosed { break }
    }
    try scene.note(session.close())
    guard scene.isClosed, scene.requests.isEmpty, scene.subscriptions.isEmpty, scene.state == .none else {
      throw ProbeViolation("after its end a session has \(scene)")
    }
  }

  /// Plausible input from a server at this point.
  private static func words(_ input: inout ProbeInput, _ session: NATSSession) -> [UInt8] {
    let info = #"INFO {"headers":true,"max_payload":200,"server_name":"n""#
    switch input.byte() % 10 {
    case 0: return Array("\(info)}\r\n".utf8)
    case 1: return Array("\(info),\"tls_required\":true}\r\n".utf8)
    case 2: return Array("\(info),\"ldm\":true,\"connect_urls\":[\"10.0.0.1:4222\",\"x\"]}\r\n".utf8)
    case 3: return Array("PONG\r\n".utf8)
    case 4: return Array("-ERR 'Authorization Violation'\r\n".utf8)
    case 5: return Array("-ERR 'Permissions Violation for Publish to \"a\"'\r\n".utf8)
    case 6: return Array("-ERR 'Permissions Violation for Subscription to \"b.*\"'\r\n".utf8)
    case 7: return Array("MSG b.a \(input.byte() % 8) 1\r\nx\r\n".utf8)
    case 8:
      let reply = inbox(of: session, input.byte())
      return Array("MSG \(reply) 1 1\r\nx\r\n".utf8)
    default:
      let reply = inbox(of: session, input.byte())
      return Array("HMSG \(reply) 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n".utf8)
    }
  }

  /// The inbox for the reply to a request.
  private static func inbox(of session: NATSSession, _ number: UInt8) -> String {
    let sent = String(decoding: session.output.waiting, as: UTF8.self)
    // The name is the same each time, because the seed is.
    let prefix = sent.split(separator: " ").first { $0.hasPrefix("_INBOX.") }?.split(separator: ".")
      .dropLast()
    return (prefix?.joined(separator: ".") ?? probeInbox) + ".\(number)"
  }

  private static let probeInbox: String = {
    var session = NATSSession([NATSAddress("h")], options: NATSOptions(), seed: 1)
    let now = MonotonicTime(nanoseconds: 0)
    _ = session.start(at: now)
    session.opened(isSecure: false, credentials: .none, at: now)
    for text in ["INFO {\"headers\":true}\r\n", "PONG\r\n"] {
      var parser = NATSParser()
      _ = try! withExactMemory(Array(text.utf8)) {
        try parser.parse(NATSBytes($0)) { operation in
          _ = session.receive(operation, at: now)
          return true
        }
      }
    }
    let sent = String(decoding: session.output.waiting, as: UTF8.self)
    return sent.split(separator: " ").first { $0.hasPrefix("_INBOX.") }!.split(separator: ".").dropLast()
      .joined(separator: ".")
  }()

  private static func receive(
    _ bytes: [UInt8], _ session: inout NATSSession, _ parser: inout NATSParser, _ scene: inout SessionScene,
    _ now: MonotonicTime
  ) throws {
    guard scene.state == .open else { return }
    session.heard(at: now)
    do {
      _ = try withExactMemory(bytes) { memory in
        try parser.parse(NATSBytes(memory)) { operation throws(NATSError) in
          do {
            try scene.note(session.receive(operation, at: now))
          } catch {
            scene.violation = error
          }
          return scene.state == .open
        }
      }
    } catch let error as NATSError {
      try scene.note(session.violated(error, at: now))
    }
    if let violation = scene.violation { throw violation }
  }

  // MARK: Answers

  /// Reading in place gives the same result as a JSON decoder.
  private static func acknowledgement(_ json: [UInt8]) throws {
    try withExactMemory(json) { memory in
      let bytes = NATSBytes(memory)
      let decoded = try? PublishAcknowledgement(decoding: bytes, server: "s")
      guard let scanned = PublishAcknowledgement(scanning: bytes) else { return }
      // Reading in place accepts duplicate names only if they don't matter.
      guard decoded == nil || decoded == scanned else {
        throw ProbeViolation("\(scanned) in place, \(String(describing: decoded)) as JSON")
      }
      guard scanned.sequence > 0 else { throw ProbeViolation("an acknowledgement of nothing") }
    }
  }

  private static func position(_ bytes: [UInt8]) throws {
    try withExactMemory(bytes) { memory in
      guard let position = DeliveryPosition(NATSBytes(memory)) else { return }
      let tokens = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map {
        String(decoding: $0, as: UTF8.self)
      }
      let first = tokens.count == 9 ? 5 : 7
      guard UInt64(tokens[first]) == position.streamSequence,
        UInt64(tokens[first + 1]) == position.consumerSequence, UInt64(tokens[first + 3]) == position.pending
      else { throw ProbeViolation("\(position) of \(tokens)") }
    }
  }

  // MARK: Texts

  private static func credentials(_ bytes: [UInt8]) throws {
    let text = String(decoding: bytes, as: UTF8.self)
    if let content = try? NKey.decode(text, of: "a text") {
      let again = NKey.encode(content)
      guard try NKey.decode(again, of: "a text") == content else {
        throw ProbeViolation("a key isn't the same when it is read again")
      }
    }
    if let key = try? NKey(seed: text) {
      guard try NKey.decode(key.publicText, of: "a key").count == 33 else {
        throw ProbeViolation("\(key.publicText) is no public key")
      }
    }
    do throws(NATSError) {
      _ = try NATSCredentials(contents: bytes)
    } catch {
      guard error.code == .invalidCredentials else { throw ProbeViolation("\(error)") }
    }
  }

  private static func addresses(_ bytes: [UInt8]) throws {
    let text = String(decoding: bytes, as: UTF8.self)
    do throws(NATSError) {
      for address in try NATSAddress.list(parsing: text) {
        let again: NATSAddress
        do { again = try NATSAddress(parsing: address.description) } catch {
          throw NATSError(.refused, "\(address) can't be read again: \(error)")
        }
        guard again == address else { throw NATSError(.refused, "\(address) is read as \(again)") }
      }
    } catch {
      guard error.code == .invalidAddress else { throw ProbeViolation("\(error)") }
    }
    if (try? NATSSubject.check(text, wildcards: true)) != nil {
      guard !text.utf8.contains(where: { $0 <= 0x20 }) else { throw ProbeViolation("\(text) is a subject") }
    }
  }
}

/// The state known to a session's caller.
private struct SessionScene {
  enum State {
    case none
    case connecting
    case securing
    case open
  }

  var state = State.none
  var isClosed = false
  /// Whether each request accepts several replies.
  var requests: [UInt64: Bool] = [:]
  var subscriptions: Set<UInt64> = []
  var violation: (any Error)?

  mutating func note(_ action: NATSAction) throws {
    guard !isClosed else {
      if case .none = action { return }
      throw ProbeViolation("a session acts after its end: \(action)")
    }
    switch action {
    case .none: break
    case .connect:
      guard state == .none else { throw ProbeViolation("two connections") }
      state = .connecting
    case .secure:
      guard state == .open else { throw ProbeViolation("TLS without a connection") }
      state = .securing
    case .disconnect:
      guard state != .none else { throw ProbeViolation("there is no connection to drop") }
      state = .none
    case .ready: guard state == .open else { throw ProbeViolation("ready without a connection") }
    case .interrupted, .lameDuck: break
    case .closed: isClosed = true
    case .deliver(let message):
      guard subscriptions.contains(message.subscription) else {
        throw ProbeViolation("subscription \(message.subscription) gets something after its end")
      }
    case .subscriptionEnded(let number, _):
      guard subscriptions.remove(number) != nil else {
        throw ProbeViolation("subscription \(number) ends twice")
      }
    case .answer(let number, _):
      guard let isMany = requests[number] else {
        throw ProbeViolation("request \(number) is answered after its end")
      }
      if !isMany { requests[number] = nil }
    case .failed(let number, _):
      guard requests.removeValue(forKey: number) != nil else {
        throw ProbeViolation("request \(number) fails after its end")
      }
    case .several(let actions): for action in actions { try note(action) }
    }
  }
}
