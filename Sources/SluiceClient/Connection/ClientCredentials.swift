import SluiceWire

/// What a ``Client`` proves with who it is, to a broker that asks.
///
/// ```swift
/// var options = ClientOptions()
/// options.credentials = .password("correct horse", user: "billing")
/// options.credentials = .token(token)
/// options.credentials = .provider { .token(try await fetchToken()) }
/// ```
///
/// A certificate of TLS proves it as well, and needs none of this. Secrets are never part of a description.
public struct ClientCredentials: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  public typealias Provide = @Sendable () async throws -> ClientCredentials

  enum Kind: Hashable, Sendable {
    case fixed(Credentials)
    case provided(Provider<Provide>)
    /// Asked on the loop: for simulations, which have no tasks.
    case computed(Provider<Compute>)

    /// Whether they may be others the next time.
    var isRenewable: Bool { if case .fixed = self { false } else { true } }
  }

  typealias Compute = @Sendable () -> Result<Credentials, ClientError>

  /// The same as itself alone.
  final class Provider<Ask: Sendable>: Hashable, Sendable {
    let ask: Ask

    init(_ ask: Ask) {
      self.ask = ask
    }

    static func == (left: Provider, right: Provider) -> Bool { left === right }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
  }

  let kind: Kind

  private init(_ kind: Kind) {
    self.kind = kind
  }

  /// Nothing is said.
  public static let none = ClientCredentials(.fixed(.none))

  /// A user's name and password.
  public static func password(_ password: String, user: String) -> ClientCredentials {
    ClientCredentials(.fixed(.password(password, user: user)))
  }

  /// A signed token. When it expires, the broker ends the connection: tokens that do are better ``provider(_:)``'s.
  public static func token(_ token: String) -> ClientCredentials {
    ClientCredentials(.fixed(.token(token)))
  }

  /// Asked before each connection is made, and again when four fifths of the time are over for which its answer holds: then the connection goes on
  /// with the new ones. Called in a task of its own; what it throws is why there is no connection, for this time. It has as long as
  /// ``ClientOptions/connectTimeout``.
  public static func provider(_ provide: @escaping Provide) -> ClientCredentials {
    ClientCredentials(.provided(Provider(provide)))
  }

  /// Made on the client's loop each time.
  static func computed(_ compute: @escaping Compute) -> ClientCredentials {
    ClientCredentials(.computed(Provider(compute)))
  }

  public var description: String {
    switch kind {
    case .fixed(let credentials): credentials.description
    case .provided, .computed: "provided credentials"
    }
  }

  public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// Who a broker takes a client for.
public struct ClientIdentity: Hashable, Sendable {
  public let name: String
  /// When that ends unless it is renewed, in milliseconds since 1970; nil for never.
  public let expires: Int64?

  /// Nil where the broker doesn't ask.
  init?(name: String, expires: UInt64) {
    if name.isEmpty { return nil }
    self.name = name
    self.expires = expires == Authenticated.never ? nil : Int64(clamping: expires)
  }
}
