import SluiceHTTP

/// The server's half of the opening handshake (RFC 6455, section 4.2): the head of a request in, an agreement or a refusal out.
package struct WebSocketUpgrade: Sendable {
  package struct Rules: Sendable {
    /// The subprotocols that the server speaks. The client's order decides among them.
    package var subprotocols: [String]
    /// Paths at which it does; empty for any.
    package var paths: Set<String>
    /// Origins whose pages may connect, such as `https://example.org`; nil for any. A request without an Origin doesn't come from a page, and is
    /// taken; so is one whose Origin is the server's own numeric address.
    package var origins: Set<String>?
    /// Whether an offer of permessage-deflate is accepted.
    package var compression: Bool

    package init(
      subprotocols: [String], paths: Set<String> = [], origins: Set<String>? = nil, compression: Bool = false
    ) {
      self.subprotocols = subprotocols
      self.paths = paths
      self.origins = origins.map { Set($0.map { $0.lowercased() }) }
      self.compression = compression
    }
  }

  /// The connection is a WebSocket once the answer is sent.
  package struct Agreement: Hashable, Sendable {
    package var subprotocol: String
    /// Nil where messages aren't compressed.
    package var compression: WebSocketCompressionTerms?
    /// To be sent before any frame.
    package var answer: [UInt8]
    /// The request, for what else it says, such as its credentials.
    package var request: HTTPRequestHead
  }

  /// To be sent; the connection is closed then.
  package struct Refusal: Error, Hashable, Sendable {
    package var status: Int
    /// Says what is wrong and what to do. The answer's body.
    package var message: String
    private let fields: [String: String]

    init(_ status: Int, _ message: String, _ fields: [String: String] = [:]) {
      self.status = status
      self.message = message
      self.fields = fields
    }

    /// - Parameter time: the present one, in milliseconds since 1970.
    package func answer(at time: Int64) -> [UInt8] {
      let all =
        [HTTPDate.field(time)] + fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } + [
          ("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", "\(message.utf8.count + 1)"),
          ("Connection", "close"),
        ]
      return HTTPAnswerHead.bytes(status, all) + Array("\(message)\n".utf8)
    }

    /// For a client that hasn't sent a whole request in the time for it.
    package static let timeout = Refusal(408, "the request that opens a WebSocket wasn't complete in time")

    /// For a request whose head can't be read.
    package init(_ fault: HTTPRequestHead.Fault) {
      switch fault {
      case .malformed(let why): self.init(400, why)
      case .notText: self.init(400, "the request's head isn't UTF-8")
      case .tooLarge(let why): self.init(431, why)
      }
    }
  }

  private let rules: Rules
  private let sha1: @Sendable ([UInt8]) -> [UInt8]

  /// - Parameter sha1: the hash that `Sec-WebSocket-Accept` is made with.
  package init(_ rules: Rules, sha1: @escaping @Sendable ([UInt8]) -> [UInt8]) {
    self.rules = rules
    self.sha1 = sha1
  }

  /// Decides about a request.
  package func answer(_ request: HTTPRequestHead) throws(Refusal) -> Agreement {
    guard request.version == "1.1" else {
      throw Refusal(505, "a WebSocket is opened with HTTP/1.1")
    }
    guard request.method == "GET" else {
      throw Refusal(405, "a WebSocket is opened with GET", ["Allow": "GET"])
    }
    let path = request.target.prefix { $0 != "?" }
    guard request.target.hasPrefix("/"), rules.paths.isEmpty || rules.paths.contains(String(path)) else {
      throw Refusal(404, "there is no WebSocket at \(path)")
    }
    guard request.values("host").count == 1 else { throw Self.bad("the request needs one Host field") }
    guard request.values("transfer-encoding").isEmpty,
      request.values("content-length").allSatisfy({ $0 == "0" })
    else { throw Self.bad("a request that opens a WebSocket has no body") }
    guard Self.has("websocket", in: request.elements("upgrade")),
      Self.has("upgrade", in: request.elements("connection"))
    else {
      throw Refusal(
        426, "only WebSockets are served here: ask for Upgrade: websocket",
        ["Upgrade": "websocket", "Connection": "Upgrade"])
    }
    guard request.values("sec-websocket-version") == ["13"] else {
      throw Refusal(
        426, "the request needs Sec-WebSocket-Version: 13",
        ["Upgrade": "websocket", "Sec-WebSocket-Version": "13"])
    }
    let keys = request.values("sec-websocket-key")
    guard keys.count == 1, Self.isKey(keys[0]) else {
      throw Self.bad("the request needs one Sec-WebSocket-Key of 16 bytes in Base64")
    }
    try checkOrigin(request)
    let subprotocol = try chooseSubprotocol(request)
    var fields = [
      ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept(keys[0])),
      ("Sec-WebSocket-Protocol", subprotocol),
    ]
    // Extensions that the answer doesn't name are not in use.
    let offers = try Self.offers(request)
    let compression = rules.compression ? WebSocketCompressionTerms(offers: offers) : nil
    if let compression { fields.append(("Sec-WebSocket-Extensions", compression.field)) }
    return Agreement(
      subprotocol: subprotocol, compression: compression, answer: HTTPAnswerHead.bytes(101, fields),
      request: request)
  }

  /// The `Sec-WebSocket-Accept` for that key.
  package func accept(_ key: String) -> String {
    Base64.encode(sha1(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
  }

  private func checkOrigin(_ request: HTTPRequestHead) throws(Refusal) {
    let origins = request.values("origin")
    guard let allowed = rules.origins, !origins.isEmpty else { return }
    let host = request.values("host").first ?? ""
    guard origins.count == 1,
      allowed.contains(origins[0].lowercased()) || HTTPOrigin.isAddress(origins[0], of: host)
    else {
      throw Refusal(403, "pages of the origin \(origins.joined(separator: ", ")) may not connect here")
    }
  }

  private func chooseSubprotocol(_ request: HTTPRequestHead) throws(Refusal) -> String {
    let asked = request.elements("sec-websocket-protocol")
    if let chosen = asked.first(where: rules.subprotocols.contains) { return chosen }
    throw Self.bad(
      "the request needs a Sec-WebSocket-Protocol that is served here: \(rules.subprotocols.joined(separator: ", "))"
    )
  }

  /// - Throws: a refusal of a field that isn't in the form of RFC 6455, section 9.1. The RFC requires the connection to fail then, whatever the
  ///   field offers.
  private static func offers(_ request: HTTPRequestHead) throws(Refusal) -> [WebSocketExtensionOffer] {
    var all: [WebSocketExtensionOffer] = []
    for field in request.values("sec-websocket-extensions") {
      guard let offers = WebSocketExtensionOffer.all(in: field) else {
        throw bad("Sec-WebSocket-Extensions must be a list of names, each with parameters behind semicolons")
      }
      all += offers
    }
    return all
  }

  private static func bad(_ message: String) -> Refusal { Refusal(400, message) }

  private static func has(_ token: String, in elements: [String]) -> Bool {
    elements.contains { $0.lowercased() == token }
  }

  /// Whether it is the Base64 of 16 bytes.
  private static func isKey(_ text: String) -> Bool { Base64.decode(text)?.count == 16 }
}
