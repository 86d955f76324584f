import Glibc
import SluiceIO
import SluiceNATS
import SluiceSimulation
import TestSupport

/// A message published by a client.
struct Published: Equatable {
  var subject: String
  var reply: String
  /// The headers as sent, with the empty line.
  var headers: String
  var payload: [UInt8]

  func header(_ name: String) -> String? {
    for line in headers.split(separator: "\r\n") where line.hasPrefix(name + ": ") {
      return String(line.dropFirst(name.count + 2))
    }
    return nil
  }
}

/// A scripted NATS server in a simulated world. It supports subscriptions and requests without responders, and replies as the test says.
///
/// Unchecked: a world and its parts are used by one thread.
final class ScriptedServer: @unchecked Sendable {
  let name: String
  let loop: SimulatedLoop
  private(set) var address: NATSAddress
  private var listener: (any Listener)?
  private let network: any Network

  /// Additional fields of INFO, such as `,"tls_required":true`.
  var infoFields = ""
  /// Whether the server starts with INFO. If TLS follows it, the network has sent it.
  var greets = true
  /// The reason for rejecting CONNECT; nil to accept it.
  var refusal: (ScriptedConnection) -> String? = { _ in nil }
  /// Called with each connection before its use.
  var prepare: (ScriptedConnection) -> Void = { _ in }
  /// Called with each message; returns false if it doesn't handle it.
  var script: (Published, ScriptedConnection) -> Bool = { _, _ in false }
  /// All published messages, in order.
  private(set) var published: [Published] = []
  /// In the order of opening.
  private(set) var connections: [ScriptedConnection] = []

  init(
    _ name: String, world: SimulatedWorld, loop: SimulatedLoop, at host: String, port: UInt16 = 4_222,
    network: (any Network)? = nil, hasTLS: Bool = false
  ) throws {
    self.name = name
    self.loop = loop
    self.network = network ?? world.network
    address = NATSAddress(host, port: port, requiresTLS: hasTLS)
    try listen()
  }

  func listen() throws {
    let (host, port) = (address.host, address.port)
    listener = try network.listen(
      at: address.requiresTLS ? .tls(host, port: port) : .host(host, port: port), group: LoopGroup([loop])
    ) { [weak self] stream, _ in self?.accept(stream) }
  }

  /// Accepts no more connections; existing ones continue.
  func stopListening() { listener?.close() }

  private func accept(_ stream: any ByteStream) {
    let connection = ScriptedConnection(stream, of: self)
    connections.append(connection)
    prepare(connection)
    connection.start()
  }

  var info: String {
    #"INFO {"server_id":"\#(name)","server_name":"\#(name)","version":"2.15.1","headers":true,"#
      + #""max_payload":100000,"jetstream":true\#(infoFields)}"# + "\r\n"
  }

  func route(_ message: Published, from connection: ScriptedConnection) {
    published.append(message)
    var isKnown = script(message, connection)
    for connection in connections where connection.deliver(message) { isKnown = true }
    guard !isKnown, !message.reply.isEmpty else { return }
    connection.send(message.reply, headers: "NATS/1.0 503\r\n\r\n")
  }
}

/// One client of a scripted server.
final class ScriptedConnection: ByteStreamHandler {
  private let stream: any ByteStream
  private unowned let server: ScriptedServer
  private var input: [UInt8] = []
  private var output: [UInt8] = []
  private(set) var isOver = false
  private(set) var connect: String?
  private(set) var pings = 0
  /// The numbers of bytes received and processed, and of bytes sent.
  private(set) var received = 0
  private(set) var sent = 0
  /// The connection is reset after it has processed or sent that many bytes.
  var resetAfterReceiving = Int.max
  var resetAfterSending = Int.max
  /// Whether received bytes wait unprocessed.
  var isStalled = false {
    didSet { if !isStalled { process() } }
  }
  private var subscriptions: [UInt64: (subject: String, remaining: Int?)] = [:]

  init(_ stream: any ByteStream, of server: ScriptedServer) {
    self.stream = stream
    self.server = server
  }

  var subjects: [String] { subscriptions.sorted { $0.key < $1.key }.map(\.value.subject) }

  func start() {
    stream.start(self)
    if server.greets { write(server.info) }
  }

  // MARK: Output

  func write(_ text: String) {
    output += bytes(text)
    flush()
  }

