import Testing

/// Limits that the two sides of MQTT 5 set each other, with paho: topic aliases, receive maximum, packet sizes, and the demand of a lossless topic.
@Suite(
  .onItsOwnThread,
  .enabled(if: PythonClients.folder != nil, "scripts/door-clients.sh hasn't installed the clients"))
struct PahoFlowTests {
  private func run(_ program: String, options: String...) throws -> String {
    try PythonStage(options: options).run(PahoClient.prelude + program)
  }

  @Test func aClientsTopicAliasesStandForItsTopics() throws {
    let output = try run(
      """
      reader, writer = Client("reader"), Client("writer")
      print(writer.told.TopicAliasMaximum)
      reader.ask("a/+")
      for topic, alias in [("a/b", 1), ("a/c", 2), ("", 1), ("", 2), ("a/d", 1), ("", 1)]:
          writer.send(topic, "x", TopicAlias=alias)
      got = [reader.get() for _ in range(6)]
      print([m.topic for m in got], any(hasattr(m.properties, "TopicAlias") for m in got))
      writer.publish("a/e", "x", 1, properties=properties(PacketTypes.PUBLISH, {"TopicAlias": 3}))
      print(writer.end()[0])
      """, options: "--mqtt-topic-aliases", "2")
    #expect(output == "2\n['a/b', 'a/c', 'a/b', 'a/c', 'a/d', 'a/d'] False\n148\n")
  }

  @Test func theBrokersTopicAliasesAreThoseThatTheClientTakes() throws {
    let output = try run(
      """
      reader, plain, writer = Client("reader", TopicAliasMaximum=1), Client("plain"), Client("writer")
      for client in (reader, plain): client.ask("a/+")
      for topic in ["a/b", "a/b", "a/c", "a/b"]: writer.send(topic, "x")
      for client in (reader, plain):
          print([(m.topic, getattr(m.properties, "TopicAlias", 0)) for m in [client.get() for _ in range(4)]])
      """)
    // paho shows a topic as received, and leaves aliases to the program.
    #expect(
      output == """
        [('a/b', 1), ('', 1), ('a/c', 0), ('', 1)]
        [('a/b', 0), ('a/b', 0), ('a/c', 0), ('a/b', 0)]

        """)
  }

  /// The marker is published after all other messages, and arrives before those beyond the receive maximum.
  @Test(arguments: [1, 2]) func aClientsReceiveMaximumIsItsDemand(qos: Int) throws {
    let output = try run(
      """
      reader, writer = Client("reader", manual_ack=True, ReceiveMaximum=2), Client("writer")
      reader.ask("t", \(qos))
      reader.ask("marker", 0)
      for i in range(6): writer.send("t", str(i), \(qos))
      writer.send("marker", "marker")
      got = [reader.get() for _ in range(3)]
      print([m.payload.decode() for m in got])
      for m in got[:2]: reader.ack(m.mid, m.qos)
      for _ in range(4):
          m = reader.get()
          print(m.payload.decode())
          reader.ack(m.mid, m.qos)
      """)
    #expect(output == "['0', '1', 'marker']\n2\n3\n4\n5\n")
  }

  /// paho exceeds the receive maximum: messages that it publishes while it handles another one are sent in one piece.
  @Test func aClientThatExceedsTheBrokersReceiveMaximumIsDisconnected() throws {
    let output = try run(
      """
      writer = Client("writer")
      print(writer.told.ReceiveMaximum)
      for _ in range(10): writer.send("t", "x", 2)
      def burst(client, user, m):
          for _ in range(3): writer.publish("t", "y", 2)
      writer.on_message = burst
      writer.ask("go", 0)
      writer.publish("go", "now")
      print(writer.end()[0])
      """, options: "--mqtt-receive-maximum", "2")
    #expect(output == "2\n147\n")
  }

  @Test func packetsThatAreLongerThanAClientTakesAreNotSentToIt() throws {
    let output = try run(
      """
      reader, all, writer = Client("reader", MaximumPacketSize=100), Client("all"), Client("writer")
      for client in (reader, all): client.ask("t")
      for payload in ["x" * 200, "short", "y" * 95, "last"]: writer.send("t", payload)
      print([reader.payload() for _ in range(2)], [len(all.payload()) for _ in range(4)])
      """)
    #expect(output == "['short', 'last'] [200, 5, 95, 4]\n")
  }

  @Test func aClientThatSendsALongerPacketThanTheBrokerTakesIsDisconnected() throws {
    let output = try run(
      """
      writer = Client("writer")
      print(writer.told.MaximumPacketSize)
      print(writer.send("t", "x" * 1000)[0])
      writer.publish("t", "x" * 1100, 1)
      print(writer.end()[0])
      """, options: "--mqtt-packet", "1KiB")
    #expect(output == "1024\n0\n149\n")
  }

  /// The topic accepts as many records as its subscriber demands; the others wait at the publisher, at each QoS.
  @Test(arguments: [0, 1, 2]) func aLosslessTopicHoldsItsPublisher(qos: Int) throws {
    let output = try run(
      """
      sluice("topic", "create", "jobs", "--flow", "lossless", "--buffer-records", "0", "--without-subscribers", "hold")
      writer = Client("writer")
      for i in range(5): writer.publish("jobs", "job %d" % i, \(qos))
      # The broker has read them all, and acknowledges none.
      print(writer.ask("other")[0], writer.published.qsize() if \(qos) else 0)
      print(sluice("sub", "jobs", "--count", "2"), end="")
      print(sluice("sub", "jobs", "--from", "offset:2", "--count", "3"), end="")
      print([writer.published.get(timeout=60)[0] for _ in range(5)])
      """)
    #expect(
      output == "[1] 0\n" + (0..<5).map { "job \($0)\n" }.joined() + "[0, 0, 0, 0, 0]\n")
  }
}
