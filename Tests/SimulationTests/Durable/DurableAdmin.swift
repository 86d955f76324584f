import SluiceIO
import SluiceStore
import SluiceWire

/// Creates the topics of a scenario. If the plan says so, it also changes, trims, deletes and recreates a scratch topic, and trims the other topics
/// or changes their limits.
final class DurableAdmin: DurableUser {
  private enum Question {
    case create(String)
    case delete
    /// Sets the scratch topic's age limit.
    case set(UInt64)
    case trim
    /// Drops the records before that offset from a topic of the scenario.
    case trimBefore(UInt64, String)
    /// Changes the limits of a topic of the scenario.
    case limit(String)
  }

  private let plan: DurablePlan
  private unowned let peer: DurablePeer
  private unowned let oracle: DurableOracle
  private var question: Question?
  private var created = 0
  private var isSettling = false
  private(set) var rounds = 0

  static let scratch = "scratch"
  private static let stream: UInt32 = 1

  init(_ plan: DurablePlan, peer: DurablePeer) {
    self.plan = plan
    self.peer = peer
    oracle = peer.oracle
  }

  /// Whether all topics are created.
  var isReady: Bool { created == plan.topics.count }

  func connected() { go() }

  private func go() {
    guard question == nil, peer.isOpen else { return }
    if created < plan.topics.count {
      let topic = plan.topics[created]
      ask(.create(topic.name), TopicCreate(topic: topic.name, settings: topic.settings))
    } else if plan.changes, !isSettling, !plan.deletes || peer.random.oneIn(3) {
      changeOne()
    } else if plan.deletes, !isSettling {
      // After a lost connection the topic's existence is uncertain.
      if oracle.truth(Self.scratch) == nil, peer.random.oneIn(2) {
        var settings = plan.topics[0].settings
        settings.storage = .durable
        ask(.create(Self.scratch), TopicCreate(topic: Self.scratch, settings: settings))
      } else {
        switch peer.random.next(in: 0...3) {
        case 0:
          let age = UInt64(peer.random.next(in: 1...1_000)) * 1_000_000
          ask(.set(age), TopicSet(topic: Self.scratch, settings: TopicSettings(replayAge: age)))
        case 1: ask(.trim, TopicTrim(topic: Self.scratch, .newest(0)))
        default: ask(.delete, TopicDelete(topic: Self.scratch))
        }
      }
    }
  }

  /// Trims a topic of the scenario, or changes its limits.
  private func changeOne() {
    let name = plan.topics[peer.random.next(in: 0...plan.topics.count - 1)].name
    guard let truth = oracle.truth(name) else { return }
    guard !peer.random.oneIn(3) else {
      let records = peer.random.oneIn(3) ? TopicSettings.unlimited : peer.random.next(below: 60)
      truth.limits(to: records)
      return ask(.limit(name), TopicSet(topic: name, settings: TopicSettings(replayRecords: records)))
    }
    // After a crash a topic may lose its last records and assign their offsets to others.
    let offset = peer.random.next(below: truth.head + 1)
    truth.trims(to: offset)
    ask(.trimBefore(offset, name), TopicTrim(topic: name, .from(offset)))
  }

  private func ask(_ question: Question, _ frame: some Frame) {
    self.question = question
    peer.note("asks to \(question)")
    peer.send(frame, stream: Self.stream)
  }

  func received(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws(WireError) -> Bool {
    guard let question else {
      oracle.fail("\(header.type) answers nothing that was asked")
      return true
    }
    self.question = nil
    switch (question, header.type) {
    case (.create(let topic), .topicInfo):
      oracle.check(oracle.truth(topic) != nil, "\(topic) is said to be made, and isn't on disk")
      if !isReady { created += 1 }
    case (.delete, .done):
      rounds += 1
      oracle.check(oracle.truth(Self.scratch) == nil, "a topic is said to be deleted, and is on disk")
    case (.set(let age), .topicInfo):
      let stored = oracle.truth(Self.scratch)?.row.settings.replayAge
      oracle.check(
        stored == age, "a setting is said to be changed to \(age), and \(stored as Any) is on disk")
      let told = try TopicInfo(body: body).settings.replayAge
      oracle.check(told == age, "a setting was changed to \(age), and \(told as Any) is told")
      rounds += 1
    case (.trim, .topicInfo):
      oracle.check(oracle.truth(Self.scratch) != nil, "a topic is said to be trimmed, and isn't on disk")
      rounds += 1
    case (.trimBefore(let offset, let name), .topicInfo):
      let first = try TopicInfo(body: body).summary.firstOffset
      oracle.check(first >= offset, "\(name) is said to be trimmed to \(offset), and begins at \(first)")
      oracle.truth(name)?.trimmed(to: offset)
      rounds += 1
    case (.limit, .topicInfo): rounds += 1
    case (_, .error): try refused(Fault(body: body), question)
    default: oracle.fail("\(header.type) answers \(question)")
    }
    if isReady { peer.later(within: .milliseconds(100)) { [weak self] in self?.go() } } else { go() }
    return true
  }

  private func refused(_ fault: Fault, _ question: Question) {
    switch (question, fault.code) {
    case (.trimBefore, .invalidSetting): break
    case (.create, .topicExists), (.delete, .unknownTopic), (.set, .unknownTopic), (.trim, .unknownTopic),
      (_, .shuttingDown):
      break
    case (_, .storageFull), (_, .storageFailed): break
    default: oracle.fail("\(question) is answered with \(fault.code): \(fault.message)")
    }
  }

  func disconnected() { question = nil }

  func settle() { isSettling = true }

  var unsettled: String? { question.map { "no answer to \($0)" } }
}
