import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceMQTT
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@Suite struct MQTTDoorTests {
  private let door: DoorWorld

  init() throws {
    door = try DoorWorld([.mqtt])
  }

  // MARK: Messages

  @Test(arguments: MQTTVersion.allCases, [MQTTQoS.atMostOnce, .atLeastOnce, .exactlyOnce])
  func messagesGoFromOneClientToAnother(version: MQTTVersion, qos: MQTTQoS) throws {
    let subscriber = MQTTClient.connected(door, "s", version)
    let publisher = MQTTClient.connected(door, "p", version)
    #expect(subscriber.take() == ["connack 0"])
    subscriber.subscribe("a/+", qos, 3)
    #expect(subscriber.take() == ["suback 3 [\(qos.rawValue)]"])
    for number in 1...3 { publisher.publish("a/b", "m\(number)", qos, UInt16(number)) }
    publisher.publish("a", "other", qos, 4)
    publisher.settle()
    publisher.settle()
    subscriber.settle()
    let messages = subscriber.take().filter { $0.hasPrefix("publish") }
    #expect(messages == (1...3).map { "publish a/b \"m\($0)\" \(qos.rawValue)" })
    let answers = publisher.take().dropFirst()
    switch qos {
    case .atMostOnce: #expect(answers.isEmpty)
    case .atLeastOnce: #expect(Set(answers) == Set((1...4).map { "puback \($0)" }))
    case .exactlyOnce:
      #expect(Set(answers) == Set((1...4).flatMap { ["pubrec \($0)", "pubcomp \($0)"] }))
    }
  }

  @Test func filtersMatchAsTheStandardSays() throws {
    let subscriber = MQTTClient.connected(door, "s")
    for (number, filter) in ["a/#", "b/+/c", "+"].enumerated() {
      subscriber.subscribe(filter, .atMostOnce, UInt16(number + 1))
    }
    _ = subscriber.take()
    let publisher = MQTTClient.connected(door, "p")
    for topic in ["a", "a/b", "a/b/c", "b/x/c", "b/c", "c", "c/d"] { publisher.publish(topic, topic) }
    publisher.settle()
    subscriber.settle()
    let topics = subscriber.take().map { String($0.split(separator: " ")[1]) }
    // `a` matches two subscriptions, so it arrives twice.
    #expect(topics.sorted() == ["a", "a", "a/b", "a/b/c", "b/x/c", "c"])
  }

  /// SUBSCRIBE and UNSUBSCRIBE in one read leave no request at the broker that UNSUBSCRIBE wouldn't end.
  @Test(arguments: ["a/b", "a/+", "$share/g/a/b", "$share/g/a/+"])
  func whatIsUnsubscribedAtOnceLeavesNothing(filter: String) throws {
    let client = MQTTClient.connected(door, "c")
    var bytes: [UInt8] = []
    MQTTPacket.subscribe(
      MQTTSubscribe(1, [MQTTSubscribe.Item(filter, MQTTSubscriptionOptions(.atMostOnce))])
    ).encode(into: &bytes, .v5)
    MQTTPacket.unsubscribe(MQTTUnsubscribe(2, [filter])).encode(into: &bytes, .v5)
    client.bytes.send(bytes)
    client.settle()
    #expect(client.take() == ["connack 0", "suback 1 [0]", "unsuback 2 [0]"])
    #expect(door.broker.metrics[.subscriptions] == 0)
  }

  @Test func namesThatTheBrokerCannotExpressAreRefusedWithAReason() throws {
    let client = MQTTClient.connected(door, "c")
    let long = String(repeating: "x", count: 256)
    client.publish(long, "x", .atLeastOnce, 1)
    client.subscribe("\(long)/#", .atMostOnce, 2)
    client.settle()
    #expect(client.take().dropFirst() == ["puback 1 144", "suback 2 [143]"])
  }

  @Test func recordsLookRightAtTheOtherDoor() throws {
    let client = MQTTClient.connected(door, "c")
    let native = try NativeClient(door)
    native.send(Subscribe(topic: "a.b", grantedThrough: 10), stream: 1)
    client.publish("a/b", "{}", .atLeastOnce, 1) {
      $0.append(.contentType, "application/json")
      $0.append(user: "sluice-key", "k")
      $0.append(user: "color", "red")
    }
    client.settle()
    let records = native.records(stream: 1)
    #expect(records.count == 1)
    #expect(records.first?.key == "k")
    #expect(records.first?.headers["content-type"] == "application/json")
    #expect(records.first?.headers["color"] == "red")
    #expect(records.first?.payload == Array("{}".utf8))

    client.subscribe("x/y", .atLeastOnce, 2)
    _ = client.take()
    native.publish("x.y", ["plain"], stream: 2)
    client.settle()
    #expect(client.take() == ["publish x/y \"plain\" 1"])
  }

  @Test func aClientDoesNotGetItsOwnMessagesWhereItSaysSo() throws {
    let (one, two) = (MQTTClient.connected(door, "1"), MQTTClient.connected(door, "2"))
    one.subscribe("t", .atLeastOnce, 1, noLocal: true)
    two.subscribe("t", .atLeastOnce, 1, noLocal: true)
    one.publish("t", "of one", .atLeastOnce, 7)
    one.settle()
    two.settle()
    #expect(!one.take().contains { $0.hasPrefix("publish") })
    #expect(two.take().contains { $0.hasPrefix("publish t \"of one\" 1") })
  }

  /// SUBSCRIBE and PUBLISH in one read. The SUBSCRIBE may only change the options of an existing subscription.
  @Test(arguments: [false, true])
  func aClientThatSubscribesAndPublishesAtOnceDoesNotGetItsOwnMessages(isSubscribed: Bool) throws {
    let client = MQTTClient.connected(door, "c")
    if isSubscribed { client.subscribe("t", .atLeastOnce, 1) }
    _ = client.take()
    let options = MQTTSubscriptionOptions(.atLeastOnce, noLocal: true)
    client.sendTogether {
      client.send(.subscribe(MQTTSubscribe(2, [MQTTSubscribe.Item("t", options)])))
      client.publish("t", "own", .atLeastOnce, 7)
    }
    client.settle()
    #expect(client.take().sorted() == ["puback 7", "suback 2 [1]"])
  }

  /// Messages that the client published on an earlier connection also count as its own.
  @Test func aSessionThatGoesOnDoesNotGetItsOwnMessages() throws {
    let client = MQTTClient.connected(door, "c", clean: false, expiry: 3600, receiveMaximum: 1)
    client.acknowledges = false
    client.subscribe("t", .atLeastOnce, 1, noLocal: true)
    let other = MQTTClient.connected(door, "other")
    other.publish("t", "first", .atLeastOnce, 1)
    other.settle()
    client.publish("t", "own", .atLeastOnce, 7)
    client.settle()
    #expect(client.take().contains("publish t \"first\" 1"))
    client.lose()
    other.publish("t", "last", .atLeastOnce, 2)
    other.settle()
    let again = MQTTClient.connected(door, "c", clean: false, expiry: 3600)
    again.settle()
    again.settle()
    #expect(
      again.take() == ["connack 0 present", "publish t \"first\" 1 again", "publish t \"last\" 1"])
  }

  @Test func replayBeginsWhereTheClientAsks() throws {
    let client = MQTTClient.connected(door, "c")
    for number in 0..<10 { client.publish("t", "\(number)", .atLeastOnce, UInt16(number + 1)) }
    client.settle()
    _ = client.take()
    client.subscribe("t", .atMostOnce, 20) { $0.append(user: "sluice-from", "last:3") }
    #expect(client.take() == ["suback 20 [0]"] + (7...9).map { "publish t \"\($0)\" 0" })
    client.subscribe("t", .atMostOnce, 21) { $0.append(user: "sluice-from", "offset:8") }
    #expect(client.take() == ["suback 21 [0]", "publish t \"8\" 0", "publish t \"9\" 0"])
  }

  @Test func theEndOfATopicIsAMessage() throws {
    let client = MQTTClient.connected(door, "c")
    client.subscribe("t/#", .atLeastOnce)
    _ = client.take()
    let native = try NativeClient(door)
    native.publish("t.u", ["last"], stream: 1)
    native.send(Complete(.failure(code: ErrorCode(rawValue: 1234), message: "broken")), stream: 1)
    client.settle()
    #expect(
      client.take() == [
        "publish t/u \"last\" 1",
        "publish t/u \"\" 0 sluice-ended=failure sluice-code=1234 sluice-message=broken",
      ])
  }

  // MARK: Demand

  @Test func noMoreIsUnderWayThanTheClientTakes() throws {
    let client = MQTTClient.connected(door, "c", receiveMaximum: 5)
    client.acknowledges = false
    for filter in ["a", "b", "c"] { client.subscribe(filter, .atLeastOnce) }
    let native = try NativeClient(door)
    for (index, topic) in ["a", "b", "c"].enumerated() {
      native.publish(topic, (0..<10).map { "\(topic)\($0)" }, stream: UInt32(index + 1))
    }
    client.settle()
    let first = client.take().filter { $0.hasPrefix("publish") }
    #expect((1...5).contains(first.count), "\(first)")
    // Each acknowledgement makes room for one more message, until all have arrived.
    client.acknowledges = true
    var seen = first.count
    var nextID: UInt16 = 1
    while seen < 30, nextID < 100 {
      client.send(.acknowledgement(MQTTAcknowledgement(.puback, nextID)))
      nextID += 1
      client.settle(.milliseconds(20))
      seen += client.take().filter { $0.hasPrefix("publish") }.count
    }
    #expect(seen == 30)
  }

  @Test func aPublisherOfALosslessTopicIsNotReadWhileItsSubscriberIsSlow() throws {
    let native = try NativeClient(door)
    var settings = TopicSettings()
    settings.flow = .lossless
    settings.bufferRecords = 4
    native.send(TopicCreate(topic: "t", settings: settings), stream: 9)
    native.send(Subscribe(topic: "t", grantedThrough: 1), stream: 1)
    native.settle()
    let publisher = MQTTClient.connected(door, "p")
    let payload = [UInt8](repeating: 7, count: 10_000)
    for _ in 0..<200 { publisher.publish("t", bytes: payload) }
    publisher.settle(.seconds(5))
    let topic = native.show("t").summary
    #expect(topic.nextOffset < 20)
    native.send(Demand(grantedThrough: 200), stream: 1)
    native.settle(.seconds(5))
    #expect(native.records(stream: 1).count == 200)
  }

  @Test func aClientThatReadsNothingCostsNoMoreThanItsBuffers() throws {
    let client = MQTTClient.connected(door, "c")
    client.subscribe("t", .atMostOnce)
    client.bytes.isPaused = true
    let native = try NativeClient(door)
    native.publishMuch("t")
    native.settle(.seconds(2))
    client.bytes.isPaused = false
    client.settle(.seconds(5))
    #expect(client.payloads.count == 400)
  }

  // MARK: Sessions

  @Test func aSessionThatIsKeptGetsWhatItIsOwed() throws {
    let client = MQTTClient.connected(door, "c", clean: false, expiry: 3600)
    #expect(client.take() == ["connack 0"])
    client.subscribe("t/#", .atLeastOnce)
    let publisher = MQTTClient.connected(door, "p")
    publisher.publish("t/a", "1", .atLeastOnce, 1)
    publisher.settle()
    client.settle()
    #expect(client.take().last == "publish t/a \"1\" 1")
    client.settle()
    client.lose()
    publisher.publish("t/a", "2", .atLeastOnce, 2)
    publisher.publish("t/new", "3", .atLeastOnce, 3)
    publisher.settle()
    let again = MQTTClient.connected(door, "c", clean: false, expiry: 3600)
    again.settle()
    #expect(
      again.take().sorted() == ["connack 0 present", "publish t/a \"2\" 1", "publish t/new \"3\" 1"])
    again.settle()
    again.disconnect()
    let third = MQTTClient.connected(door, "c", clean: false, expiry: 3600)
    #expect(third.take() == ["connack 0 present"])
    third.disconnect()
    let fourth = MQTTClient.connected(door, "c", clean: true)
    #expect(fourth.take() == ["connack 0"])
  }

  @Test(arguments: [MQTTQoS.atLeastOnce, .exactlyOnce])
  func whatWasUnderWayComesAgain(qos: MQTTQoS) throws {
    let client = MQTTClient.connected(door, "c", clean: false, expiry: 3600)
    client.subscribe("t", qos)
    client.acknowledges = false
    let publisher = MQTTClient.connected(door, "p")
    for number in 1...3 { publisher.publish("t", "\(number)", qos, UInt16(number)) }
    publisher.settle()
    publisher.settle()
    client.settle()
    #expect(client.take().filter { $0.hasPrefix("publish") }.count == 3)
    client.lose()
    let again = MQTTClient.connected(door, "c", clean: false, expiry: 3600)
    again.settle()
    #expect(
      again.take().filter { $0.hasPrefix("publish") }
        == (1...3).map { "publish t \"\($0)\" \(qos.rawValue) again" })
  }

  @Test func aMessageThatComesAgainIsInTheLogOnce() throws {
    let client = MQTTClient.connected(door, "c", clean: false, expiry: 3600)
    client.publish("t", "once", .exactlyOnce, 5)
    client.settle()
    #expect(client.take().contains("pubrec 5"))
    let other = MQTTClient.connected(door, "d", clean: false, expiry: 3600)
    // The connection is lost before the client reads PUBREC, and perhaps before PUBREC is sent.
    other.publish("t", "twice", .exactlyOnce, 6)
    door.settle(.microseconds(350))
    other.lose()
    let back = MQTTClient.connected(door, "d", clean: false, expiry: 3600)
    back.publish("t", "twice", .exactlyOnce, 6, isDuplicate: true)
    back.settle()
    back.settle()
    #expect(back.take().contains("pubcomp 6"))
    let native = try NativeClient(door)
    #expect(native.show("t").summary.nextOffset == 2)
  }

  @Test func aSessionExpires() throws {
    let client = MQTTClient.connected(door, "c", clean: false, expiry: 10)
    client.subscribe("t", .atLeastOnce)
    client.lose()
    door.settle(.seconds(11))
    let again = MQTTClient.connected(door, "c", clean: false, expiry: 10)
    #expect(again.take() == ["connack 0"])
  }

  @Test(arguments: [1, 3]) func aSessionIsTakenOver(loops: Int) throws {
    let door = try DoorWorld(loops: loops, [.mqtt])
    let client = MQTTClient.connected(door, "c", clean: false, expiry: 60)
    client.subscribe("t", .atLeastOnce)
    _ = client.take()
    let other = MQTTClient.connected(door, "c", clean: false, expiry: 60)
    client.settle()
    #expect(client.take() == ["disconnect 142"])
    #expect(client.bytes.hasEnded)
    other.settle()
    #expect(other.take() == ["connack 0 present"])
    let native = try NativeClient(door)
    native.publish("t", ["m"], stream: 1)
    other.settle()
    #expect(other.take() == ["publish t \"m\" 1"])
  }

  // MARK: Wills, retained messages, groups

  @Test func aWillIsPublishedUnlessTheClientSaysGoodbye() throws {
    let watcher = MQTTClient.connected(door, "w")
    watcher.subscribe("gone/#", .atLeastOnce)
    _ = watcher.take()
    let will = MQTTConnect.Will(topic: "gone/c", payload: Array("dead".utf8), qos: .atLeastOnce)
    MQTTClient.connected(door, "c", will: will).lose()
    watcher.settle()
    #expect(watcher.take() == ["publish gone/c \"dead\" 1"])
    MQTTClient.connected(door, "d", will: will).disconnect()
    watcher.settle()
    #expect(watcher.take() == [])
    // The same holds for a client that is silent for too long.
    let silent = MQTTClient.connected(door, "e", keepAlive: 4, will: will)
    watcher.settle(.seconds(8))
    #expect(silent.take().contains("disconnect 141") || silent.bytes.hasEnded)
    #expect(watcher.take() == ["publish gone/c \"dead\" 1"])
    #expect(door.broker.metrics[.connections] == 1)
  }

  @Test func aWillWithADelayWaitsForTheClient() throws {
    let watcher = MQTTClient.connected(door, "w")
    watcher.subscribe("gone", .atLeastOnce)
    _ = watcher.take()
    var will = MQTTConnect.Will(topic: "gone", payload: Array("dead".utf8))
    will.properties.append(.willDelay, 5)
    MQTTClient.connected(door, "c", clean: false, expiry: 60, will: will).lose()
    watcher.settle(.seconds(3))
    #expect(watcher.take() == [])
    let back = MQTTClient.connected(door, "c", clean: false, expiry: 60, will: will)
    watcher.settle(.seconds(10))
    #expect(watcher.take() == [])
    back.lose()
    watcher.settle(.seconds(6))
    #expect(watcher.take() == ["publish gone \"dead\" 0"])
    // A client that starts a clean session ends the old one, and its will is published at once.
    MQTTClient.connected(door, "c", clean: false, expiry: 60, will: will).lose()
    _ = MQTTClient.connected(door, "c", clean: true)
    watcher.settle()
    #expect(watcher.take() == ["publish gone \"dead\" 0"])
  }

  @Test func aWillIsPublishedWhenTheBrokerClosesTheConnection() throws {
    let watcher = MQTTClient.connected(door, "w")
    watcher.subscribe("gone/#", .atLeastOnce)
    _ = watcher.take()
    var will = MQTTConnect.Will(
      topic: "gone/c", payload: Array("closed".utf8), qos: .atLeastOnce, isRetained: true)
    let client = MQTTClient.connected(door, "c", will: will)
    will.properties.append(.willDelay, 5)
    let patient = MQTTClient.connected(door, "d", expiry: 60, will: will)
    let native = try NativeClient(door)
    native.send(ConnectionList(limit: 10), stream: 900)
    native.settle()
    let answer = try #require(native.frames.last { $0.header.type == .connections })
    let list = try answer.body.withUnsafeBytes { try Connections(body: $0) }
    for name in ["c", "d"] {
      let number = try #require(list.connections.first { $0.client == name }).connection
      native.send(ConnectionClose(connection: number), stream: name == "c" ? 901 : 902)
    }
    native.settle()
    #expect(client.bytes.hasEnded || client.take().contains("disconnect 152"))
    watcher.settle(.seconds(1))
    #expect(watcher.take() == ["publish gone/c \"closed\" 1"])
    watcher.settle(.seconds(6))
    #expect(watcher.take() == ["publish gone/c \"closed\" 1"])
    withExtendedLifetime(patient) {}
    // The connections that published the wills are closed.
    #expect(door.broker.metrics[.connections] == 2)
    let late = MQTTClient.connected(door, "l")
    late.subscribe("gone/c", .atMostOnce)
    late.settle()
    #expect(late.take().last == "publish gone/c \"closed\" 0 retained")
  }

  @Test func retainedMessagesComeToLateSubscribers() throws {
    let publisher = MQTTClient.connected(door, "p")
    publisher.publish("state/a", "old", .atLeastOnce, 1, retained: true)
    publisher.publish("state/a", "new", .atLeastOnce, 2, retained: true)
    publisher.publish("state/b", "b", .atMostOnce, retained: true)
    publisher.publish("other", "o", .atLeastOnce, 3, retained: true)
    publisher.settle()
    let late = MQTTClient.connected(door, "l")
    late.subscribe("state/#", .atLeastOnce, 1)
    late.settle()
    #expect(
      late.take().dropFirst().sorted() == [
        "publish state/a \"new\" 1 retained", "publish state/b \"b\" 0 retained", "suback 1 [1]",
      ])
    publisher.publish("state/a", "", .atLeastOnce, 4, retained: true)
    publisher.settle()
    late.settle()
    _ = late.take()
    late.subscribe("state/a", .atMostOnce, 2)
    late.settle()
    #expect(late.take() == ["suback 2 [0]"])
  }

  @Test(arguments: [MQTTQoS.atMostOnce, .atLeastOnce, .exactlyOnce])
  func sharedSubscriptionsWithWildcardsShareTheRecordsOfEachTopic(qos: MQTTQoS) throws {
    let publisher = MQTTClient.connected(door, "p")
    publisher.publish("a/1", "before", .atLeastOnce, 1)
    publisher.settle()
    let members = (0..<3).map { MQTTClient.connected(door, "m\($0)") }
    for member in members {
      member.subscribe("$share/g/a/+", qos, 3)
      #expect(member.take().last == "suback 3 [\(qos.rawValue)]")
    }
    // One of the topics exists, the others are created later: all of their records count.
    for number in 0..<60 {
      publisher.publish("a/\(number % 4)", "\(number)", qos, UInt16(number + 2))
      if number % 10 == 0 { for client in members + [publisher] { client.settle(.milliseconds(20)) } }
    }
    for _ in 0..<8 { for client in members + [publisher] { client.settle() } }
    let received = members.map { $0.take().filter { $0.hasPrefix("publish") } }
    #expect(Set(received.joined()).count == 60)
    #expect(received.joined().count == 60)
    #expect(received.allSatisfy { $0.count > 3 }, "\(received.map(\.count))")
  }

  @Test func sharedSubscriptionsShareTheRecords() throws {
    let members = (0..<3).map { MQTTClient.connected(door, "m\($0)") }
    for member in members { member.subscribe("$share/g/t", .atLeastOnce) }
    let publisher = MQTTClient.connected(door, "p")
    for number in 0..<30 { publisher.publish("t", "\(number)", .atLeastOnce, UInt16(number + 1)) }
    publisher.settle()
    for _ in 0..<5 { for member in members { member.settle() } }
    let received = members.map { $0.take().filter { $0.hasPrefix("publish") } }
    #expect(Set(received.joined()).count == 30)
    #expect(received.joined().count == 30)
    // Messages that a member hasn't acknowledged go to another.
    members[0].acknowledges = false
    for number in 30..<60 { publisher.publish("t", "\(number)", .atLeastOnce, UInt16(number + 1)) }
    publisher.settle()
    for member in members { member.settle() }
    members[0].lose()
    for _ in 0..<5 { for member in members[1...] { member.settle() } }
    let rest = Set(members[1...].flatMap { $0.take().filter { $0.hasPrefix("publish") } })
    #expect(rest.count == 30)
  }

  // MARK: Bad input

  @Test(
    arguments: [
      [0x10, 0xFF, 0xFF, 0xFF, 0xFF, 0x01], [0x30, 0x01, 0x00], [0x00, 0x00],
      Array("GET / HTTP/1.1\r\n\r\n".utf8),
      [0x10, 0xFF, 0xFF, 0xFF, 0x7F],
    ] as [[UInt8]]) func whatIsNotMQTTEndsTheConnection(bytes: [UInt8]) throws
  {
    let client = door.connect(1)
    client.send(bytes)
    door.settle(.seconds(2))
    #expect(client.hasEnded)
    #expect(door.broker.metrics[.connections] == 0)
  }

  @Test func aConnectThatNeverEndsIsGivenUp() throws {
    let door = try DoorWorld([.mqtt]) { $0.limits.handshake = .seconds(3) }
    let client = door.connect(1)
    client.send([0x10, 0x20, 0x00])
    door.settle(.seconds(10))
    #expect(client.hasEnded)
    #expect(door.broker.metrics[.connections] == 0)
  }

  @Test func pingsAreAnsweredAndSilenceIsNot() throws {
    let client = MQTTClient.connected(door, "c", keepAlive: 2)
    for _ in 0..<4 {
      client.settle(.seconds(2))
      client.send(.pingreq)
    }
    client.settle()
    #expect(client.take() == ["connack 0"] + [String](repeating: "pingresp", count: 4))
    client.settle(.seconds(4))
    #expect(client.bytes.hasEnded)
  }

  @Test func aStoppingBrokerSaysSo() throws {
    let client = MQTTClient.connected(door, "c")
    door.broker.stop()
    client.settle(.seconds(1))
    #expect(client.take() == ["connack 0", "disconnect 139"])
  }

  @Test func aBrokerThatDrainsTakesNothingNew() throws {
    let door = try DoorWorld([.mqtt, .http]) { $0.drainTime = .seconds(60) }
    let client = MQTTClient.connected(door, "c")
    client.subscribe("t", .atLeastOnce)
    let reader = door.connect(2)
    reader.send("GET /topics/t?until=live HTTP/1.1\r\nHost: b\r\n\r\n")
    door.settle()
    _ = client.take()
    client.acknowledges = false
    door.broker.shutdown()
    client.publish("new", "x", .atLeastOnce, 9)
    client.subscribe("other", .atLeastOnce, 2)
    reader.send("GET /topics/t HTTP/1.1\r\nHost: b\r\n\r\n")
    client.settle(.seconds(5))
    let answers = client.take()
    #expect(!answers.contains("puback 9"))
    #expect(!answers.contains("suback 2 [1]"))
    #expect(answers.last == "disconnect 139" || client.bytes.hasEnded)
  }

  /// Through a network that splits bytes at any place, with clients that connect and disconnect.
  @Test(arguments: 1...20 as ClosedRange<UInt64>) func nothingIsLostThroughARoughNetwork(seed: UInt64) throws
  {
    let door = try DoorWorld(seed: seed, loops: 1 + Int(seed % 3), [.mqtt], conditions: SimulatedConditions())
    let publisher = MQTTClient.connected(door, "p", clean: false, expiry: 600)
    var subscriber = MQTTClient.connected(door, "s", clean: false, expiry: 600, receiveMaximum: 7)
    publisher.settle(.seconds(1))
    subscriber.settle(.seconds(1))
    subscriber.subscribe("t/+", .exactlyOnce)
    subscriber.settle(.seconds(1))
    var received: [String] = []
    func gather() { received += subscriber.take().filter { $0.hasPrefix("publish") } }
    for number in 1...60 {
      publisher.publish("t/\(number % 3)", "\(number)", .exactlyOnce, UInt16(number))
      publisher.settle(.milliseconds(30))
      subscriber.settle(.milliseconds(10))
      guard number % 20 == 0 else { continue }
      gather()
      subscriber.lose()
      subscriber = MQTTClient.connected(door, "s", clean: false, expiry: 600, receiveMaximum: 7)
      subscriber.settle(.seconds(1))
    }
    for _ in 0..<30 {
      publisher.settle(.milliseconds(200))
      subscriber.settle(.milliseconds(200))
    }
    gather()
    // Messages that were in flight when the connection was lost are sent again, marked as duplicates.
    let fresh = received.filter { !$0.hasSuffix(" again") }
    let texts = Set(received.map { $0.split(separator: "\"")[1] })
    #expect(texts.count == 60)
    #expect(Set(fresh).count == fresh.count)
    #expect(publisher.take().filter { $0.hasPrefix("pubcomp") }.count == 60)
  }

  /// A client that reconnects subscribes again at once, before the broker has opened its subscriptions, at the same QoS or another one.
  @Test(arguments: [MQTTQoS.atMostOnce, .atLeastOnce, .exactlyOnce])
  func aSubscriptionThatIsAskedForAgainAtOnceGoesOn(qos: MQTTQoS) throws {
    let door = try DoorWorld([.mqtt])
    let publisher = MQTTClient.connected(door, "p")
    let first = MQTTClient.connected(door, "c", clean: false, expiry: 3600)
    first.subscribe("t/+", .atLeastOnce)
    for number in 1...3 { publisher.publish("t/a", "\(number)", .atLeastOnce, UInt16(number)) }
    publisher.settle()
    first.settle()
    #expect(first.payloads.count == 3)
    first.settle()
    first.disconnect()
    publisher.publish("t/a", "4", .atLeastOnce, 4)
    publisher.settle()
    let again = MQTTClient(door, .v5)
    var properties = MQTTProperties()
    properties.append(.sessionExpiry, 3600)
    again.sendTogether {
      again.send(.connect(MQTTConnect(.v5, clientID: "c", cleanStart: false, properties: properties)))
      again.send(
        .subscribe(MQTTSubscribe(1, [MQTTSubscribe.Item("t/+", MQTTSubscriptionOptions(qos))])))
    }
    again.settle(.seconds(1))
    publisher.publish("t/a", "5", .atLeastOnce, 5)
    publisher.settle()
    again.settle()
    #expect(
      Set(again.take().filter { !$0.hasPrefix("publish") && !$0.hasPrefix("pubrel") }) == [
        "connack 0 present", "suback 1 [\(qos.rawValue)]",
      ])
    let texts = again.payloads.map { String(decoding: $0, as: UTF8.self) }
    #expect(texts == ["4", "5"])
  }

  /// The QoS is changed twice before the broker has answered the first change.
  @Test func aSubscriptionThatIsChangedTwiceAtOnceGoesOn() throws {
    let door = try DoorWorld([.mqtt])
    let publisher = MQTTClient.connected(door, "p")
    publisher.publish("t", "old", .atLeastOnce, 1)
    publisher.settle()
    let client = MQTTClient.connected(door)
    client.subscribe("t", .atLeastOnce)
    publisher.publish("t", "1", .atLeastOnce, 2)
    publisher.settle()
    client.settle()
    client.sendTogether {
      for (number, qos) in [MQTTQoS.atMostOnce, .atLeastOnce, .atMostOnce].enumerated() {
        client.send(
          .subscribe(
            MQTTSubscribe(UInt16(number + 2), [MQTTSubscribe.Item("t", MQTTSubscriptionOptions(qos))])))
      }
    }
    client.settle()
    publisher.publish("t", "2", .atLeastOnce, 3)
    publisher.settle()
    client.settle()
    #expect(client.payloads.map { String(decoding: $0, as: UTF8.self) } == ["1", "2"])
    #expect(
      client.take().filter { $0.hasPrefix("suback") } == [
        "suback 1 [1]", "suback 2 [0]", "suback 3 [1]", "suback 4 [0]",
      ])
  }

  /// A SUBSCRIBE changes the QoS of another one that isn't answered yet.
  @Test func twoSUBSCRIBEsAtOnceBeginWithTheNextMessage() throws {
    let door = try DoorWorld([.mqtt])
    let publisher = MQTTClient.connected(door, "p")
    publisher.publish("t", "old", .atLeastOnce, 1)
    publisher.settle()
    for (first, second) in [(MQTTQoS.atMostOnce, MQTTQoS.atLeastOnce), (.atLeastOnce, .atMostOnce)] {
      let client = MQTTClient.connected(door)
      client.sendTogether {
        for (number, qos) in [first, second].enumerated() {
          client.send(
            .subscribe(
              MQTTSubscribe(
                UInt16(number + 1), [MQTTSubscribe.Item("t", MQTTSubscriptionOptions(qos))])))
        }
      }
      client.settle()
      publisher.publish("t", "new", .atLeastOnce, 2)
      publisher.settle()
      client.settle()
      #expect(client.payloads.map { String(decoding: $0, as: UTF8.self) } == ["new"])
      #expect(client.take().filter { $0.hasPrefix("suback") }.count == 2)
    }
  }
}
