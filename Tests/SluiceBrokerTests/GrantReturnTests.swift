import SluiceIO
import SluiceSession
import SluiceWire
import Synchronization
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Grants used by a denied batch return to the topic's budget.
@Suite struct GrantReturnTests {
  /// A topic with one publication that has the whole grant, and that grant.
  private func held(
    compact: Bool = false
  ) throws -> (topic: Topic, attachment: Topic.Attachment, granted: PublishingBudget.Allowance) {
    var configuration = BrokerConfiguration()
    configuration.topicDefaults.flow = .lossless
    configuration.topicDefaults.bufferRecords = 8
    configuration.topicDefaults.bufferBytes = 1_000
    configuration.topicDefaults.compact = compact
    let registry = TopicRegistry(configuration, identity: 1)
    let topic = try registry.use("t")
    let attachment = try attach(to: topic)
    let granted = topic.grant(to: PublishingBudget.Allowance(), now: MonotonicTime(nanoseconds: 0))
    #expect(granted == PublishingBudget.Allowance(records: 8, bytes: 1_000))
    return (topic, attachment, granted)
  }

  private func attach(to topic: Topic) throws -> Topic.Attachment {
    try topic.attachPublication(
      PublishOpen(topic: "t", acknowledgement: .received, producer: 7),
      ProducerTable.Holder(connection: 1) { _ in }, now: MonotonicTime(nanoseconds: 0))
  }

  /// Appends a batch of three records. Returns the rest of the publication's grant.
  private func append(
    to topic: Topic, _ attachment: Topic.Attachment, of granted: PublishingBudget.Allowance,
    needsSubscriber: Bool = false
  ) -> (result: Topic.AppendResult, left: PublishingBudget.Allowance) {
    let batch = SessionProbe.batch([1, 2, 3])
    let used = PublishingBudget.Allowance(records: 3, bytes: UInt64(batch.bytes.count))
    var left = granted
    left.subtract(used)
    let result = batch.bytes.withUnsafeBytes {
      topic.append(
        $0, count: 3, at: 0, in: attachment.epoch, using: used, by: attachment.ticket,
        needsSubscriber: needsSubscriber)
    }
    return (result, left)
  }

  @Test func theBatchOfAFencedProducerReturnsItsGrant() throws {
    let (topic, attachment, granted) = try held()
    _ = try attach(to: topic)
    let (result, left) = append(to: topic, attachment, of: granted)
    guard case .refused(let fault) = result else { throw ProbeViolation("\(result)") }
    #expect(fault.code == .producerFenced)
    #expect(topic.state.withLock { $0.budget.outstanding } == left)
  }

  @Test func theBatchBehindTheEndOfItsTopicReturnsItsGrant() throws {
    let (topic, attachment, granted) = try held()
    #expect(topic.end(.finished, in: attachment.epoch) == nil)
    let (result, left) = append(to: topic, attachment, of: granted)
    guard case .refused(let fault) = result else { throw ProbeViolation("\(result)") }
    #expect(fault.code == .topicEnded)
    #expect(topic.state.withLock { $0.budget.outstanding } == left)
  }

  @Test func theBatchOfARequesterWithoutSubscribersReturnsItsGrantOnce() throws {
    let (topic, attachment, granted) = try held()
    let (result, left) = append(to: topic, attachment, of: granted, needsSubscriber: true)
    guard case .unfit(let fault) = result else { throw ProbeViolation("\(result)") }
    #expect(fault.code == .noResponders)
    #expect(topic.state.withLock { $0.budget.outstanding } == left)
  }

  @Test func aBatchThatDoesNotFitItsTopicReturnsItsGrant() throws {
    let (topic, attachment, granted) = try held(compact: true)
    let (result, left) = append(to: topic, attachment, of: granted)
    guard case .unfit = result else { throw ProbeViolation("\(result)") }
    #expect(topic.state.withLock { $0.budget.outstanding } == left)
  }

  @Test func aContradictionIsFound() throws {
    let setting = try SnapshotSetting { $0.topicDefaults.flow = .lossless }
    let publisher = try setting.publisher("t")
    let topic = try #require(setting.broker.core.registry.find("t"))
    #expect(topic.grantViolation == nil)
    topic.state.withLock { $0.budget.spend(PublishingBudget.Allowance(records: 1)) }
    #expect(topic.grantViolation != nil)
    _ = publisher
  }

  @Test func aBufferWithoutBytesLetsRecordsThrough() throws {
    let setting = try SnapshotSetting {
      $0.topicDefaults.flow = .lossless
      $0.topicDefaults.bufferBytes = 0
    }
    let subscriber = try setting.subscriber("t", granted: .max)
    let publisher = try setting.publisher("t")
    for sequence: UInt64 in 0..<5 {
      try setting.wait(for: "a grant") { publisher.granted[1] ?? 0 > sequence }
      setting.publish([10], from: sequence, by: publisher)
    }
    try setting.wait(for: "the records") { subscriber.records[1]?.count == 5 }
  }
}
