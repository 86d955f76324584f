import SluiceIO
import SluiceTLS

/// The options of a ``Client``.
///
/// ```swift
/// var options = ClientOptions()
/// options.name = "billing"
/// options.connectTimeout = .seconds(2)
/// let client = try await Client.connect(to: "127.0.0.1:7420", options: options)
/// ```
public struct ClientOptions: Hashable, Sendable {
  /// The client's name as the broker's operator sees it. Cut at 255 bytes. Default: the program's name.
  public var name: String

  /// The silence after which either side closes the connection; the broker may shorten it. A subscriber should keep the loop busy for at most
  /// half of it. 0 leaves it to the broker; otherwise at least 100 ms. Default: 15 s.
  public var keepalive = Duration.seconds(15)

  /// The longest time for connecting, including the handshake. Default: 10 s.
  public var connectTimeout = Duration.seconds(10)

  /// The longest frame that the client accepts, in bytes; a longer record can't be received. From 64 KiB up. Default: 16 MiB.
  ///
  /// The client allocates memory for the frames that arrive, not for this limit.
  public var maximumFrame = 16 << 20

  /// The client's credentials, for brokers with access control. Default: none.
  public var credentials = ClientCredentials.none

  /// Whether passwords and tokens are sent unencrypted: over TCP without TLS, to another machine. If false, connecting there with
  /// credentials fails with ``ClientError/Code/insecureConnection``. Default: false.
  public var allowsPlaintextCredentials = false

  /// The authorities that the client trusts at `tls://` addresses, and its certificate. Default: the system's authorities, no certificate.
  public var tls = TLS()

  /// See ``tls``. The name of `TLSClientOptions` of `SluiceTLS` here.
  public typealias TLS = TLSClientOptions

  /// How the client reconnects after a lost connection; nil: everything on the connection ends. Default: without a limit of time.
  ///
  /// It also limits how long a stream is retried whose topic moves to another node of a cluster: see ``ReconnectPolicy``.
  public var reconnect: ReconnectPolicy? = ReconnectPolicy()

  /// How the client reaches topics that another node of a cluster serves. Default: directly, if the client can reach that node.
  public var routing = ClientRouting.direct

  /// The longest time for a request, such as for a topic's description, including the time without a connection. A request that takes longer
  /// fails with ``ClientError/Code/requestTimeout``. Default: 30 s.
  public var requestTimeout = Duration.seconds(30)

  /// The seed of the client's random numbers: the delays before reconnecting, the ids of producers. For simulations; nil for a random
  /// seed. Default: nil.
  public var seed: UInt64?

  public init() {
    let path = CommandLine.arguments.first ?? ""
    name = String(path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...])
  }

  /// The keepalive time in HELLO.
  var keepaliveMilliseconds: UInt32 {
    keepalive > .zero ? UInt32(clamping: max(keepalive.clampedNanoseconds / 1_000_000, 100)) : 0
  }
}
