import SluiceTLS

/// How a ``Client`` connects and what it takes.
///
/// ```swift
/// var options = ClientOptions()
/// options.name = "billing"
/// options.connectTimeout = .seconds(2)
/// let client = try await Client.connect(to: "127.0.0.1:7420", options: options)
/// ```
public struct ClientOptions: Hashable, Sendable {
  /// What the client calls itself, for people who look at the broker. Cut at 255 bytes. Default: the program's name.
  public var name: String

  /// The silence after which the connection counts as dead, on both sides; the broker may ask for less. Half of it is the
  /// longest that a subscriber should keep the loop busy. 0 leaves it to the broker; else at least 100 ms. Default: 15 s.
  public var keepalive = Duration.seconds(15)

  /// How long connecting may take, the handshake included. Default: 10 s.
  public var connectTimeout = Duration.seconds(10)

  /// The longest frame that the client takes, in bytes; a longer record can't be received. From 64 KiB up. Default: 16 MiB.
  ///
  /// Memory is taken for what really arrives, not for this.
  public var maximumFrame = 16 << 20

  /// Who the client is, for brokers that ask. Default: nothing is said.
  public var credentials = ClientCredentials.none

  /// Whether passwords and tokens are sent where others may read them: over TCP without TLS, to a host that isn't this one. Otherwise connecting
  /// there with credentials fails with ``ClientError/Code/insecureConnection``. Default: false.
  public var allowsPlaintextCredentials = false

  /// Whom the client trusts at `tls://` addresses, and what it shows there. Default: the system's authorities, and nothing.
  public var tls = TLS()

  /// See ``tls``. `SluiceTLS` has it under the name of `TLSClientOptions`.
  public typealias TLS = TLSClientOptions

  /// What happens when the connection is lost; nil: everything on it ends. Default: the client makes another, for as long as it takes.
  public var reconnect: ReconnectPolicy? = ReconnectPolicy()

  /// How long a request (for a topic's description, say) may take; also while there is no connection, in which case it is made when
  /// there is one. Fails with ``ClientError/Code/requestTimeout``. Default: 30 s.
  public var requestTimeout = Duration.seconds(30)

  /// What the client's chance begins with: the waits before attempts to connect, the numbers of producers. For simulations; nil is
  /// another one each time. Default: nil.
  public var seed: UInt64?

  public init() {
    let path = CommandLine.arguments.first ?? ""
    name = String(path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...])
  }

  /// The name as HELLO says it.
  var cutName: String {
    var name = name
    while name.utf8.count > 255 { name.removeLast() }
    return name
  }

  /// The deadline as HELLO says it.
  var keepaliveMilliseconds: UInt32 {
    guard keepalive > .zero else { return 0 }
    let (seconds, attoseconds) = keepalive.components
    let milliseconds = Double(seconds) * 1_000 + Double(attoseconds) / 1e15
    return UInt32(min(max(milliseconds, 100), Double(UInt32.max)))
  }
}
