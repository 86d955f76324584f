import SluiceAccess
import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

/// Publishes the will of a client whose connection the broker has closed, on a connection in memory of its own, by the client's identity: what that may
/// not publish, its will isn't either. Permissions that came with a token are gone with the connection.
///
/// Belongs to its loop. Lives until the will is in the log, is refused, or the broker stops.
final class MQTTWillSender: DoorLinkClient {
  private let key: MQTTHub.Key
  private let will: MQTTConnect.Will
  /// At a node of a cluster: the number that the will is published once by, and what is told whether it is over; otherwise nil.
  private let producer: UInt64?
  private var completion: ((Bool) -> Void)?
  private var link: DoorLink?
  private var native = ClientSession()
  private var publications: [UInt32: MQTTPublication] = [:]

  private init(
    _ will: MQTTConnect.Will, of key: MQTTHub.Key, producer: UInt64?, _ completion: ((Bool) -> Void)?
  ) {
    self.will = will
    self.key = key
    self.producer = producer
    self.completion = completion
  }

  /// - Parameters:
  ///   - accept: has the broker serve a connection on `loop`, which keeps the sender.
  ///   - producer: at a node of a cluster: the will is in its topic once, however often it is published with that number.
  ///   - completion: called on `loop` once the will is in the log or was refused, with true; with false where it has to be published again.
  static func publish(
    _ will: MQTTConnect.Will, of key: MQTTHub.Key, on loop: any EventLoop, producer: UInt64? = nil,
    accept: (any ByteStream) -> Void, _ completion: ((Bool) -> Void)? = nil
  ) {
    let sender = MQTTWillSender(will, of: key, producer: producer, completion)
    let link = DoorLink(
      sender, isInternal: true, peer: .door(.mqtt, "127.0.0.1", port: 0, isSecure: false), on: loop)
    sender.link = link
    accept(link)
  }

  func linkStarted() {
    link?.send(
      Hello(
        maximumFrame: DoorLink.maximumFrame, keepalive: 0, name: "will of MQTT",
        credentials: .node(
          onBehalfOf: key.identity, carrying: CarriedPermissions.encoded(client: key.clientID))), stream: 0)
    link?.wake()
  }

  func linkReceived(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) -> Bool {
    guard let action = try? unsafe native.receive(header, body, at: 0) else {
      end()
      return true
    }
    switch action {
    case .opened: open()
    case .publicationOpened(let stream, let frame):
      _ = publications[stream]?.opened(next: frame.nextSequence)
    case .acknowledged(let stream, let ack): _ = publications[stream]?.acknowledged(through: ack.through)
    case .refused(let stream, let fault):
      if fault.code.holdsPublications { tell(false) }
      publications[stream] = nil
    case .ended(let stream, _): publications[stream] = nil
    case .goAway, .failed:
      tell(false)
      publications = [:]
    default: break
    }
    return true
  }

  private func open() {
    guard let topic = try? MQTTTopicName.brokerName(will.topic) else { return }
    will.withMessage { message in
      if will.isRetained {
        open(MQTTPublication(.retained, topic: MQTTConnection.retainedTopic), message, topic)
      }
      open(MQTTPublication(.will, topic: topic), message, nil)
    }
  }

  private func open(_ publication: MQTTPublication, _ message: MQTTPublish, _ key: String?) {
    let isOnce = key == nil && producer != nil
    guard let stream = native.openPublication(),
      publication.append(message, key: key, MQTTToken(sentAt: isOnce ? 0 : nil))
    else { return }
    publication.stream = stream
    publications[stream] = publication
    let settings =
      key == nil ? TopicSettings() : producer == nil ? MQTTConnection.retainedSettings : MQTTLog.settings
    link?.send(
      PublishOpen(
        topic: publication.topic, acknowledgement: .received, producer: isOnce ? producer ?? 0 : 0,
        settings: settings), stream: stream)
  }

  private func tell(_ isOver: Bool) { completion.take()?(isOver) }

  func linkWritten() {
    guard let link, native.phase != .handshake else { return }
    for publication in publications.values { _ = publication.send(by: &native, to: link, longest: 1 << 20) }
    if publications.values.allSatisfy(\.isInLog) {
      tell(true)
      return end()
    }
    link.wake()
  }

  private func end() {
    tell(false)
    link?.end()
    link = nil
  }

  func linkDrained() {}

  func linkClosed() {
    link = nil
    tell(false)
  }
}
