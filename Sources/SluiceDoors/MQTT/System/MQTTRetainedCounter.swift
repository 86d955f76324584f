import SluiceIO
import SluiceSession
import SluiceWire

/// Counts retained messages for a process without a copy of them. It requests a description of their topic from the broker, on a connection in memory with
/// permissions for that topic only.
// @unchecked: belongs to `loop`. Other threads use it only through jobs on that loop.
final class MQTTRetainedCounter: DoorLinkClient, @unchecked Sendable {
  private static let patience = Duration.seconds(1)

  private let broker: DoorBroker
  private let loop: any EventLoop
  private var link: DoorLink?
  private var native = ClientSession()
  private var completion: ((Int, Int) -> Void)?
  private var timer: TimerToken?
  private var last = (count: 0, bytes: 0)

  init(_ broker: DoorBroker, on loop: any EventLoop) {
    self.broker = broker
    self.loop = loop
  }

  /// Calls `completion` once with the messages and their bytes; with the last known ones if the broker doesn't answer in time.
  func count(_ completion: @escaping (_ count: Int, _ bytes: Int) -> Void) {
    self.completion = completion
    timer = loop.schedule(after: Self.patience) { [weak self] in
      self?.timer = nil
      self?.answer()
    }
    if link == nil { open() } else { ask() }
  }

  func end() {
    link.take()?.end()
    loop.cancel(&timer)
    completion = nil
  }

  private func open() {
    guard let accept = broker.accept else { return }
    native = ClientSession()
    let link = DoorLink(
      self, isInternal: true, peer: .door(.mqtt, "127.0.0.1", port: 0, isSecure: false), on: loop)
    self.link = link
    accept(link, loop)
  }

  private func ask() {
    guard let link, native.phase == .open, let stream = native.openRequest() else { return }
    link.send(TopicShow(topic: MQTTConnection.retainedTopic), stream: stream)
    link.wake()
  }

  private func answer() {
    loop.cancel(&timer)
    completion.take()?(last.count, last.bytes)
  }

  func linkStarted() {
    link?.send(
      TopicPort.Terms(topic: MQTTConnection.retainedTopic, identity: "mqtt-system", name: "figures of MQTT")
        .hello,
      stream: 0)
    link?.wake()
  }

  func linkReceived(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) -> Bool {
    guard link != nil else { return true }
    guard let action = try? unsafe native.receive(header, body, at: loop.now.nanoseconds) else {
      link.take()?.end()
      return true
    }
    switch action {
    case .opened: ask()
    case .topicInfo(_, let info):
      last = (Int(clamping: info.summary.records), Int(clamping: info.summary.bytes))
      answer()
    // The topic doesn't exist.
    case .refused:
      last = (0, 0)
      answer()
    case .answerPing(let token): link?.send(Pong(token: token), stream: 0)
    default: break
    }
    return true
  }

  func linkWritten() { link?.wake() }

  func linkDrained() {}

  func linkClosed() { link = nil }
}
