import SluiceTLS

/// The options of a client. All times are positive.
public struct NATSOptions: Sendable {
  /// The client's name in the server's lists of connections.
  public var name = "sluice"
  public var credentials = NATSCredentialsSource.fixed(.none)
  /// The authorities and the client's own certificate, for servers with TLS.
  public var tls = NATSOptions.defaultTLS
  /// Whether TLS begins before INFO, as with `handshake_first` at the server. For `tls://` addresses only.
  public var handshakeFirst = false
  /// Whether passwords and tokens are sent to other machines without TLS. Default: false.
  public var allowsPlaintextCredentials = false
  /// The time for connecting and the handshake. Default: 5 s.
  public var connectTimeout = Duration.seconds(5)
  /// The silence after which the client sends PING. Default: 5 s.
  public var pingInterval = Duration.seconds(5)
  /// The time for the answer to PING, after which the connection is lost. Default: 5 s.
  public var pingTimeout = Duration.seconds(5)
  /// How long the client waits for answers of a server that is about to stop, before it moves. Default: 2 s.
  public var lameDuckPatience = Duration.seconds(2)
  public var reconnect = NATSReconnectPolicy()
  /// Whether the client also uses servers that the first ones name. Default: true.
  public var usesDiscoveredServers = true
  /// The most bytes that wait to be sent; beyond it, messages and requests are rejected. Default: 64 MiB.
  public var maximumBacklog = 64 << 20
  /// The seed of random numbers: for the order of servers, jitter and names of inboxes. Nil for the system's generator. Names of inboxes from a known seed
  /// can be guessed.
  public var seed: UInt64?

  public init() {}

  /// TLS that offers no protocol in its handshake, as a NATS server expects.
  public static var defaultTLS: TLSClientOptions {
    var options = TLSClientOptions()
    options.applicationProtocol = nil
    return options
  }
}

/// How a client looks for a server, at the beginning and after a loss.
///
/// The client tries the servers one after another, in random order; after a loss, the lost one comes last. If none answers, it waits: ``initialDelay``,
/// twice that after the next round, up to ``maximumDelay``. Each wait is shortened by a random part.
public struct NATSReconnectPolicy: Hashable, Sendable {
  /// The first wait. Default: 50 ms.
  public var initialDelay = Duration.milliseconds(50)
  /// The longest wait. Default: 2 s.
  public var maximumDelay = Duration.seconds(2)
  /// The largest part by which a wait is shortened, from 0 to 1. Default: 0.5.
  public var jitter = 0.5
  /// The time after the loss, or after the beginning, at which the client gives up. Default: nil, never.
  public var giveUpAfter: Duration?
  /// The number of rounds in a row that may end with credentials rejected by each server that answered, before the client gives up. Nil for no limit, which
  /// suits servers whose settings are changed while clients run. Default: 3.
  public var refusals: Int? = 3

  public init() {}

  /// The wait after that many failed rounds, without jitter.
  func delay(round: Int) -> Duration {
    var delay = max(initialDelay, .milliseconds(1))
    for _ in 0..<round where delay < maximumDelay { delay *= 2 }
    return min(delay, maximumDelay)
  }
}
