/// How the messages of a connection are compressed, once a client's offer of permessage-deflate was accepted (RFC 7692, section 7).
///
/// Each message is compressed by itself, in both directions: a connection keeps no window from one message to the next.
package struct WebSocketCompressionTerms: Hashable, Sendable {
  /// The server's window has 2 to the power of it bytes at most, 9 to 15.
  package var windowBits: Int
  /// Whether the client has asked for that limit, and has to be answered.
  private let isLimited: Bool

  /// The terms of the first acceptable offer; nil if there is none.
  init?(offers: [WebSocketExtensionOffer]) {
    for offer in offers {
      guard let terms = WebSocketCompressionTerms(offer) else { continue }
      self = terms
      return
    }
    return nil
  }

  /// Nil if the offer is malformed, or can't be accepted.
  private init?(_ offer: WebSocketExtensionOffer) {
    guard offer.name == "permessage-deflate",
      Set(offer.parameters.map(\.name)).count == offer.parameters.count
    else { return nil }
    var limit: Int?
    for parameter in offer.parameters {
      switch (parameter.name, parameter.value) {
      case ("server_no_context_takeover", nil), ("client_no_context_takeover", nil): break
      case ("server_max_window_bits", let value?):
        guard let bits = Self.bits(value), Deflater.windowBits.contains(bits) else { return nil }
        limit = bits
      // Any window of the client is accepted.
      case ("client_max_window_bits", nil): break
      case ("client_max_window_bits", let value?): guard Self.bits(value) != nil else { return nil }
      default: return nil
      }
    }
    windowBits = limit ?? Deflater.windowBits.upperBound
    isLimited = limit != nil
  }

  /// A number from 8 to 15, in digits as the RFC has them.
  private static func bits(_ text: String) -> Int? {
    (8...15).first { "\($0)" == text }
  }

  /// The answer's `Sec-WebSocket-Extensions`.
  var field: String {
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
      + (isLimited ? "; server_max_window_bits=\(windowBits)" : "")
  }
}
