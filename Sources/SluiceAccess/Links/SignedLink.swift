import SluiceTLS
import SluiceWire

/// The credentials in an address for one topic and one operation, which an identity has made for a short time.
///
/// ```
/// "link1." and base64url of the bytes below, "." and base64url of their HMAC-SHA-256
/// u8 operation · i64 expires · string topic · u8 proof · string name · string client's identifier · string key's id · string tag of the proof
/// u8 flags (1: the permissions came with the proof, 2: it expires) · i64 when the proof expires
/// ```
package struct SignedLink: Hashable, Sendable {
  package var operation: LinkOperation
  package var topic: String
  /// In milliseconds since 1970.
  package var expires: Int64
  /// The identity that has made it, based on the ``LinkKey/tag(of:)`` of its proof. Its permissions aren't in the link, unless they came with its proof: then they are what the link needs.
  var maker: Identity

  static let prefix = "link1."

  /// Whether credentials are a link, valid or not. Only the HTTP gateway takes links, which knows the request that they are for: a subscription may also join
  /// groups and move cursors.
  package static func isLink(_ credentials: Credentials) -> Bool {
    credentials.method == .token && isLink(credentials.secret)
  }

  /// Whether a text begins as links do.
  package static func isLink(_ text: String) -> Bool { text.utf8.starts(with: prefix.utf8) }
  /// In bytes of text.
  private static let maximumLength = 4096

  init(_ operation: LinkOperation, on topic: String, until expires: Int64, by maker: Identity) {
    self.operation = operation
    self.topic = topic
    self.expires = expires
    self.maker = maker
  }

  // MARK: Text

  func signed(with key: LinkKey) -> String {
    let bytes = encoded
    return Self.prefix + Base64Text.url.encode(bytes) + "." + Base64Text.url.encode(key.signature(of: bytes))
  }

  /// Reads a link without a check of its signature: for messages about what it is for.
  ///
  /// - Returns: nil for what isn't a link.
  package init?(unverified text: String) {
    guard let parts = Self.parts(of: text), let link = SignedLink(decoding: parts.content) else { return nil }
    self = link
  }

  /// - Throws: `authenticationFailed` for a link that the key didn't sign, `credentialsExpired` for an expired one.
  init(_ text: String, key: LinkKey, now: Int64) throws(WireError) {
    guard let parts = Self.parts(of: text),
      isEqualInConstantTime(key.signature(of: parts.content), parts.signature),
      let link = SignedLink(decoding: parts.content)
    else {
      throw WireError(
        .authenticationFailed,
        "the link isn't valid: it was altered, or signed with a key that the broker doesn't have; make a new one"
      )
    }
    guard now < link.expires else {
      throw WireError(.credentialsExpired, "the link has expired; make a new one")
    }
    self = link
  }

  private static func parts(of text: String) -> (content: [UInt8], signature: [UInt8])? {
    guard text.utf8.count <= maximumLength, text.utf8.starts(with: prefix.utf8) else { return nil }
    let parts = text.utf8.dropFirst(prefix.utf8.count).split(
      separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 2, let content = Base64Text.url.decode(parts[0]),
      let signature = Base64Text.url.decode(parts[1])
    else { return nil }
    return (content, signature)
  }

  // MARK: Bytes

  private var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.integer(operation.rawValue)
    writer.integer(expires)
    writer.string(topic)
    let (kind, keyID): (UInt8, String) =
      switch maker.proof {
      case .none: (0, "")
      case .password: (1, "")
      case .token(let key): (2, key)
      case .certificate: (3, "")
      case .node, .link: preconditionFailure("neither a node nor a link makes links")
      }
    writer.integer(kind)
    writer.string(maker.name)
    writer.string(maker.clientID)
    writer.string(keyID)
    writer.string(Base64Text.url.encode(maker.basis))
    writer.integer(UInt8((maker.carriesPermissions ? 1 : 0) | (maker.expires == nil ? 0 : 2)))
    writer.integer(maker.expires ?? 0)
    return writer.bytes
  }

  private init?(decoding bytes: [UInt8]) {
    let link: SignedLink? = unsafe bytes.withUnsafeBytes { bytes in
      var reader = unsafe ByteReader(bytes)
      return try? SignedLink(&reader)
    }
    guard let link else { return nil }
    self = link
  }

  private init(_ reader: inout ByteReader) throws(WireError) {
    func malformed() -> WireError { WireError(.authenticationFailed, "the link can't be read") }
    guard let operation = LinkOperation(rawValue: try reader.integer("operation")) else { throw malformed() }
    self.operation = operation
    expires = try reader.integer("expiry")
    topic = try reader.string("topic")
    let kind: UInt8 = try reader.integer("proof")
    let name = try reader.string("name")
    let clientID = try reader.string("client's identifier")
    let keyID = try reader.string("key")
    guard let basis = Base64Text.url.decode(try reader.string("basis").utf8) else { throw malformed() }
    let flags: UInt8 = try reader.integer("flags")
    let proofExpires: Int64 = try reader.integer("proof's expiry")
    guard flags < 4, unsafe reader.remaining.isEmpty, let pattern = try? TopicPattern(topic),
      !pattern.hasWildcards
    else { throw malformed() }
    let proof: Identity.Proof
    switch kind {
    case 0: proof = .none
    case 1: proof = .password
    case 2: proof = .token(key: keyID)
    case 3: proof = .certificate
    default: throw malformed()
    }
    maker = Identity(
      name: name, proof: proof,
      permissions: Permissions([Permissions.Rule(operation.rights, on: pattern)]),
      carriesPermissions: flags & 1 != 0, expires: flags & 2 != 0 ? proofExpires : nil
    ).based(on: basis)
    maker.clientID = clientID
  }
}
