import SluiceTLS

/// How a client connects. All times are positive.
public struct NATSOptions: Sendable {
  /// The client's name in the server's lists of connections.
  public var name = "sluice"
  public var credentials = NATSCredentialsSource.fixed(.none)
  /// The authorities and the client's own certificate, for servers with TLS.
  public var tls = NATSOptions.defaultTLS
  /// Whether TLS comes before the server's first words, as with `handshake_first` at the server. For `tls://` addresses only.
  public var handshakeFirst = false
  /// Whether passwords and tokens are sent to other machines without TLS. Default: false.
  public var allowsPlaintextCredentials = false
  /// How long a connection and its handshake may take. Default: 5 s.
  public var connectTimeout = Duration.seconds(5)
  /// The silence after which the client sends PING. Default: 5 s.
  public var pingInterval = Duration.seconds(5)
  /// How long the server may take to give it; the connection is lost then. Default: 5 s.
  public var pingTimeout = Duration.seconds(5)
  /// How long requests may still be answered by a server that is about to stop, before the client moves. Default: 2 s.
  public var lameDuckPatience = Duration.seconds(2)
  public var reconnect = NATSReconnectPolicy()
  /// Whether servers that the first ones name are used too. Default: true.
  public var usesDiscoveredServers = true
  /// The most bytes that wait for the server; beyond it, messages and requests are refused. Default: 64 MiB.
  public var maximumBacklog = 64 << 20
  /// The source of random numbers: the order of servers, jitter, names of inboxes. Nil for the system's. Names of inboxes from a known seed can be
  /// guessed.
  public var seed: UInt64?

  public init() {}

  /// TLS that names no protocol in its handshake, as a NATS server expects.
  public static var defaultTLS: TLSClientOptions {
    var options = TLSClientOptions()
    options.applicationProtocol = nil
    return options
  }
}

/// How a client looks for a server, at the beginning and after a loss.
///
/// The client tries the servers one after the other, in random order, and after a loss the lost one last. If none answers, it waits:
/// ``initialDelay``, twice that after the next round, up to ``maximumDelay``. A random part of each wait is left out.
public struct NATSReconnectPolicy: Hashable, Sendable {
  /// The first wait. Default: 50 ms.
  public var initialDelay = Duration.milliseconds(50)
  /// The longest wait. Default: 2 s.
  public var maximumDelay = Duration.seconds(2)
  /// The part of a wait that may be left out: from 0 to 1. Default: 0.5.
  public var jitter = 0.5
  /// How long after the loss, or after the beginning, the client gives up. Default: nil, never.
  public var giveUpAfter: Duration?
  /// How many rounds in a row may end with credentials refused by each server that answered, before the client gives up. Nil for no limit, which
  /// suits servers whose settings are changed while clients run. Default: 3.
  public var refusals: Int? = 3

  public init() {}

  /// The wait after so many failed rounds, without jitter.
  func delay(round: Int) -> Duration {
    var delay = max(initialDelay, .milliseconds(1))
    for _ in 0..<round where delay < maximumDelay { delay *= 2 }
    return min(delay, maximumDelay)
  }
}
