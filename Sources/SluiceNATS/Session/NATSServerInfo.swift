import FoundationEssentials

/// A server's description of itself in INFO.
public struct NATSServerInfo: Hashable, Sendable, Decodable {
  public var serverID: String
  public var serverName: String
  /// Such as `2.15.1`.
  public var version: String
  /// The most bytes that headers and payload of a message may have together.
  public var maximumPayload: Int
  public var hasHeaders: Bool
  public var hasJetStream: Bool
  public var requiresTLS: Bool
  public var offersTLS: Bool
  public var requiresAuthentication: Bool
  /// The challenge that the client must sign; empty if there is none.
  public var nonce: String
  /// Addresses of the cluster's servers, as `HOST:PORT`.
  public var connectURLs: [String]
  public var cluster: String
  /// The server is about to stop: clients should move to another one.
  public var isLameDuck: Bool
  public var clientID: UInt64

  private enum Key: String, CodingKey {
    case serverID = "server_id"
    case serverName = "server_name"
    case version
    case maximumPayload = "max_payload"
    case hasHeaders = "headers"
    case hasJetStream = "jetstream"
    case requiresTLS = "tls_required"
    case offersTLS = "tls_available"
    case requiresAuthentication = "auth_required"
    case nonce
    case connectURLs = "connect_urls"
    case cluster
    case isLameDuck = "ldm"
    case clientID = "client_id"
  }

  public init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    serverID = try fields.decodeIfPresent(String.self, forKey: .serverID) ?? ""
    serverName = try fields.decodeIfPresent(String.self, forKey: .serverName) ?? serverID
    version = try fields.decodeIfPresent(String.self, forKey: .version) ?? ""
    maximumPayload = try fields.decodeIfPresent(Int.self, forKey: .maximumPayload) ?? 1 << 20
    hasHeaders = try fields.decodeIfPresent(Bool.self, forKey: .hasHeaders) ?? false
    hasJetStream = try fields.decodeIfPresent(Bool.self, forKey: .hasJetStream) ?? false
    requiresTLS = try fields.decodeIfPresent(Bool.self, forKey: .requiresTLS) ?? false
    offersTLS = try fields.decodeIfPresent(Bool.self, forKey: .offersTLS) ?? false
    requiresAuthentication = try fields.decodeIfPresent(Bool.self, forKey: .requiresAuthentication) ?? false
    nonce = try fields.decodeIfPresent(String.self, forKey: .nonce) ?? ""
    connectURLs = try fields.decodeIfPresent([String].self, forKey: .connectURLs) ?? []
    cluster = try fields.decodeIfPresent(String.self, forKey: .cluster) ?? ""
    isLameDuck = try fields.decodeIfPresent(Bool.self, forKey: .isLameDuck) ?? false
    clientID = try fields.decodeIfPresent(UInt64.self, forKey: .clientID) ?? 0
  }

  /// - Throws: ``NATSError/Code-swift.struct/protocolViolation``.
  init(json: NATSBytes) throws(NATSError) {
    do {
      self = try JSONDecoder().decode(Self.self, from: Data(json.array))
    } catch {
      throw .violation("INFO isn't the JSON that it should be")
    }
    guard (1...64 << 20).contains(maximumPayload) else {
      throw .violation("INFO has a max_payload of \(maximumPayload)")
    }
  }
}

/// The client's description of itself in CONNECT.
struct NATSConnectOptions: Encodable {
  var verbose = false
  var pedantic = false
  var tls_required: Bool
  var lang = "swift"
  var version = "1"
  var name: String
  var `protocol` = 1
  var echo = true
  var headers = true
  var no_responders = true
  var user: String?
  var pass: String?
  var auth_token: String?
  var nkey: String?
  var jwt: String?
  var sig: String?

  /// - Throws: ``NATSError/Code-swift.struct/invalidCredentials`` when the nonce can't be signed.
  init(name: String, isSecure: Bool, credentials: NATSCredentials, nonce: String) throws(NATSError) {
    self.name = name
    tls_required = isSecure
    switch credentials {
    case .none: break
    case .password(let user, let password):
      self.user = user
      pass = password
    case .token(let token): auth_token = token
    case .nkey(let key):
      nkey = key.publicText
      sig = try Self.signature(of: nonce, by: key)
    case .signedToken(let jwt, let key):
      self.jwt = jwt
      sig = try Self.signature(of: nonce, by: key)
    }
  }

  private static func signature(of nonce: String, by key: NKey) throws(NATSError) -> String? {
    guard !nonce.isEmpty else { return nil }
    let text = Data(try key.sign(Array(nonce.utf8))).base64EncodedString()
    // Base64 for URLs, without padding.
    return String(text.compactMap { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 == "=" ? nil : $0 })
  }

  var json: [UInt8] {
    // Encoding strings and flags can't fail.
    (try? JSONEncoder().encode(self)).map { [UInt8]($0) } ?? []
  }
}
