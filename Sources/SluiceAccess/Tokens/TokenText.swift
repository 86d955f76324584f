import FoundationEssentials

/// A token as it is written, taken apart but not believed: header, claims and signature in base 64, with dots between them (RFC 7515, 7519).
struct TokenText: Sendable {
  /// In bytes. The whole handshake, which contains the token, has 8 KiB.
  static let maximumLength = 4096

  let header: TokenHeader
  /// Objects of JSON, as they were signed.
  let headerBytes: [UInt8]
  let claimBytes: [UInt8]
  let signature: [UInt8]
  /// The signed text.
  let signed: [UInt8]

  init(_ text: String) throws(TokenError) {
    let bytes = Array(text.utf8)
    guard bytes.count <= Self.maximumLength else {
      throw .malformed("it has \(bytes.count) bytes; the limit is \(Self.maximumLength)")
    }
    let parts = bytes.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 3 else { throw .malformed("it isn't three parts with dots between them") }
    guard let header = Base64Text.url.decode(parts[0]), let claims = Base64Text.url.decode(parts[1]),
      let signature = Base64Text.url.decode(parts[2])
    else { throw .malformed("a part isn't base64url without padding") }
    headerBytes = header
    claimBytes = claims
    self.signature = signature
    signed = Array(bytes[..<parts[1].endIndex])
    self.header = try Self.decode(TokenHeader.self, header, "header")
  }

  /// Believe them when the signature is right.
  func claims() throws(TokenError) -> TokenClaims {
    try Self.decode(TokenClaims.self, claimBytes, "claims")
  }

  static func decode<Value: Decodable>(
    _ type: Value.Type, _ bytes: [UInt8], _ what: String
  ) throws(TokenError) -> Value {
    // Text of UTF-8 and nothing else: the decoder would also take other encodings, which have zeros in them.
    guard !bytes.contains(0), String(validating: bytes, as: UTF8.self) != nil else {
      throw .malformed("the \(what) aren't UTF-8")
    }
    do {
      return try JSONDecoder().decode(type, from: Data(bytes))
    } catch let error as TokenError {
      throw error
    } catch {
      throw .malformed("the \(what) aren't what they should be: \(explained(error))")
    }
  }

  private static func explained(_ error: any Error) -> String {
    guard let error = error as? DecodingError else { return "they can't be read" }
    switch error {
    case .keyNotFound(let key, _): return "\(IdentityRules.shown(key.stringValue)) is missing"
    case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
      let path = context.codingPath.map { IdentityRules.shown($0.stringValue) }
      return path.isEmpty ? "not an object of JSON" : "\(path.joined(separator: ".")) is of another kind"
    @unknown default: return "they can't be read"
    }
  }
}

/// The signature, not verified yet.
struct TokenHeader: Decodable, Sendable {
  let algorithm: String
  let key: String

  private enum Name: String, CodingKey {
    case alg, kid, crit
  }

  init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: Name.self)
    algorithm = try members.decode(String.self, forKey: .alg)
    key = try members.decode(String.self, forKey: .kid)
    // It names extensions that must be understood; none is.
    if members.contains(.crit) { throw TokenError.malformed("its header has crit, which isn't understood") }
  }
}
