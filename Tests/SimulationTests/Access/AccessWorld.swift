import SluiceAccess
import SluiceIO
import SluiceSimulation
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// Identities without cryptography: each listed one has the password `right`, and tokens contain their name and expiry.
enum PlainAccess {
  /// Parses permissions, as in `["ada": "publish a.> subscribe >"]`.
  static func policy(_ rules: [String: String]) throws -> AccessPolicy {
    var policy = AccessPolicy()
    // Identities that were removed from the list must not stay connected.
    policy.certificatesMustBeListed = true
    for (name, text) in rules { policy.permissions[name] = try permissions(text) }
    return policy
  }

  static func permissions(_ text: String) throws -> Permissions {
    let words = text.split(separator: " ").map(String.init)
    let names: [String: Rights] = [
      "publish": .publish, "subscribe": .subscribe, "create": .create, "admin": .admin, "all": .all,
    ]
    return Permissions(
      try stride(from: 0, to: words.count, by: 2).map {
        .init(names[words[$0]] ?? [], on: try TopicPattern(words[$0 + 1]))
      })
  }

  static func password(of name: String) -> Credentials { .password("right", user: name) }

  static func token(of name: String, until expires: Int64) -> Credentials { .token("\(name) \(expires)") }

  static let verify: Authenticator.Verification = { policy, credentials, clientID, _, now in
    let failed = Result<Identity, WireError>.failure(WireError(.authenticationFailed, "wrong credentials"))
    var name = credentials.user
    var expires: Int64?
    switch credentials.method {
    case .none: return .failure(WireError(.authenticationRequired, "credentials are required"))
    case .node: return failed
    case .password: if credentials.secret != "right" { return failed }
    case .token:
      let words = credentials.secret.split(separator: " ")
      guard words.count == 2, let end = Int64(words[1]) else { return failed }
      name = String(words[0])
      expires = end
      guard end > now else { return .failure(WireError(.credentialsExpired, "too late")) }
    }
    guard
      let permissions = policy.permissions[name]?.bound(to: PermissionSubject(user: name, clientID: clientID))
    else { return failed }
    return .success(
      Identity(name: name, proof: .certificate, permissions: permissions, expires: expires))
  }
}

extension SmallWorld {
  /// A broker that requires authentication, with the identities of ``PlainAccess``.
  convenience init(
    seed: UInt64 = 1, brokerLoops: Int = 1, conditions: SimulatedConditions = .calm, rules: [String: String],
    storage: StoreConfiguration? = nil, _ configure: (inout BrokerConfiguration) -> Void = { _ in }
  ) throws {
    try self.init(
      seed: seed, brokerLoops: brokerLoops, conditions: conditions,
      access: (PlainAccess.policy(rules), PlainAccess.verify), storage: storage, configure)
  }

  /// Connects a client with valid credentials.
  func connect(as name: String) -> ScriptedClient {
    connect(credentials: PlainAccess.password(of: name))
  }

  func change(_ rules: [String: String]) throws {
    broker.updateAccess(try PlainAccess.policy(rules))
    settle()
  }
}

extension ScriptedClient {
  /// Sends a frame, and runs the world until its effects have happened.
  ///
  /// - Returns: the frames received on its stream.
  func ask(_ frame: some Frame, stream: UInt32, in small: SmallWorld) -> [Received] {
    let before = frames(on: stream).count
    send(frame, stream: stream)
    small.settle()
    return Array(frames(on: stream).dropFirst(before))
  }

  /// The last error on a stream.
  func fault(on stream: UInt32) throws -> Fault? {
    try frames(on: stream).last { $0.header.type == .error }?.decoded(Fault.self)
  }
}
