import SluiceIO
import SluiceTopics
import SluiceWire

/// The connections of this node to another one for one identity and one length of frames: usually one, and more when its stream numbers are used up.
///
/// While streams wait for a node that can't be reached, connecting is repeated with growing delays. Belongs to its loop.
final class NodeLinks {
  struct Key: Hashable {
    var node: RemoteNode
    var identity: String
    /// The permissions that the identity carries, as text.
    var carried: String
    /// The longest frame that the clients accept, in bytes.
    var maximumFrame: Int
  }

  /// How long a connection without streams is kept.
  static let idleTime = Duration.seconds(30)
  private static let firstDelay = Duration.milliseconds(50)
  private static let longestDelay = Duration.seconds(2)

  let key: Key
  private unowned let relay: NodeRelay
  private var links: [NodeLink] = []
  /// The connection being opened.
  private var opening: NodeLink?
  private var failures = 0
  private var retry: TimerToken?
  /// The reason why the node can't be reached; nil if the last attempt was successful.
  private(set) var problem: String?

  init(_ key: Key, for relay: NodeRelay) {
    self.key = key
    self.relay = relay
  }

  /// Returns a connection on which a stream can be opened. If there is none, it opens a connection, and ``NodeRelay/linksChanged()`` is called once that is
  /// open.
  func link() -> NodeLink? {
    if let link = links.first(where: \.hasRoom) { return link }
    if opening == nil, retry == nil { connect() }
    return nil
  }

  /// Whether there is no connection and no timer.
  var isIdle: Bool { links.isEmpty && opening == nil && retry == nil }

  var readBuffer: UnsafeMutableRawBufferPointer { unsafe relay.readBuffer }

  private func connect() {
    let link = NodeLink(
      to: key.node, id: relay.nextLink(), hello: relay.hello(key), meter: relay.meter(of: key.node),
      for: self, on: relay.loop)
    opening = link
    do {
      link.connect(to: try relay.address(of: key.node), over: relay.network, within: relay.linkTimeout)
    } catch {
      link.close(because: error.description)
    }
  }

  // MARK: Events of links

  func opened(_ link: NodeLink) {
    opening = nil
    failures = 0
    problem = nil
    links.append(link)
    relay.linksChanged()
  }

  /// Called when the node is about to stop. Waiting streams are for its successor.
  func leaves(_ link: NodeLink) { problem = "it is stopping" }

  /// - Parameter isWanted: whether this isn't a failure.
  func closed(_ link: NodeLink, because reason: String, isWanted: Bool) {
    relay.remove(link)
    links.removeAll { $0 === link }
    if !isWanted {
      problem = reason
      relay.linkFailed(to: key.node)
    }
    if opening === link {
      opening = nil
      failures += 1
    }
    guard !relay.isStopped, retry == nil else { return }
    let delay = min(Self.firstDelay * (1 << min(failures, 10)), Self.longestDelay)
    retry = relay.loop.schedule(after: delay) { [unowned self] in
      retry = nil
      relay.linksChanged()
    }
  }

  func makeReady(_ link: NodeLink) { relay.makeReady(link) }

  func buffered(_ change: Int) { relay.buffered(change) }

  // MARK: Calls of the relay

  /// The open connections and the one being opened.
  var connections: [NodeLink] { links + (opening.map { [$0] } ?? []) }

  /// Ends streams whose topics another node serves.
  func end(where isGone: (String) -> Bool) {
    for link in links { link.end(where: isGone) }
  }

  func closeIdle(at now: MonotonicTime) {
    for link in links where !link.isUsed && now - link.lastUse >= Self.idleTime {
      link.close(because: "it isn't used", isWanted: true)
    }
  }

  func stop() {
    relay.loop.cancel(&retry)
    for link in connections { link.close(because: "this node is stopping", isWanted: true) }
  }
}
