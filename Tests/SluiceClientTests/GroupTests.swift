import ReactiveCore
import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceClient

/// Frames that members of a group send, and their deliveries.
@Suite struct GroupFrameTests {
  private let broker: ScriptedBroker
  private let client: Client

  init() throws {
    broker = try ScriptedBroker()
    client = try broker.client { $0.reconnect = ReconnectPolicy() }
  }

  private let explicit = GroupOptions(acknowledgement: .explicit)

  /// Records deliveries without acknowledging them.
  private final class Member {
    var deliveries: [Delivery] = []
    var recorder: Recorder<Delivery>!

    init(initial: Subscribers.Demand = .unlimited) {
      recorder = Recorder<Delivery>(initial: initial) { [unowned self] _, delivery in
        deliveries.append(delivery)
        return .none
      }
    }
  }

  private func joined(epoch: UInt64 = 1) {
    broker.send(Subscribed(epoch: epoch, nextOffset: 0, liveOffset: 0, gaps: true), 1)
    broker.send(Live(nextOffset: 0), 1)
    broker.settle()
  }

  @Test func theOptionsAreAskedFor() throws {
    let options = GroupOptions(
      acknowledgement: .explicit, order: .byKey, deadline: .milliseconds(1_500), deliveries: 3,
      deadLetters: "dead")
    let member = Member(initial: .max(4))
    client.group("workers", of: "jobs", options: options, from: .last(2)).subscribe(member.recorder)
    #expect(
      try broker.takeOnly(JoinGroup.self)
        == JoinGroup(
          topic: "jobs", group: "workers", start: .last(2),
          settings: JoinGroup.Settings(
            acknowledgement: .explicit, order: .byKey, deadline: 1_500, deliveries: 3, deadLetters: "dead"),
          grantedThrough: 4))
  }

  @Test func whatIsSaidInATurnTravelsInRuns() throws {
    let member = Member()
    client.group("workers", of: "jobs", options: explicit).subscribe(member.recorder)
    let _: JoinGroup = try broker.takeOnly()
    joined()
    broker.send(deliver(stream: 1, firstOffset: 3, ["a", "b", "c"]))
    broker.send(deliver(stream: 1, firstOffset: 9, ["d"]))
    broker.send(Deliveries(count: 2), 1)
    // A redelivery of an earlier record.
    broker.send(deliver(stream: 1, firstOffset: 1, ["e"]))
    broker.settle()
    #expect(member.deliveries.map(\.record.string) == ["a", "b", "c", "d", "e"])
    #expect(member.deliveries.map(\.count) == [1, 1, 1, 1, 2])
    broker.clientLoop.perform {
      member.deliveries[0].acknowledge()
      member.deliveries[1].acknowledge()
      member.deliveries[2].retry()
      member.deliveries[3].extend()
      member.deliveries[4].reject()
    }
    let frames = try broker.takeReceived().map { try $0.decode(Settle.self) }
    #expect(
      frames == [
        Settle(.acknowledge, delivery: 1, firstOffset: 3, count: 2),
        Settle(.retry, delivery: 1, firstOffset: 5, count: 1),
        Settle(.extend, delivery: 1, firstOffset: 9, count: 1),
        Settle(.reject, delivery: 2, firstOffset: 1, count: 1),
      ])
  }

  @Test func whatIsSaidDuringAnOutageIsToldAfterJoiningAgain() throws {
    let member = Member(initial: .max(3))
    client.group("workers", of: "jobs", options: explicit).subscribe(member.recorder)
    let _: JoinGroup = try broker.takeOnly()
    joined()
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b"]))
    broker.settle()
    broker.breakOff()
    // Rejoins with the rest of its demand.
    #expect(try broker.takeOnly(JoinGroup.self).grantedThrough == 1)
    member.deliveries[0].acknowledge()
    member.deliveries[1].extend()
    #expect(broker.takeReceived().isEmpty)
    joined()
    #expect(try broker.takeOnly(Settle.self) == Settle(.acknowledge, delivery: 1, firstOffset: 0, count: 1))
  }

  @Test func whatIsSaidOfAFormerLifeMeansNothing() throws {
    let member = Member()
    client.group("workers", of: "jobs", options: explicit).subscribe(member.recorder)
    let _: JoinGroup = try broker.takeOnly()
    joined()
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b"]))
    broker.settle()
    broker.breakOff()
    let _: JoinGroup = try broker.takeOnly()
    member.deliveries[0].acknowledge()
    joined(epoch: 2)
    member.deliveries[1].acknowledge()
    #expect(broker.takeReceived().isEmpty)
    broker.send(deliver(stream: 1, firstOffset: 0, ["c"]))
    broker.settle()
    member.deliveries[2].acknowledge()
    #expect(try broker.takeOnly(Settle.self) == Settle(.acknowledge, delivery: 1, firstOffset: 0, count: 1))
    #expect(member.recorder.values.count == 3)
  }

  @Test func whatWasSaidBeforeCancellingIsToldBefore() throws {
    let member = Member()
    client.group("workers", of: "jobs", options: explicit).subscribe(member.recorder)
    let _: JoinGroup = try broker.takeOnly()
    joined()
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b"]))
    broker.settle()
    member.deliveries[0].acknowledge()
    member.recorder.subscription?.cancel()
    member.deliveries[1].acknowledge()
    #expect(broker.takeReceived().map(\.type) == [.settle, .cancel])
  }

  @Test func automaticAcknowledgementSaysNothing() throws {
    let member = Member()
    client.group("workers", of: "jobs").subscribe(member.recorder)
    #expect(try broker.takeOnly(JoinGroup.self).settings == JoinGroup.Settings())
    joined()
    broker.send(deliver(stream: 1, firstOffset: 7, ["a"]))
    broker.settle()
    member.deliveries[0].acknowledge()
    member.deliveries[0].retry()
    #expect(broker.takeReceived().isEmpty)
  }

  @Test(arguments: [
    (ErrorCode.groupMismatch, ClientError.Code.groupMismatch), (.cursorMoved, .cursorMoved),
    (.cursorDeleted, .cursorDeleted),
  ])
  func refusalsHaveTheirCodes(_ code: ErrorCode, _ expected: ClientError.Code) throws {
    let member = Member()
    client.group("workers", of: "jobs").subscribe(member.recorder)
    let _: JoinGroup = try broker.takeOnly()
    broker.send(Fault(code: code, message: "no"), 1)
    broker.settle()
    #expect(member.recorder.history == [.subscription, .failure(expected)])
  }

  @Test func aBrokerThatExceedsTheDemandOfAMemberIsLeft() throws {
    let member = Member(initial: .max(1))
    client.group("workers", of: "jobs").subscribe(member.recorder)
    let _: JoinGroup = try broker.takeOnly()
    joined()
    broker.send(deliver(stream: 1, firstOffset: .max - 1, ["a", "b"]))
    broker.settle()
    #expect(member.recorder.completion == .failure(.protocolViolation))
  }
}

