import SluiceStore
import SluiceWire
import Synchronization
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A change that the store rejects as invalid affects only its topic.
@Suite struct RejectedChangeTests {
  private func publish(_ topic: String, _ client: RawClient, stream: UInt32) throws {
    try client.openPublication(topic, stream: stream, acknowledgement: .durable)
    try client.publish(["record"], stream: stream)
    try client.receiveAcknowledgements(stream: stream)
  }

  @Test(arguments: ["", String(repeating: "c", count: 256)])
  func deletingWhatIsNoCursorsNameStopsNothing(name: String) throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    for topic in ["a", "b"] { try client.create(topic, DurableSetting.durable()) }
    try client.send(CursorDelete(topic: "a", name: name), stream: 1)
    try client.expectFault(.invalidTopic, stream: 1)
    try publish("a", client, stream: 2)
    try publish("b", client, stream: 3)
    #expect(setting.broker.metrics[.failedCommits] == 0)
    #expect(setting.broker.metrics[.rejectedChanges] == 0)
  }

  @Test func aStateThatCannotBeStoredIsSetAsideAndTheRestIsStored() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    for topic in ["a", "b"] { try client.create(topic, DurableSetting.durable()) }
    try publish("b", client, stream: 3)
    setting.store.hold()
    // A change that no frame can cause.
    let topic = try #require(setting.broker.core.registry.find("a"))
    topic.state.withLock { $0.tail?.note(cursor: "") }
    let answers = Mutex<[Fault?]>([])
    topic.whenCommitted(of: "") { fault in answers.withLock { $0.append(fault) } }
    try client.openPublication("a", stream: 2, acknowledgement: .durable)
    try client.publish(["record"], stream: 2)
    try client.publish(["another"], stream: 3)
    setting.store.release()
    try client.receiveAcknowledgements(stream: 2)
    try client.receiveAcknowledgements(stream: 3)
    try eventually("an answer") { answers.withLock { !$0.isEmpty } }
    #expect(answers.withLock { $0.map { $0?.code } } == [.storageFailed])
    #expect(setting.broker.metrics[.rejectedChanges] == 1)
    #expect(setting.broker.metrics[.failedCommits] == 0)
    let rejections = setting.events.filter { if case .rejected("a", _) = $0 { true } else { false } }
    #expect(rejections.count == 1)
    #expect(setting.broker.core.stores.all.first?.refusal == nil)
  }

  @Test func aTopicWhoseRecordsTheStoreRefusesIsSetAsideAndOthersGoOn() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    for topic in ["a", "b"] { try client.create(topic, DurableSetting.durable()) }
    try publish("a", client, stream: 2)
    try client.openPublication("b", stream: 3, acknowledgement: .durable)
    let topic = try #require(setting.broker.core.registry.find("a"))
    setting.store.reject(try #require(topic.storage?.id))
    try client.publish(["refused"], stream: 2)
    try client.publish(["stored"], stream: 3)
    try client.receiveAcknowledgements(stream: 3)
    try client.receive(until: "the refusal") { client.publications[2]!.end != nil }
    #expect(setting.broker.metrics[.rejectedChanges] == 1)
    #expect(setting.broker.core.stores.backlog == 0)
    #expect(setting.broker.core.stores.all.first?.refusal == nil)
    // Another publication is denied, too.
    try client.send(PublishOpen(topic: "a", acknowledgement: .durable), stream: 4)
    try client.expectFault(.storageFailed, stream: 4)
    try publish("c", client, stream: 5, creating: true)
    // After a deletion the name can be reused.
    try client.delete("a")
    try client.create("a", DurableSetting.durable())
    try publish("a", client, stream: 6)
  }

  private func publish(_ topic: String, _ client: RawClient, stream: UInt32, creating: Bool) throws {
    if creating { try client.create(topic, DurableSetting.durable()) }
    try publish(topic, client, stream: stream)
  }
}
