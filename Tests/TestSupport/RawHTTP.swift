/// A minimal HTTP client, which sends exactly the text that a test provides.
///
/// Used by one thread at a time.
public final class RawHTTP {
  public struct Answer: Sendable {
    public var status: Int
    /// By name in lower case.
    public var headers: [String: String]
    public var body: [UInt8]

    public var text: String { String(decoding: body, as: UTF8.self) }
  }

  public let socket: RawSocket
  private let host: String
  private var received: [UInt8] = []

  /// Connects to `HOST:PORT`, numeric.
  public init(_ address: String, receiveBuffer: Int? = nil) throws {
    socket = try RawSocket(address, receiveBuffer: receiveBuffer)
    host = address
  }

  /// Sends one request on a new connection.
  public static func get(
    _ address: String, _ target: String, method: String = "GET", headers: [String] = []
  ) throws -> Answer {
    let client = try RawHTTP(address)
    try client.request(target, method: method, headers: headers + ["Connection: close"])
    return try client.answer(hasBody: method != "HEAD")
  }

  /// The same with a body and its content length.
  public static func send(
    _ address: String, _ method: String, _ target: String, headers: [String] = [], body: String? = nil
  ) throws -> Answer {
    let client = try RawHTTP(address)
    let length = body.map { ["Content-Length: \($0.utf8.count)"] } ?? []
    try client.request(target, method: method, headers: headers + length + ["Connection: close"])
    // If the head alone is rejected, the server may respond and close the connection before the body is sent.
    if let body { try? client.send(body) }
    return try client.answer(hasBody: method != "HEAD")
  }

  public func request(_ target: String, method: String = "GET", headers: [String] = []) throws {
    let own = headers.contains { $0.lowercased().hasPrefix("host:") } ? [] : ["Host: \(host)"]
    try send((["\(method) \(target) HTTP/1.1"] + own + headers + ["", ""]).joined(separator: "\r\n"))
  }

  public func send(_ text: String) throws {
    var rest = Array(text.utf8)[...]
    let deadline = Deadline(in: Deadline.patience)
    while !rest.isEmpty {
      let count = try rest.withUnsafeBytes { try socket.write($0) }
      rest.removeFirst(count)
      if count == 0, !socket.wait(toWrite: true, until: deadline) { throw TestFailure("nothing is read") }
    }
  }

  /// The next response, with a stated length or until the end of the connection.
  public func answer(hasBody: Bool = true) throws -> Answer {
    let end = Array("\r\n\r\n".utf8)
    var head: Int?
    while head == nil {
      head = received.indices.first { received[$0...].starts(with: end) }
      if head == nil { try readMore() }
    }
    let lines = String(decoding: received[..<head!], as: UTF8.self).split(separator: "\r\n")
    var answer = Answer(status: Int(lines[0].split(separator: " ")[1]) ?? 0, headers: [:], body: [])
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      answer.headers[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
    }
    received.removeFirst(head! + 4)
    guard hasBody, let length = answer.headers["content-length"].flatMap({ Int($0) }) else { return answer }
    while received.count < length { try readMore() }
    answer.body = Array(received.prefix(length))
    received.removeFirst(length)
    return answer
  }

  /// Reads until `mark` has arrived. Returns the text received since the last call.
  public func text(upTo mark: String) throws -> String {
    while !String(decoding: received, as: UTF8.self).contains(mark) { try readMore() }
    defer { received = [] }
    return String(decoding: received, as: UTF8.self)
  }

  /// Waits until the other side has closed the connection.
  public func waitForClose() throws {
    do {
      while true { try readMore() }
    } catch is RawSocket.Closed {}
  }

  private func readMore() throws {
    let deadline = Deadline(in: Deadline.patience)
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      if let count = try chunk.withUnsafeMutableBytes({ try socket.read(into: $0) }) {
        received += chunk[..<count]
        return
      }
      guard socket.wait(until: deadline) else { throw TestFailure("there is no answer in time") }
    }
  }
}
