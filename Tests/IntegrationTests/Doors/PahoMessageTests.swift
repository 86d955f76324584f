import Testing

/// Which messages a client of MQTT 5 gets, with paho: the options of subscriptions, the end of a topic, and names that the broker maps.
@Suite(
  .onItsOwnThread,
  .enabled(if: PythonClients.folder != nil, "scripts/door-clients.sh hasn't installed the clients"))
struct PahoMessageTests {
  private func run(_ program: String) throws -> String {
    try PythonStage().run(PahoClient.prelude + program)
  }

  /// Each line is a client, or one more SUBSCRIBE of it, with the messages that arrive before the marker.
  @Test func retainHandlingSaysWhenRetainedMessagesCome() throws {
    let output = try run(
      """
      writer = Client("w")
      writer.send("state/x", "kept", retain=True)
      def show(client, handling):
          client.ask("state/#", options=SubscribeOptions(qos=1, retainHandling=handling))
          writer.send("state/y", "marker")
          got = []
          while "marker" not in got: got.append(client.payload())
          print(handling, got)
      for handlings in [(0, 0), (1, 1), (2, 2, 0)]:
          client = Client("c")
          for handling in handlings: show(client, handling)
      """)
    #expect(
      output == """
        0 ['kept', 'marker']
        0 ['kept', 'marker']
        1 ['kept', 'marker']
        1 ['marker']
        2 ['marker']
        2 ['marker']
        0 ['kept', 'marker']

        """)
  }

  @Test func retainAsPublishedKeepsTheMark() throws {
    let output = try run(
      """
      plain, exact, writer = Client("plain"), Client("exact"), Client("w")
      plain.ask("state/x")
      exact.ask("state/x", options=SubscribeOptions(qos=1, retainAsPublished=True))
      writer.send("state/x", "kept", retain=True)
      writer.send("state/x", "passing")
      for client in (plain, exact): print([(m.payload.decode(), m.retain) for m in (client.get(), client.get())])
      # What was retained before has the mark in any case.
      late = Client("late")
      late.ask("state/x")
      print(late.get().retain)
      """)
    #expect(
      output == """
        [('kept', False), ('passing', False)]
        [('kept', True), ('passing', False)]
        True

        """)
  }

  @Test func noLocalLeavesOutTheClientsOwnMessages() throws {
    let output = try run(
      """
      one, other = Client("one"), Client("other")
      one.ask("chat/#", options=SubscribeOptions(qos=1, noLocal=True))
      other.ask("chat/#")
      for client, text in [(one, "from one"), (other, "from the other"), (one, "again"), (other, "last")]:
          client.send("chat/room", text)
      print([one.payload() for _ in range(2)])
      print([other.payload() for _ in range(4)])
      """)
    #expect(
      output == """
        ['from the other', 'last']
        ['from one', 'from the other', 'again', 'last']

        """)
  }

  @Test(arguments: [0, 1]) func theEndOfATopicComesAsAMessageWithAProperty(qos: Int) throws {
    let output = try run(
      """
      reader = Client("r")
      reader.ask("build/+", \(qos), SubscriptionIdentifier=7)
      sluice("pub", "build.a", "--complete", lines="compiled\\n")
      sluice("pub", "build.b", "--fail", "the disk is full", lines="compiled\\n")
      got = [reader.get() for _ in range(4)]
      for m in sorted(got, key=lambda m: m.topic):
          print(m.topic, m.payload, m.properties.SubscriptionIdentifier, getattr(m.properties, "UserProperty", []))
      """)
    #expect(
      output == """
        build/a b'compiled' [7] []
        build/a b'' [7] [('sluice-ended', 'finished')]
        build/b b'compiled' [7] []
        build/b b'' [7] [('sluice-ended', 'failure'), ('sluice-code', '200'), ('sluice-message', 'the disk is full')]

        """)
  }

  /// Names used by real devices and bridges: spaces, dots, empty levels, the broker's wildcards.
  @Test func namesThatTheBrokerWritesInAnotherWayComeAsTheyWereSent() throws {
    let output = try run(
      """
      names = ["zigbee2mqtt/Living Room", "spBv1.0/g/NBIRTH/n", "/devices/wb/on", "flow//end", "a/b/", "x/*", "x/>"]
      reader = Client("r")
      reader.ask("#", 1)
      writer = Client("w")
      for name in names: writer.send(name, "x")
      print([reader.get().topic for _ in names] == names)
      for name in names + ["$aws/things"]:
          one = Client("one")
          one.ask(name, 1)
          writer.send(name, "y")
          print(one.get().topic)
      """)
    #expect(
      output == """
        True
        zigbee2mqtt/Living Room
        spBv1.0/g/NBIRTH/n
        /devices/wb/on
        flow//end
        a/b/
        x/*
        x/>
        $aws/things

        """)
  }

  @Test func namesThatAreTooLongForTheBrokerAreRefusedWithTheReason() throws {
    let output = try run(
      """
      client = Client("c")
      long = "a" * 256
      reason, told = client.send(long, "x")
      print(reason, told.ReasonString.split(":")[-1])
      reasons, told = client.ask(long)
      print(reasons, told.ReasonString.split(":")[-1])
      # At QoS 0 there is no acknowledgement that could say so: the connection goes on.
      client.publish(long, "x")
      client.published.get(timeout=60)
      print(client.send("fine", "x")[0])
      """)
    #expect(
      output == """
        144  it has 256 bytes; the limit is 255
        [143]  it has 256 bytes; the limit is 255
        0

        """)
  }
}
