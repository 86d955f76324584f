import SluiceMQTT
import TestSupport
import Testing

/// Bytes sent by a foreign client: Eclipse Paho for Python 2.2.
@Suite("MQTT packets of other clients")
struct ForeignClientTests {
  @Test("reads what the Paho client writes in MQTT 3.1.1, and writes the same")
  func paho311() throws {
    try expect(
      .v311,
      [
        (
          """
          102c00044d51545404ee001e00047061686f0009676f6e652f7061686f0003627965000475736572000470617373
          """,
          .connect(
            MQTTConnect(
              .v311, clientID: "paho", keepAlive: 30,
              will: MQTTConnect.Will(
                topic: "gone/paho", payload: Array("bye".utf8), qos: .atLeastOnce, isRetained: true),
              username: "user", password: Array("pass".utf8)))
        ),
        ("300f000973656e736f72732f3132312e35", received("sensors/1", "21.5")),
        (
          "3310000a73656e736f72732fc3a4000200ff",
          .publish(
            OwnedPacket.Publish(
              topic: "sensors/ä", payload: [0, 255], qos: .atLeastOnce, packetID: 2, isRetained: true))
        ),
        ("3c0d000973656e736f72732f330003", received("sensors/3", "", .exactlyOnce, 3, isDuplicate: true)),
        (
          "821d0001000973656e736f72732f2302000c2473686172652f672f612f2b01",
          .subscribe(
            MQTTSubscribe(
              1,
              [
                MQTTSubscribe.Item("sensors/#", MQTTSubscriptionOptions(.exactlyOnce)),
                MQTTSubscribe.Item("$share/g/a/+", MQTTSubscriptionOptions(.atLeastOnce)),
              ]))
        ),
        ("a2100002000973656e736f72732f23000178", .unsubscribe(MQTTUnsubscribe(2, ["sensors/#", "x"]))),
        ("40020007", acknowledgement(.puback, 7)), ("50020008", acknowledgement(.pubrec, 8)),
        ("62020009", acknowledgement(.pubrel, 9)), ("7002000a", acknowledgement(.pubcomp, 10)),
        ("c000", .pingreq), ("e000", .disconnect(MQTTNotice(.disconnect))),
      ])
  }

  @Test("reads what the Paho client writes in MQTT 5, and writes the same")
  func paho5() throws {
    var will = MQTTConnect.Will(
      topic: "gone/paho", payload: Array("bye".utf8), qos: .atLeastOnce, isRetained: true)
    will.properties = MQTTProperties {
      $0.append(.contentType, "text/plain")
      $0.append(.willDelay, 5)
      $0.append(user: "k", "v")
    }
    let properties = MQTTProperties {
      $0.append(.sessionExpiry, 3600)
      $0.append(.receiveMaximum, 20)
      $0.append(.topicAliasMaximum, 10)
      $0.append(user: "a", "b")
      $0.append(.maximumPacketSize, 65536)
    }
    let everything = received("sensors/1", "21.5") {
      $0.append(.payloadFormat, 1)
      $0.append(.messageExpiry, 60)
      $0.append(.contentType, "json")
      $0.append(.responseTopic, "answer/here")
      $0.append(.correlationData, [1, 2])
      $0.append(.topicAlias, 2)
      $0.append(user: "x", "1")
      $0.append(user: "y", "2")
    }
    let subscribe = MQTTProperties {
      $0.append(.subscriptionIdentifier, 200)
      $0.append(user: "sluice-from", "last:100")
    }
    try expect(
      .v5,
      [
        (
          """
          105e00044d51545405ec001e171100000e1021001422000a26000161000162270001000000047061686f
          1903000a746578742f706c61696e18000000052600016b0001760009676f6e652f7061686f0003627965
          000475736572000470617373
          """,
          .connect(
            MQTTConnect(
              .v5, clientID: "paho", cleanStart: false, keepAlive: 30, will: will, username: "user",
              password: Array("pass".utf8), properties: properties))
        ),
        (
          """
          3042000973656e736f72732f31320101020000003c0300046a736f6e08000b616e737765722f68657265
          0900020102230002260001780001312600017900013232312e35
          """, everything
        ),
        (
          """
          823900011b0bc80126000b736c756963652d66726f6d00086c6173743a313030000973656e736f72732f231e
          000c2473686172652f672f612f2b01
          """,
          .subscribe(
            MQTTSubscribe(
              1,
              [
                MQTTSubscribe.Item(
                  "sensors/#",
                  MQTTSubscriptionOptions(
                    .exactlyOnce, noLocal: true, retainAsPublished: true, retainHandling: .sendIfNew)),
                MQTTSubscribe.Item("$share/g/a/+", MQTTSubscriptionOptions(.atLeastOnce)),
              ], properties: subscribe))
        ),
        ("a211000200000973656e736f72732f23000178", .unsubscribe(MQTTUnsubscribe(2, ["sensors/#", "x"]))),
        (
          "e00704051100000000",
          .disconnect(
            MQTTNotice(
              .disconnect, .disconnectWithWill, properties: MQTTProperties { $0.append(.sessionExpiry, 0) }))
        ),
      ])
  }

  private func expect(_ version: MQTTVersion, _ packets: [(hex: String, packet: OwnedPacket)]) throws {
    for (hex, packet) in packets {
      let bytes = [UInt8](hex: hex)
      #expect(try OwnedPacket.all(in: bytes, version, from: .client) == [packet])
      #expect(packet.encoded(version) == bytes)
    }
  }
}
