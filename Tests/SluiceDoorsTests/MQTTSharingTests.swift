import SluiceIO
import SluiceMQTT
import TestSupport
import Testing

/// Shared subscriptions, in each combination of options that a client can choose.
@Suite struct MQTTSharingTests {
  struct Choice: CustomTestStringConvertible {
    var version: MQTTVersion
    var qos: MQTTQoS
    /// Whether the topic is created after the members have subscribed.
    var isNew: Bool
    /// Nil for the default.
    var receiveMaximum: UInt32?

    var testDescription: String {
      "\(version), QoS \(qos.rawValue), \(isNew ? "new" : "old") topic, receive maximum \(receiveMaximum ?? 65_535)"
    }
  }

  static let choices = MQTTVersion.allCases.flatMap { version in
    [MQTTQoS.atMostOnce, .atLeastOnce, .exactlyOnce].flatMap { qos in
      [true, false].flatMap { isNew in
        [nil, 1, 5].map { Choice(version: version, qos: qos, isNew: isNew, receiveMaximum: $0) }
      }
    }
  }

  private let door: DoorWorld

  init() throws {
    door = try DoorWorld([.mqtt])
  }

  private func messages(_ client: MQTTClient) -> [String] { client.take().filter { $0.hasPrefix("publish") } }

  @Test(arguments: choices, ["t/a", "t/+", "t/#", "t/a/#"])
  func eachRecordGoesToOneMember(choice: Choice, filter: String) {
    let publisher = MQTTClient.connected(door, "p")
    if !choice.isNew {
      publisher.publish("t/a", "before", .atLeastOnce, 100)
      publisher.settle()
    }
    let members = (0..<2).map {
      MQTTClient.connected(door, "m\($0)", choice.version, receiveMaximum: choice.receiveMaximum)
    }
    for member in members {
      member.subscribe("$share/g/\(filter)", choice.qos, 3)
      #expect(member.take().last == "suback 3 [\(choice.qos.rawValue)]")
    }
    for number in 0..<20 {
      publisher.publish("t/a", "\(number)", .exactlyOnce, UInt16(number + 1))
      if number % 5 == 0 { for client in members + [publisher] { client.settle(.milliseconds(20)) } }
    }
    for _ in 0..<40 { for client in members + [publisher] { client.settle() } }
    let received = members.map(messages)
    #expect(Set(received.joined()) == Set((0..<20).map { "publish t/a \"\($0)\" \(choice.qos.rawValue)" }))
    #expect(received.joined().count == 20)
    #expect(received.allSatisfy { $0.count > 3 }, "\(received.map(\.count))")
    #expect(members.allSatisfy { !$0.bytes.hasEnded })
  }

  @Test func membersAtEveryQoSShareOneGroup() {
    let levels = [MQTTQoS.exactlyOnce, .atMostOnce, .atLeastOnce]
    let members = levels.map { MQTTClient.connected(door, "m\($0)") }
    for (member, qos) in zip(members, levels) {
      member.subscribe("$share/g/t", qos)
      #expect(member.take().last == "suback 1 [\(qos.rawValue)]")
    }
    let publisher = MQTTClient.connected(door, "p")
    for number in 0..<30 { publisher.publish("t", "\(number)", .exactlyOnce, UInt16(number + 1)) }
    for _ in 0..<8 { for client in members + [publisher] { client.settle() } }
    let received = members.map(messages)
    #expect(Set(received.joined()).count == 30)
    #expect(received.joined().count == 30)
    #expect(received.allSatisfy { $0.count > 3 }, "\(received.map(\.count))")
  }

  /// At QoS 0 a record is acknowledged when it is sent.
  @Test func whatAMemberHasBeenSentAtQoS0IsNotForTheNextOne() {
    let (publisher, first) = (MQTTClient.connected(door, "p"), MQTTClient.connected(door, "m0"))
    first.subscribe("$share/g/t")
    for number in 1...5 { publisher.publish("t", "\(number)", .atLeastOnce, UInt16(number)) }
    for client in [publisher, first] { client.settle() }
    #expect(messages(first).count == 5)
    first.lose()
    publisher.publish("t", "6", .atLeastOnce, 6)
    publisher.settle()
    let second = MQTTClient.connected(door, "m1")
    second.subscribe("$share/g/t")
    second.settle()
    #expect(messages(second) == ["publish t \"6\" 0"])
  }
}
