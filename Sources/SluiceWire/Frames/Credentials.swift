/// The identity that a client claims, and its proof.
///
/// ```
/// u8 method · string user · string secret
/// ```
///
/// Secrets are never part of a description.
public struct Credentials: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  public enum Method: UInt8, Sendable {
    /// Nothing is said. The connection itself may still prove something: a client's certificate does.
    case none
    /// A user's name and password.
    case password
    /// A signed token, which names the identity. The user's name is empty.
    case token
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

  func encode(into writer: inout ByteWriter) {
    writer.integer(method.rawValue)
    writer.string(user)
    writer.string(secret)
  }

  init(_ reader: inout ByteReader) throws(WireError) {
    let number: UInt8 = try reader.integer("credentials' method")
    let user = try reader.string("credentials' user")
    let secret = try reader.string("credentials' secret")
    guard let method = Method(rawValue: number) else {
      throw WireError(.unsupported, "credentials are of method \(number); 0 to 2 are defined")
    }
    self.init(method, user: user, secret: secret)
  }

  public var description: String {
    switch method {
    case .none: "no credentials"
    case .password: "a password for \(user)"
    case .token: "a token"
    }
  }

  public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
