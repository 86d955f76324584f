import SluiceIO
import SluiceLog
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// Knows what was sent, and judges what is received.
///
/// It follows the protocol's promises, not the broker's code; where a promise depends on what the broker had in memory, such as
/// whether records that were skipped really were gone, it looks there.
final class Oracle {
  let chronicle: Chronicle
  let wallClock: () -> Int64
  private(set) var broker: Broker

  private(set) var failures: [String] = []
  /// Every epoch of every topic that any peer was told of, in that order.
  private(set) var lives: [TopicEpoch] = []
  private(set) var publications: [PublicationLedger] = []
  var subscriptions: [SubscriptionLedger] = []

  /// From here on the broker may refuse new streams, and closes connections.
  var brokerIsStopping = false
  /// It was stopped at once, or closed connections because the time for an orderly stop was up.
  var brokerRanOutOfTime = false
  /// Topics that a peer asked to delete.
  var deletedTopics: Set<String> = []
  /// Topics that were trimmed, or whose limits have changed: what they keep isn't told by their settings alone.
  var changedTopics: Set<String> = []
  /// Topics that may be compact before their settings are stated. Such a topic is replaced while no client is attached.
  var replaceableTopics: Set<String> = []
  /// A loop stood still for so long that healthy peers may look dead.
  var excusesTimeouts = false

  private(set) var hasRestarted = false
  /// Whether a peer's connection may be lost without its knowledge, by the peer's number.
  var isDisturbed: (Int) -> Bool = { _ in true }
  /// Epochs of topics that have been seen connected, and stay so.
  private var staying: Set<UInt64> = []
  /// Endings that producers asked for.
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

  /// Another broker has taken the place of one that crashed, and knows nothing of it.
  func restarted(_ broker: Broker) {
    self.broker = broker
    hasRestarted = true
    for life in lives { life.topic = nil }
  }

  // MARK: Topics

  /// The topic of that name as it is in the broker now.
  func present(_ name: String) -> Topic? { broker.core.registry.find(name) }

  func head(of topic: String) -> UInt64? { present(topic)?.log.head }

  /// Whether the topic, as it is in the broker now, goes on.
  func isOpen(_ topic: String) -> Bool { present(topic).map { $0.condition == .open } ?? false }

  /// Whether the first subscriber gets what producers published while there was none.
  func mayHaveBuffered(_ topic: String) -> Bool {
    guard let settings = present(topic)?.settings else { return true }
    return settings.flow != .free && settings.withoutSubscribers == .buffer
  }

  /// Whether producers may have to wait although nothing is under way: for subscribers, or for those that are there to ask for more.
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

  /// Whether a client that states these settings may be refused: the topic has others, or had when it answered.
  func mayRefuse(_ statement: TopicSettings, of topic: String) -> Bool {
    guard statement != TopicSettings() else { return false }
    guard let present = present(topic), !mayHaveRestarted(topic) else { return true }
    return !Self.holds(statement, in: present.settings)
  }

  /// Whether each setting that a statement names has that value.
  static func holds(_ statement: TopicSettings, in settings: TopicSettings) -> Bool {
    statement.numbered.allSatisfy { named in settings.numbered.contains { $0 == named } }
  }

  /// A client is told that the topic has lost its producers.
  func lostProducers(of topic: String, client: Int) {
    // Only peers that are told its epoch know which one it was.
    if mayHaveRestarted(topic) { return }
    presentLife(of: topic)?.lostProducers(client: client)
  }

  /// Topics that stay connected once they are: checked between turns.
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

  /// The epoch of this number, which a peer was told now.
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

  /// The epoch of a topic as it is in the broker now.
  func presentLife(of topic: String) -> TopicEpoch? {
    present(topic).map { life(of: topic, epoch: $0.epochNumber, client: 0) }
  }

  /// The epoch of a topic that is in its first epoch for certain.
  func onlyEpoch(of topic: String) -> UInt64? {
    mayHaveRestarted(topic) ? nil : present(topic)?.epochNumber
  }

  /// Whether there may have been more than one epoch of a topic of that name.
  func mayHaveRestarted(_ topic: String) -> Bool {
    deletedTopics.contains(topic) || replaceableTopics.contains(topic) || hasRestarted
  }

  func asked(toEnd topic: String, _ ending: Complete.Ending) {
    askedEndings.append((topic, ending))
  }

  /// Whether a producer asked for this end.
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
