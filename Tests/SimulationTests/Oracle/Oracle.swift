import SluiceIO
import SluiceLog
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// Records what was sent, and checks what is received.
///
/// It follows the protocol's guarantees, not the broker's code. If a guarantee depends on the broker's memory, for example whether skipped records
/// were really dropped, it looks there.
final class Oracle {
  let chronicle: Chronicle
  let wallClock: () -> Int64
  private(set) var broker: Broker

  private(set) var failures: [String] = []
  /// Every topic epoch reported to any peer, in the order of the reports.
  private(set) var lives: [TopicEpoch] = []
  private(set) var publications: [PublicationLedger] = []
  var subscriptions: [SubscriptionLedger] = []

  /// Whether the broker may deny new streams and close connections.
  var brokerIsStopping = false
  /// Whether it was stopped immediately, or closed connections because an orderly shutdown timed out.
  var brokerRanOutOfTime = false
  /// Topics that a peer has requested to delete.
  var deletedTopics: Set<String> = []
  /// Topics that were trimmed, or whose limits have changed: their settings alone don't determine which records they keep.
  var changedTopics: Set<String> = []
  /// Topics that may be compacted before their settings are stated. Such a topic is replaced while no client is attached.
  var replaceableTopics: Set<String> = []
  /// Whether a loop stood still for so long that healthy peers may time out.
  var excusesTimeouts = false

  private(set) var hasRestarted = false
  /// Whether the connection of the peer with that number may be lost without its knowledge.
  var isDisturbed: (Int) -> Bool = { _ in true }
  /// Epochs of topics that were connected, and must stay so.
  private var staying: Set<UInt64> = []
  /// Terminal events that producers requested.
  private var askedEndings: [(topic: String, ending: Complete.Ending)] = []

  private static let mostFailures = 20

  init(broker: Broker, chronicle: Chronicle, wallClock: @escaping () -> Int64) {
    self.broker = broker
    self.chronicle = chronicle
    self.wallClock = wallClock
  }

  func fail(_ client: Int, _ what: String) {
    chronicle.note(client, "WRONG: \(what)")
    guard failures.count < Self.mostFailures else { return }
    failures.append(client == 0 ? what : "peer \(client): \(what)")
  }

  func check(_ holds: Bool, _ client: Int, _ what: @autoclosure () -> String) {
    if !holds { fail(client, what()) }
  }

  /// Another broker replaces one that crashed, without its state.
  func restarted(_ broker: Broker) {
    self.broker = broker
    hasRestarted = true
    for life in lives { life.topic = nil }
  }

  // MARK: Topics

  /// The topic of that name in the present broker.
  func present(_ name: String) -> Topic? { broker.core.registry.find(name) }

  func head(of topic: String) -> UInt64? { present(topic)?.log.head }

  /// Whether the topic exists in the present broker and is open.
  func isOpen(_ topic: String) -> Bool { present(topic).map { $0.condition == .open } ?? false }

  /// Whether the first subscriber gets records published while there was none.
  func mayHaveBuffered(_ topic: String) -> Bool {
    guard let settings = present(topic)?.settings else { return true }
    return settings.flow != .free && settings.withoutSubscribers == .buffer
  }

  /// Whether producers may be blocked although nothing is pending: no subscriber is attached, or the attached ones lack demand.
  func mayHoldUp(_ topic: String) -> Bool {
    guard let topic = present(topic) else { return false }
    let subscriptions = topic.loopStates.flatMap(\.subscriptions)
    switch topic.settings.connect {
    case .auto, .autoStay: if !topic.isConnected { return true }
    case .immediate, .manual, nil: break
    }
    let sated = subscriptions.filter { $0.credit.available == 0 }
    switch topic.settings.flow {
    case .lossless: return subscriptions.isEmpty ? topic.settings.withoutSubscribers != .drop : !sated.isEmpty
    case .fastest:
      return subscriptions.isEmpty
        ? topic.settings.withoutSubscribers != .drop : sated.count == subscriptions.count
    case .free, nil: return false
    }
  }

  /// Whether the broker may deny a client that states these settings: the topic has others, or had others at the time of the reply.
  func mayRefuse(_ statement: TopicSettings, of topic: String) -> Bool {
    guard statement != TopicSettings() else { return false }
    guard let present = present(topic), !mayHaveRestarted(topic) else { return true }
    return !Self.holds(statement, in: present.settings)
  }

  /// Whether every setting named in a statement has that value.
  static func holds(_ statement: TopicSettings, in settings: TopicSettings) -> Bool {
    statement.numbered.allSatisfy { named in settings.numbered.contains { $0 == named } }
  }

  /// A client received a notice that the topic lost its producers.
  func lostProducers(of topic: String, client: Int) {
    // The epoch is known only to peers that were sent its number.
    if mayHaveRestarted(topic) { return }
    presentLife(of: topic)?.lostProducers(client: client)
  }

  /// Checks, between turns, topics that stay connected once they are.
  func checkConnections(_ topics: [TopicPlan]) {
    for plan in topics {
      guard let topic = present(plan.name), case .autoStay = topic.settings.connect else { continue }
      if topic.isConnected {
        staying.insert(topic.epochNumber)
      } else {
        check(
          !staying.contains(topic.epochNumber), 0, "\(plan.name) was connected for good, and no longer is")
      }
    }
  }

  /// The epoch with this number, which a peer has just received.
  func life(of topic: String, epoch: UInt64, client: Int) -> TopicEpoch {
    if let life = lives.first(where: { $0.epoch == epoch }) {
      check(life.name == topic, client, "epoch \(epoch) is told of \(topic) and of \(life.name)")
      return life
    }
    check(epoch != 0, client, "\(topic) has epoch 0")
    let present = present(topic)
    let life = TopicEpoch(
      name: topic, epoch: epoch, topic: present?.epochNumber == epoch ? present : nil, oracle: self)
    lives.append(life)
    return life
  }

  /// The epoch of a topic in the present broker.
  func presentLife(of topic: String) -> TopicEpoch? {
    present(topic).map { life(of: topic, epoch: $0.epochNumber, client: 0) }
  }

  /// The epoch of a topic that has certainly had only one.
  func onlyEpoch(of topic: String) -> UInt64? {
    mayHaveRestarted(topic) ? nil : present(topic)?.epochNumber
  }

  /// Whether topics of that name may have had more than one epoch.
  func mayHaveRestarted(_ topic: String) -> Bool {
    deletedTopics.contains(topic) || replaceableTopics.contains(topic) || hasRestarted
  }

  func asked(toEnd topic: String, _ ending: Complete.Ending) {
    askedEndings.append((topic, ending))
  }

  /// Whether a producer requested this terminal event.
  func mayHaveEnded(_ topic: String, with ending: Complete.Ending) -> Bool {
    askedEndings.contains { $0.topic == topic && $0.ending == ending }
  }

  // MARK: Publications

  func makePublication(topic: String, acknowledges: Bool, client: Int) -> PublicationLedger {
    let publication = PublicationLedger(
      number: UInt32(publications.count + 1), topic: topic, acknowledges: acknowledges, peer: client,
      oracle: self)
    publications.append(publication)
    return publication
  }

  func publication(_ number: UInt32) -> PublicationLedger? {
    number >= 1 && number <= publications.count ? publications[Int(number) - 1] : nil
  }
}
