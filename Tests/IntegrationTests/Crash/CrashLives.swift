import SluiceWire
import TestSupport

/// Topics that are created, completed and deleted between crashes. Every confirmed change must persist.
struct CrashLives {
  private var count = 0
  /// The existing topics, and their terminal events.
  private var lives: [String: Complete.Ending?] = [:]

  /// Creates a topic, and changes another.
  mutating func change(_ broker: BrokerProcess, _ random: inout SeededRandom) throws {
    let client = try broker.client("changer")
    count += 1
    let name = "life.\(count)"
    var settings = TopicSettings(replayRecords: UInt64(count))
    settings.storage = .durable
    settings.sync = [.always, .interval(20), .os].randomElement(using: &random)
    try client.create(name, settings)
    lives[name] = .some(nil)
    guard let other = lives.keys.sorted().randomElement(using: &random) else { return }
    switch random.next() % 3 {
    case 0:
      try client.delete(other)
      lives[other] = nil
    case 1 where lives[other] == .some(nil):
      let ending =
        random.next() % 2 == 0
        ? Complete.Ending.finished : .failure(code: .producerFailure, message: "failure of \(other)")
      try client.end(other, ending)
      lives[other] = .some(ending)
    default: break
    }
  }

  func check(_ broker: BrokerProcess) throws {
    let client = try broker.client("checker")
    var topics: [TopicSummary] = []
    while true {
      let page = try client.list(after: topics.last?.topic ?? "life.", limit: 1_000)
      topics += page.topics.filter { $0.topic.hasPrefix("life.") }
      guard page.more, page.topics.last?.topic.hasPrefix("life.") == true else { break }
    }
    for topic in topics {
      guard let ending = lives[topic.topic] else { throw TestFailure("\(topic.topic) is there again") }
      try require(topic.ending == ending, "\(topic.topic) has the end \(String(describing: topic.ending))")
      try require(topic.storage == .durable, "\(topic.topic) is in memory")
      let number = UInt64(topic.topic.dropFirst("life.".count))
      try require(
        try client.show(topic.topic).settings.replayRecords == number, "\(topic.topic) has other settings")
    }
    try require(topics.count == lives.count, "of \(lives.count) topics \(topics.count) are there")
  }
}
