/// The identity that a client claims, and its proof.
///
/// ```
/// u8 method · string user · string secret
/// ```
///
/// Secrets are never part of a description.
public struct Credentials: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  public enum Method: UInt8, Sendable {
    /// No credentials. The connection itself may still prove something: a client's certificate does.
    case none
    /// A user's name and password.
    case password
    /// A signed token, which names the identity. The user's name is empty.
    case token
    /// Another node of the broker's cluster, on behalf of the identity whose name is the user's. The secret has the permissions that the
    /// identity carries, if any. The node proves itself by its certificate.
    case node
  }

  public var method: Method
  public var user: String
  /// The password or the token.
  public var secret: String

  private init(_ method: Method, user: String, secret: String) {
    self.method = method
    self.user = user
    self.secret = secret
  }

  public static let none = Credentials(.none, user: "", secret: "")

  public static func password(_ password: String, user: String) -> Credentials {
    Credentials(.password, user: user, secret: password)
  }

  public static func token(_ token: String) -> Credentials {
    Credentials(.token, user: "", secret: token)
  }

  /// Those of a node, on behalf of a client that is connected to it.
  ///
  /// - Parameters:
  ///   - identity: the identity's name; empty where clients don't authenticate.
  ///   - permissions: those that the identity carries, as text; empty for none.
  public static func node(onBehalfOf identity: String, carrying permissions: String = "") -> Credentials {
    Credentials(.node, user: identity, secret: permissions)
  }

  static let layout = FrameLayout(
    Self.init,
    Field.choice("credentials' method", \Self.method, else: .none) {
      "credentials are of method \($0); 0 to 3 are defined"
    }, Field.string("credentials' user", \Self.user), Field.string("credentials' secret", \Self.secret))

  public var description: String {
    switch method {
    case .none: "no credentials"
    case .password: "a password for \(user)"
    case .token: "a token"
    case .node: "a node on behalf of \(user)"
    }
  }

  public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