/// Members of a group with a real broker, on a simulated network.
@Suite struct GroupEndToEndTests {
  @Test func jobsAreDoneByWhoeverIsFreeAndEndForAll() throws {
    let stage = try Stage()
    let clients = try (0..<3).map { try stage.client("worker\($0)") }
    var done: [UInt64: Int] = [:]
    var recorders: [Recorder<Delivery>] = []
    for client in clients {
      let recorder = Recorder<Delivery>(initial: .max(1)) { _, delivery in
        done[delivery.record.offset, default: 0] += 1
        delivery.acknowledge()
        return .max(1)
      }
      recorders.append(recorder)
      client.group("workers", of: "jobs", options: GroupOptions(acknowledgement: .explicit)).subscribe(
        recorder)
    }
    stage.world.run(for: .seconds(1))
    let producer = try stage.client("producer")
    try stage.publish((0..<300).map { Message("\($0)") }, to: "jobs", with: producer)
    try stage.wait { producer.subject("jobs").complete(.finished, completion: $0) }
    #expect(stage.world.run { recorders.allSatisfy { $0.completion == .finished } })
    #expect(done.count == 300 && done.values.allSatisfy { $0 == 1 })
    #expect(recorders.allSatisfy { $0.values.count == 100 })
  }

  @Test func whatAWorkerLeavesUndoneIsDoneByAnother() throws {
    let stage = try Stage()
    let options = GroupOptions(acknowledgement: .explicit, deliveries: 2, deadLetters: "jobs.dead")
    let first = try stage.client("first")
    let lazy = Recorder<Delivery>()
    first.group("workers", of: "jobs", options: options).subscribe(lazy)
    let producer = try stage.client("producer")
    try stage.publish(["a", "b", "c"], to: "jobs", with: producer)
    #expect(stage.world.run { lazy.values.count == 3 })
    first.close()
    let second = try stage.client("second")
    var counts: [Int] = []
    let diligent = Recorder<Delivery> { _, delivery in
      counts.append(delivery.count)
      if delivery.record.string == "b" { delivery.retry() } else { delivery.acknowledge() }
      return .none
    }
    second.group("workers", of: "jobs", options: options).subscribe(diligent)
    let letters = Recorder<TopicRecord>()
    producer.topic("jobs.dead").subscribe(letters)
    #expect(stage.world.run { letters.values.count == 1 && diligent.values.count == 3 })
    #expect(letters.values == ["b"])
    #expect(counts == [2, 2, 2])
  }

  @Test func aMemberGoesOnAfterALostConnection() throws {
    let stage = try Stage()
    let client = try stage.persistentClient()
    var seen: [UInt64: Int] = [:]
    let recorder = Recorder<Delivery>(initial: .max(2)) { _, delivery in
      seen[delivery.record.offset, default: 0] += 1
      delivery.acknowledge()
      return .max(1)
    }
    client.group("workers", of: "jobs", options: GroupOptions(acknowledgement: .explicit)).subscribe(recorder)
    let producer = try stage.persistentClient("producer")
    for round in 0..<10 {
      try stage.publish((0..<20).map { Message("\(round * 20 + $0)") }, to: "jobs", with: producer)
      stage.reset()
    }
    #expect(stage.world.run(limit: .seconds(300)) { seen.count == 200 })
  }
}
