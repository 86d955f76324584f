import SluiceIO
import SluiceNATS
import SluiceStore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceCluster

@Suite("Commits of a shard that aren't settled")
struct CommitPipelineTests {
  private static let now = MonotonicTime(nanoseconds: 7)

  /// Commits 1 to `count`, each of which creates a topic, after sequence 10.
  private static func pipeline(_ count: Int) -> CommitPipeline {
    var pipeline = CommitPipeline(behind: 10)
    for number in 1...count {
      var change = TopicChange(TopicID(rawValue: UInt64(number)))
      change.row = StoredTopic(name: "t\(number)", settings: TopicSettings(), epoch: 1)
      pipeline.append(PendingCommit(UInt64(number), [change], [StoredExtent()]))
    }
    return pipeline
  }

  @Test("each commit expects the sequence that the one before it will have")
  func predicted() {
    var pipeline = Self.pipeline(3)
    #expect(pipeline.predicted == 10)
    #expect(pipeline.send(2, at: Self.now).last == 12)
    #expect(pipeline.send(1, at: Self.now).last == 13)
    #expect(pipeline.predicted == 13 && pipeline.last == 10)
    #expect(pipeline.sent.map(\.number) == [1, 2] && pipeline.waiting.map(\.number) == [3])
  }

  @Test("its messages stand behind those of the commits before it, under the owner's fence")
  func messages() throws {
    var pipeline = Self.pipeline(2)
    let topics = ShardTopics([:], next: TopicID(rawValue: 1))
    let names = EngineNames(shard: ShardID(rawValue: 3))
    _ = pipeline.send(4, at: Self.now)
    guard case .ready(let messages) = pipeline.nextMessages(under: 9, topics, names, atMost: 1_000) else {
      Issue.record("a commit without batches has messages at once")
      return
    }
    #expect(messages.map(\.subject) == [names.changes(of: TopicID(rawValue: 2))])
    let envelope = try messages[0].payload.withUnsafeBytes {
      var reader = ByteReader($0)
      return try EngineEnvelope(&reader)
    }
    #expect(envelope == EngineEnvelope(.change, fence: 9, commit: 2))
    #expect(pipeline.send(messages.count, at: Self.now).firstSequences == [15])
  }

  @Test("commits are settled in order, whatever the order of their answers")
  func order() {
    var pipeline = Self.pipeline(3)
    for _ in 0..<3 { _ = pipeline.send(1, at: Self.now) }
    #expect(pipeline.unanswered(2)?.sentAt == Self.now)
    pipeline.acknowledged(2)
    #expect(pipeline.unanswered(2) == nil)
    #expect(pipeline.takeStored() == nil && pipeline.last == 10)
    pipeline.acknowledged(1)
    #expect(pipeline.takeStored()?.number == 1 && pipeline.last == 11)
    #expect(pipeline.takeStored()?.number == 2 && pipeline.last == 12)
    #expect(pipeline.takeStored() == nil)
    #expect(pipeline.unanswered(1) == nil && pipeline.unanswered(4) == nil)
  }

  @Test("a commit without messages is stored when those before it are")
  func empty() {
    var pipeline = Self.pipeline(2)
    _ = pipeline.send(1, at: Self.now)
    #expect(pipeline.send(0, at: Self.now).last == 11)
    #expect(pipeline.takeStored() == nil)
    pipeline.acknowledged(1)
    #expect(pipeline.takeStored()?.number == 1)
    #expect(pipeline.takeStored()?.number == 2)
    #expect(pipeline.isEmpty && pipeline.last == 11)
  }

  @Test("what isn't stored waits again in its order, also what was acknowledged behind it")
  func returned() {
    var pipeline = Self.pipeline(3)
    _ = pipeline.send(1, at: Self.now)
    _ = pipeline.send(1, at: Self.now)
    pipeline.acknowledged(2)
    pipeline.learned(through: 20)
    #expect(pipeline.predicted == 12)
    pipeline.returnSent()
    #expect(pipeline.waiting.map(\.number) == [1, 2, 3] && pipeline.sent.isEmpty)
    #expect(pipeline.waiting.allSatisfy { !$0.isStored })
    #expect(pipeline.predicted == 20)
    #expect(pipeline.send(1, at: Self.now).last == 21)
    #expect(pipeline.takeWaiting().map(\.number) == [2, 3])
    #expect(pipeline.waiting.isEmpty)
  }

  @Test("a commit that is found in the stream is stored, if it is the one that was sent last")
  func found() {
    var pipeline = Self.pipeline(1)
    _ = pipeline.send(2, at: Self.now)
    pipeline.found(1, at: 11)
    pipeline.found(2, at: 12)
    #expect(pipeline.takeStored() == nil)
    pipeline.found(1, at: 12)
    #expect(pipeline.takeStored()?.number == 1)
  }

  @Test("all are refused when each has an answer that proves that nothing was stored")
  func refused() {
    var pipeline = Self.pipeline(2)
    #expect(pipeline.isAllRefused)
    _ = pipeline.send(1, at: Self.now)
    _ = pipeline.send(1, at: Self.now)
    pipeline.failed(1, NATSError(.resourcesExhausted, ""))
    #expect(!pipeline.isAllRefused)
    pipeline.failed(2, NATSError(.timeout, ""))
    #expect(!pipeline.isAllRefused)
    pipeline.failed(2, NATSError(.wrongLastSequence, ""))
    #expect(pipeline.isAllRefused)
  }

  @Test("what is known of the stream while nothing is under way is what the next commit expects")
  func idle() {
    var pipeline = CommitPipeline(behind: 10)
    pipeline.learned(through: 14)
    pipeline.learned(through: 12)
    #expect(pipeline.last == 14 && pipeline.predicted == 14)
  }
}
