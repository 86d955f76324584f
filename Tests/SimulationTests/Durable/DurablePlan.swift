import SluiceIO
import SluiceWire

/// A scenario with durable topics, made from a seed: their settings, their producers and readers, and the faults of the broker and its disk.
struct DurablePlan {
  struct TopicPlan {
    var name: String
    var settings = TopicSettings()
    /// Whether a producer completes it.
    var ends = false

    var sync: TopicSettings.Sync { settings.sync ?? .always }
    /// Whether it retains all of its records.
    var keepsAll: Bool {
      [settings.replayRecords, settings.replayBytes, settings.replayAge].allSatisfy {
        $0 == nil || $0 == TopicSettings.unlimited
      }
    }
  }

  struct Producer {
    var topic: Int
    var acknowledgement: PublishOpen.Acknowledgement
    var records: Int
    var ends = false
  }

  struct Reader {
    var topic: Int
    /// The name of its durable cursor, if any.
    var cursor: String?
    /// Whether it resumes at its offset in its epoch; otherwise it relies on its cursor alone.
    var resumes = true
    /// Whether it starts at any position instead of the first record.
    var startsAnywhere = false
  }

  /// A fault of the broker.
  enum Blow {
    /// The process is killed.
    case crash
    /// The process is killed in a commit, before any or after all of it is on disk.
    case crashInCommit(isOnDisk: Bool)
    /// An orderly shutdown.
    case stop
  }

  let seed: UInt64
  var brokerLoops = 1
  var topics: [TopicPlan] = []
  var producers: [Producer] = []
  var readers: [Reader] = []
  var blows: [(after: Duration, kind: Blow)] = []
  /// Whether the disk is full, or fails, at times.
  var hasBadDisk = false
  var hasSlowDisk = false
  var breaksOff = false
  /// Whether a topic is repeatedly created and deleted.
  var deletes = false
  /// Whether topics are trimmed and their limits change.
  var changes = false

  init(seed: UInt64) {
    self.seed = seed
    var random = SeededRandom(seed: seed &* 0x2c1b_3c6d)
    brokerLoops = random.next(in: 1...3)
    hasBadDisk = random.oneIn(3)
    hasSlowDisk = random.oneIn(3)
    breaksOff = random.oneIn(3)
    deletes = random.oneIn(3)
    for index in 0..<random.next(in: 1...3) { topics.append(Self.topic(index, &random)) }
    for index in topics.indices {
      let count = random.next(in: 1...3)
      for number in 0..<count {
        producers.append(
          Producer(
            topic: index, acknowledgement: random.oneIn(3) ? .received : .durable,
            records: random.next(in: 5...120), ends: number == 0 && topics[index].ends))
      }
      for number in 0..<random.next(in: 1...3) {
        let cursor = random.oneIn(2) ? "cursor-\(number)" : nil
        readers.append(
          Reader(
            topic: index, cursor: cursor, resumes: cursor == nil || random.oneIn(2),
            startsAnywhere: cursor == nil && random.oneIn(3)))
      }
    }
    // Seeds that failed before must replay the same scenario.
    changes = !Story.durable.onceFailed.contains(seed) && seed % 3 == 0
    for _ in 0..<random.next(in: 1...5) {
      let kinds: [Blow] = [
        .crash, .crash, .crashInCommit(isOnDisk: false), .crashInCommit(isOnDisk: true), .stop,
      ]
      let kind = kinds[random.next(in: 0...kinds.count - 1)]
      blows.append((random.next(in: .milliseconds(20) ... .milliseconds(1_200)), kind))
    }
  }

  private static func topic(_ index: Int, _ random: inout SeededRandom) -> TopicPlan {
    var topic = TopicPlan(name: "durable-\(index)")
    topic.settings.storage = .durable
    switch random.next(below: 5) {
    case 0: topic.settings.sync = .interval(UInt32(random.next(in: 1...400)))
    case 1: topic.settings.sync = .os
    default: topic.settings.sync = .always
    }
    switch random.next(below: 6) {
    case 0: topic.settings.replayRecords = random.next(below: 60)
    case 1: topic.settings.replayBytes = 1_000 + random.next(below: 20_000)
    default: topic.settings.replayBytes = TopicSettings.unlimited
    }
    if random.oneIn(4) {
      topic.settings.flow = .lossless
      topic.settings.bufferRecords = 10 + random.next(below: 50)
    }
    topic.ends = random.oneIn(3)
    return topic
  }
}
