import SluiceIO
import SluiceMQTT
import SluiceTLS
import SluiceWebSocket
import Synchronization

/// Adds gateways to another network. It listens at the gateways' addresses and converts each client's protocol to the native one, so that every stream
/// carries native bytes. All other addresses pass through unchanged, at no cost.
///
/// ```
///  client ─ TCP, TLS ─ DoorNetwork: handshake, messages ─ native bytes ─ the broker's Connection
/// ```
///
/// So a gateway's client meets the same limits, deadlines, identities and permissions as any other. Put this network above the TLS layer.
///
/// Usable from any thread if the network beneath is.
public final class DoorNetwork: Network {
  private let beneath: any Network
  private let webSockets: WebSocketDoor
  private let broker = DoorBroker()
  let sessions: MQTTHub
  private let members = HTTPGroupMembers()
  private let texts = LoopTable<HTTPTexts>()
  let refusals = HTTPRefusal.Waiting()
  private let loops = LoopTable<MQTTLoop>()
  private let rules: MQTTSessionRules.Shared
  private let options: DoorOptions
  /// The cluster that contains the broker; nil for a broker of one node.
  private let cluster: DoorCluster?
  /// Whether sessions are kept; the same flag for all listeners.
  private let keepsSessions = Once()

  /// - Parameters:
  ///   - network: the network beneath.
  ///   - options: apply to all gateways.
  ///   - cluster: the cluster that contains the broker, if any: all its nodes share MQTT sessions and retained messages.
  ///   - note: called with events for the operator, on any thread.
  public init(
    over network: any Network, _ options: DoorOptions = DoorOptions(), cluster: DoorCluster? = nil,
    note: @escaping @Sendable (DoorEvent) -> Void = { _ in }
  ) {
    beneath = network
    self.cluster = cluster
    self.options = options
    rules = MQTTSessionRules.Shared(options.mqtt.rules)
    sessions = MQTTHub(broker, options.mqtt, note: note)
    webSockets = WebSocketDoor(
      WebSocketUpgrade(
        WebSocketUpgrade.Rules(
          subprotocols: [WebSocketStream.nativeProtocol, WebSocketStream.mqttProtocol],
          origins: options.permittedOrigins, compression: options.compressesWebSockets),
        sha1: { sha1($0) }))
  }

  public func listen(
    at address: SocketAddress, group: LoopGroup,
    accepted: @escaping @Sendable (any ByteStream, any EventLoop) -> Void
  ) throws -> any Listener {
    guard case .door(let door, _, _, let isSecure) = address, let plain = address.plain else {
      return try beneath.listen(at: address, group: group, accepted: accepted)
    }
    broker.serve(accepted)
    if door != .http, let loop = group.loops.first { sessions.system.start(on: loop) }
    if door != .http, let loop = group.loops.first, !keepsSessions.exchange(true) {
      let isStored = cluster != nil || options.keepsSessions
      sessions.open(cluster, isStored: isStored, on: loop) { accepted($0, loop) }
    }
    do {
      // The TLS layer recognizes the gateway's addresses.
      let listener = try beneath.listen(at: isSecure ? address : plain, group: group) { [self] stream, loop in
        let peer = address.bound(to: stream.peer)
        switch door {
        case .webSocket:
          let socket = WebSocketStream(stream, peer: peer, webSockets, on: loop)
          accepted(WebSocketDoorStream(socket) { self.mqtt($0, peer, loop) }, loop)
        case .http: accepted(http(stream, peer, loop).link, loop)
        case .mqtt: accepted(mqtt(stream, peer, loop).link, loop)
        }
      }
      // The gateways lose access to the broker when its listeners close.
      return LayeredListener(address, listener) { [broker] in broker.serve(nil) }
    } catch let error as IOError {
      throw IOError(action: "listen at \(address)", code: error.code, reason: error.reason)
    }
  }

  private func http(_ stream: any ByteStream, _ peer: SocketAddress, _ loop: any EventLoop) -> HTTPConnection
  {
    HTTPConnection(
      stream, peer: peer, options, broker, members, texts.find(loop) { HTTPTexts() }, refusals, on: loop)
  }

  private func mqtt(_ stream: any ByteStream, _ peer: SocketAddress, _ loop: any EventLoop) -> MQTTHandle {
    MQTTHandle(stream, peer: peer, loops.find(loop) { MQTTLoop(sessions, rules, on: loop) })
  }

  /// A flag that is set once. Usable from any thread.
  private final class Once: Sendable {
    private let isSet = Atomic(false)

    /// Sets the flag, and returns what it was.
    func exchange(_ value: Bool) -> Bool { isSet.exchange(value, ordering: .relaxed) }
  }

  /// Gateways only accept connections; this connects through the network beneath.
  public func connect(
    to address: SocketAddress, on loop: any EventLoop,
    completion: @escaping (Result<any ByteStream, IOError>) -> Void
  ) -> any ConnectionAttempt {
    beneath.connect(to: address, on: loop, completion: completion)
  }
}