  /// Sends a message to the matching subscriptions.
  @discardableResult
  func send(_ subject: String, headers: String = "", payload: [UInt8] = [], reply: String = "") -> Bool {
    var wasSent = false
    for number in subscriptions.keys.sorted() {
      guard NATSSubject.matches(subject, subscriptions[number]!.subject) else { continue }
      send(number, subject, headers: headers, payload: payload, reply: reply)
      wasSent = true
    }
    return wasSent
  }

  /// Sends a message of any subject to the subscription of `inbox`, as the engine does for consumers.
  func push(to inbox: String, subject: String, headers: String, payload: [UInt8], reply: String) {
    for (number, subscription) in subscriptions where subscription.subject == inbox {
      send(number, subject, headers: headers, payload: payload, reply: reply)
    }
  }

  private func send(_ number: UInt64, _ subject: String, headers: String, payload: [UInt8], reply: String) {
    let middle = "\(subject) \(number) \(reply.isEmpty ? "" : reply + " ")"
    let line =
      headers.isEmpty
      ? "MSG \(middle)\(payload.count)\r\n"
      : "HMSG \(middle)\(headers.utf8.count) \(headers.utf8.count + payload.count)\r\n\(headers)"
    output += bytes(line) + payload + bytes("\r\n")
    flush()
    if let remaining = subscriptions[number]?.remaining {
      subscriptions[number]?.remaining = remaining - 1
      if remaining <= 1 { subscriptions[number] = nil }
    }
  }

  func deliver(_ message: Published) -> Bool {
    !isOver
      && send(message.subject, headers: message.headers, payload: message.payload, reply: message.reply)
  }

  private func flush() {
    guard !isOver else { return }
    let allowed = min(output.count, resetAfterSending - sent)
    let result = output.withUnsafeMutableBytes { bytes -> WriteResult in
      var vector = iovec(iov_base: bytes.baseAddress, iov_len: allowed)
      return withUnsafePointer(to: &vector) { stream.write(UnsafeBufferPointer(start: $0, count: 1)) }
    }
    switch result {
    case .failed: close()
    case .wrote(let count):
      sent += count
      output.removeFirst(count)
      if sent >= resetAfterSending { reset() }
    }
  }

  func reset() {
    isOver = true
    stream.abort()
  }

  /// Closes the connection after the bytes sent so far.
  func close() {
    isOver = true
    stream.close()
  }

  // MARK: Input

  func streamReadable() {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    switch buffer.withUnsafeMutableBytes({ stream.read(into: $0) }) {
    case .bytes(let count):
      input += buffer[..<count]
      process()
    case .wouldBlock: break
    case .end, .failed: close()
    }
  }

  func streamWritable() { flush() }

  func streamFailed(_ error: IOError) { isOver = true }

  private func process() {
    while !isOver, !isStalled {
      // Bytes beyond the limit never arrive.
      let allowed = input.prefix(resetAfterReceiving - received)
      guard let count = processOne(Array(allowed)) else {
        if allowed.count < input.count || received + allowed.count >= resetAfterReceiving { reset() }
        return
      }
      received += count
      input.removeFirst(count)
    }
  }

  /// Returns the length of the first operation; nil if that is incomplete.
  private func processOne(_ bytes: [UInt8]) -> Int? {
    guard let end = bytes.firstIndex(of: 0x0A) else { return nil }
    let line = String(decoding: bytes[..<(end - 1)], as: UTF8.self)
    let words = line.split(separator: " ").map(String.init)
    let first = end + 1
    switch words[0] {
    case "CONNECT":
      connect = String(line.dropFirst("CONNECT ".count))
      if let refusal = server.refusal(self) {
        write("-ERR '\(refusal)'\r\n")
        close()
      }
    case "PING":
      pings += 1
      write("PONG\r\n")
    case "PONG": break
    case "SUB": subscriptions[UInt64(words.last!)!] = (words[1], nil)
    case "UNSUB":
      let number = UInt64(words[1])!
      if words.count == 3 {
        subscriptions[number]?.remaining = Int(words[2])!
      } else {
        subscriptions[number] = nil
      }
    case "PUB", "HPUB":
      let headers = words[0] == "HPUB" ? Int(words[words.count - 2])! : 0
      let total = Int(words.last!)!
      guard bytes.count >= first + total + 2 else { return nil }
      let words = words.dropLast(words[0] == "HPUB" ? 2 : 1)
      server.route(
        Published(
          subject: words[1], reply: words.count > 2 ? words[2] : "",
          headers: String(decoding: bytes[first..<first + headers], as: UTF8.self),
          payload: Array(bytes[first + headers..<first + total])), from: self)
      return first + total + 2
    default: write("-ERR 'Unknown Protocol Operation'\r\n")
    }
    return first
  }
}
