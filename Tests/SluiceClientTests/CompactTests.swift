import ReactiveCore
import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// Topics that keep the newest record of each key, as seen by users of the library.
@Suite struct CompactTests {
  private func stage() throws -> Stage {
    try Stage { $0.topicDefaults.compact = true }
  }

  private func record(_ recorder: Recorder<String>, _ topic: RemoteTopic<TopicRecord>) {
    topic.map { "\($0.topic)@\($0.offset) \($0.keyString ?? "?")=\($0.string)" }.subscribe(recorder)
  }

  @Test func theNewestOfEachKeyComesFirstAndThenEverything() throws {
    let stage = try stage()
    let client = try stage.client()
    try stage.publish(
      [Message("1", key: "a"), Message("2", key: "b"), Message("3", key: "a"), Message("", key: "b")],
      to: "t",
      with: client)
    let recorder = Recorder<String>()
    record(recorder, client.topic("t"))
    stage.world.run(for: .seconds(1))
    try stage.publish(
      [Message("4", key: "a"), Message("5", key: "a"), Message("", key: "a")], to: "t", with: client)
    stage.world.run(for: .seconds(1))
    #expect(recorder.values == ["t@2 a=3", "t@4 a=4", "t@5 a=5", "t@6 a="])
  }

  @Test func whoComesBackGetsWhatIsNewestAndWhatWasDeleted() throws {
    let stage = try stage()
    let client = try stage.persistentClient()
    let producer = try stage.client("producer")
    try stage.publish([Message("1", key: "a"), Message("2", key: "b")], to: "t", with: producer)
    let recorder = Recorder<String>()
    record(recorder, client.topic("t"))
    stage.world.run(for: .seconds(1))
    stage.reset()
    try stage.publish(
      [Message("", key: "a"), Message("3", key: "c"), Message("4", key: "c")], to: "t", with: producer)
    stage.world.run(for: .seconds(5))
    let heard = recorder.values
    #expect(heard.prefix(2) == ["t@0 a=1", "t@1 b=2"])
    #expect(heard.contains("t@2 a=") && heard.last == "t@4 c=4", "\(heard)")
  }

  @Test func patternsSelectThemAsWell() throws {
    let stage = try stage()
    let client = try stage.client()
    for topic in ["p.a", "p.b"] {
      try stage.publish(
        [Message("1", key: "a"), Message("2", key: "a"), Message("3", key: "b")], to: topic, with: client)
    }
    let recorder = Recorder<String>()
    record(recorder, client.topics(matching: "p.*"))
    stage.world.run(for: .seconds(1))
    try stage.publish([Message("4", key: "a")], to: "p.b", with: client)
    try stage.publish([Message("5", key: "a")], to: "p.c", with: client)
    stage.world.run(for: .seconds(1))
    #expect(
      recorder.values.sorted() == [
        "p.a@1 a=2", "p.a@2 b=3", "p.b@1 a=2", "p.b@2 b=3", "p.b@3 a=4", "p.c@0 a=5",
      ])
  }

  @Test func aRecordWithoutAKeyIsATypedFailure() throws {
    let stage = try stage()
    let client = try stage.client()
    let subject = client.subject("t")
    subject.send(Message("1", key: "a"))
    try stage.wait(subject.flush(completion:))
    subject.send("without")
    #expect { try stage.wait(subject.flush(completion:)) } throws: {
      ($0 as? ClientError)?.code == .keyRequired
    }
    #expect(client.failure == nil)
    try stage.publish([Message("2", key: "a")], to: "t", with: client)
  }

  @Test func demandIsExactWithGaps() throws {
    let stage = try stage()
    let client = try stage.client()
    try stage.publish((0..<100).map { Message("\($0)", key: "\($0 * $0 % 30)") }, to: "t", with: client)
    let recorder = Recorder<Int>(initial: .max(3))
    client.topic("t").map { Int($0.offset) }.subscribe(recorder)
    stage.world.run(for: .seconds(1))
    #expect(recorder.values.count == 3)
    recorder.subscription?.request(.unlimited)
    stage.world.run(for: .seconds(1))
    var newest: [Int: Int] = [:]
    for offset in 0..<100 { newest[offset * offset % 30] = offset }
    #expect(recorder.values == newest.values.sorted().map { "\($0)" })
  }
}
