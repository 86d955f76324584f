import Testing

/// Sessions of MQTT 5, with paho: which clients have one, takeovers, and delivery after the client was away.
@Suite(
  .onItsOwnThread,
  .enabled(if: PythonClients.folder != nil, "scripts/door-clients.sh hasn't installed the clients"))
struct PahoSessionTests {
  private func run(_ program: String) throws -> String {
    try PythonStage().run(PahoClient.prelude + program)
  }

  @Test func aClientWithTheSameIdentifierTakesTheSessionOver() throws {
    let output = try run(
      """
      first = Client("c", SessionExpiryInterval=3600)
      first.ask("jobs/+")
      second = Client("c", clean=False, SessionExpiryInterval=3600)
      reason, told = first.end()
      print(reason, told.ReasonString)
      print(second.is_present)
      Client("w").send("jobs/a", "one")
      print(second.payload(), first.messages.qsize())
      # With a clean start nothing is left of it.
      third = Client("c", SessionExpiryInterval=3600)
      print(second.end()[0], third.is_present)
      Client("w").send("jobs/a", "two")
      third.ask("jobs/+")
      Client("w").send("jobs/a", "three")
      print(third.payload())
      """)
    #expect(
      output == """
        142 another connection has the same client identifier
        True
        one 0
        142 False
        three

        """)
  }

  @Test func aWillWaitsForItsDelayOrForTheEndOfTheSession() throws {
    let output = try run(
      """
      watcher = Client("watcher")
      watcher.ask("gone/#")
      def doomed(name, delay): return Client(name, will=("gone/" + name, "dead", delay), SessionExpiryInterval=7200)
      slow, prompt = doomed("slow", 3600), doomed("prompt", 0)
      slow.lose()
      prompt.lose()
      print(watcher.get().topic)
      # A clean start ends the session, and with it the delay.
      Client("slow")
      print(watcher.get().topic)
      # A client that is back in time has no will any more.
      doomed("back", 3600).lose()
      back = Client("back", clean=False, SessionExpiryInterval=7200)
      print(back.is_present)
      back.disconnect()
      back.end()
      Client("back")
      doomed("late", 1).lose()
      will = watcher.get()
      print(will.topic, will.payload, hasattr(will.properties, "WillDelayInterval"))
      """)
    #expect(output == "gone/prompt\ngone/slow\nTrue\ngone/late b'dead' False\n")
  }

  @Test func aClientWithoutAnIdentifierIsGivenOne() throws {
    let output = try run(
      """
      first, second = Client(SessionExpiryInterval=3600), Client(SessionExpiryInterval=3600)
      names = [c.told.AssignedClientIdentifier for c in (first, second)]
      print(len(set(names)), all(names), hasattr(Client("own").told, "AssignedClientIdentifier"))
      first.ask("t")
      first.disconnect()
      first.end()
      Client("w").send("t", "for the one that was assigned")
      again = Client(names[0], clean=False, SessionExpiryInterval=3600)
      print(again.is_present, again.payload())
      """)
    #expect(output == "2 True False\nTrue for the one that was assigned\n")
  }

  @Test func enhancedAuthenticationIsRefusedWithAReason() throws {
    let output = try run(
      """
      client = Client("c", AuthenticationMethod="SCRAM-SHA-1", AuthenticationData=b"client first")
      print(client.reason, client.told.ReasonString)
      """)
    #expect(
      output
        == "140 enhanced authentication isn't served; use a user name and a password, a token as password, or a certificate\n"
    )
  }

  @Test func aMessageThatHasExpiredDoesNotCome() throws {
    let output = try run(
      """
      away = Client("away", SessionExpiryInterval=3600)
      away.ask("t")
      away.disconnect()
      away.end()
      writer = Client("w")
      writer.send("t", "short", MessageExpiryInterval=1)
      writer.send("t", "long", MessageExpiryInterval=3600)
      writer.send("t", "without end")
      writer.send("t", "retained", retain=True, MessageExpiryInterval=1)
      time.sleep(2.1)
      def show(m): print(m.payload.decode(), getattr(m.properties, "MessageExpiryInterval", 0) in range(1, 3599), hasattr(m.properties, "MessageExpiryInterval"))
      # Neither to a session that was away, nor to a client that replays the topic, nor as a retained message.
      away = Client("away", clean=False, SessionExpiryInterval=3600)
      reader = Client("reader")
      reader.ask("t", UserProperty=("sluice-from", "earliest"))
      writer.send("t", "last")
      for client in (away, reader):
          for _ in range(3): show(client.get())
      """)
    let messages = "long True True\nwithout end False False\nlast False False\n"
    #expect(output == messages + messages)
  }
}
