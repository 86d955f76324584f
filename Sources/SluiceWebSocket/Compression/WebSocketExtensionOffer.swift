import SluiceHTTP

/// An extension that a client offers in `Sec-WebSocket-Extensions` (RFC 6455, section 9.1).
struct WebSocketExtensionOffer: Hashable {
  struct Parameter: Hashable {
    var name: String
    /// Without its quotes; nil if there is none.
    var value: String?
  }

  var name: String
  var parameters: [Parameter] = []

  /// The offers in a field, in the client's order; nil for a field that isn't in the form of the RFC.
  static func all(in field: String) -> [WebSocketExtensionOffer]? {
    var offers: [WebSocketExtensionOffer] = []
    var rest = Substring(field)
    while true {
      // A list may have empty elements (RFC 9110, section 5.6.1).
      while skip(",", in: &rest) {}
      if rest.isEmpty { return offers }
      guard let name = token(in: &rest) else { return nil }
      var offer = WebSocketExtensionOffer(name: name)
      while skip(";", in: &rest) {
        guard let parameter = parameter(in: &rest) else { return nil }
        offer.parameters.append(parameter)
      }
      offers.append(offer)
      guard rest.isEmpty || rest.first == "," else { return nil }
    }
  }

  private static func parameter(in rest: inout Substring) -> Parameter? {
    guard let name = token(in: &rest) else { return nil }
    guard skip("=", in: &rest) else { return Parameter(name: name) }
    guard let value = rest.first == "\"" ? quoted(in: &rest) : token(in: &rest) else { return nil }
    return Parameter(name: name, value: value)
  }

  /// Takes a character and the white space around it.
  private static func skip(_ character: Character, in rest: inout Substring) -> Bool {
    trim(&rest)
    guard rest.first == character else { return false }
    rest = rest.dropFirst()
    trim(&rest)
    return true
  }

  private static func trim(_ rest: inout Substring) { rest = rest.drop { $0 == " " || $0 == "\t" } }

  private static func token(in rest: inout Substring) -> String? {
    let end = rest.firstIndex { " \t,;=\"".contains($0) } ?? rest.endIndex
    let token = rest[..<end]
    guard HTTPRequestHead.isToken(token) else { return nil }
    rest = rest[end...]
    trim(&rest)
    return String(token)
  }

  /// Between two quotes, where a backslash stands in front of a character that has no other meaning then. The content has to be a token, too.
  private static func quoted(in rest: inout Substring) -> String? {
    var value = ""
    rest = rest.dropFirst()
    while let character = rest.popFirst() {
      switch character {
      case "\"":
        trim(&rest)
        return HTTPRequestHead.isToken(value[...]) ? value : nil
      case "\\":
        guard let escaped = rest.popFirst() else { return nil }
        value.append(escaped)
      default: value.append(character)
      }
    }
    return nil
  }
}
