import SluiceAccess
import SluiceBroker
import SluiceIO
import SluiceWire
import Testing

@testable import SluiceDaemon

@Suite("What the log says of a broker's events")
struct EventLineTests {
  private let client = BrokerEvent.Client(
    connection: 7, name: "till 1", identity: "alice", peer: .host("192.0.2.1", port: 5000))
  private let who = "connection=7 identity=alice client=\"till 1\" peer=192.0.2.1:5000"

  private func text(_ event: BrokerEvent) -> String {
    let line = EventLine(event)
    let text = LogLine(time: 0, level: line.level, message: line.message, fields: line.fields)
      .rendered(as: .text)
    return String(text.dropFirst("1970-01-01T00:00:00.000Z ".count).dropLast())
  }

  @Test("a connection's life")
  func connections() {
    #expect(text(.opened(client)) == "debug   a client has connected \(who)")
    #expect(
      text(.closed(client, reason: "the client has closed it", code: nil, milliseconds: 12))
        == "info    a connection was closed \(who) cause=\"the client has closed it\" ms=12")
    #expect(
      text(.closed(client, reason: "nothing was heard", code: .keepaliveTimeout, milliseconds: 1))
        == "info    a connection was closed \(who) cause=\"nothing was heard\" code=keepalive-timeout ms=1")
  }

  @Test("who a client is")
  func authentication() {
    #expect(
      text(.authenticated(client, by: .token(key: "k1"), isRenewal: false))
        == "info    a client has authenticated \(who) action=authenticate outcome=done proof=token key=k1")
    #expect(
      text(.authenticated(client, by: .password, isRenewal: true))
        == "info    a client has renewed its credentials \(who) action=renew outcome=done proof=password")
    #expect(
      text(
        .notAuthenticated(
          client, claim: "bob", WireError(.authenticationFailed, "it isn't right"), isRenewal: false))
        == "warning a client failed to authenticate \(who) action=authenticate outcome=refused claim=bob code=authentication-failed cause=\"it isn't right\""
    )
    #expect(text(.expired(client)).hasPrefix("info    a client's credentials have expired \(who)"))
    #expect(text(.revoked(client)).contains("outcome=revoked"))
  }

  @Test("inboxes come and go with each client that makes requests, so they are for debugging only")
  func inboxes() {
    let events: [(String) -> BrokerEvent] = [
      { .topicCreated(self.client, topic: $0) }, { .topicEnded(self.client, topic: $0, failure: nil) },
      { .topicEnded(self.client, topic: $0, failure: .producerFailure) }, { .topicAbandoned(topic: $0) },
    ]
    for event in events {
      #expect(EventLine(event("_inbox.4711")).level == .debug)
      #expect(EventLine(event("inbox.4711")).level == .info)
    }
  }

  @Test("what clients do to topics")
  func topics() {
    #expect(text(.topicCreated(client, topic: "a")) == "info    a topic was created \(who) topic=a")
    #expect(text(.topicCreated(nil, topic: "a")) == "info    a topic was created topic=a")
    #expect(
      text(.topicEnded(client, topic: "a", failure: nil)) == "info    a topic has completed \(who) topic=a")
    #expect(
      text(.topicEnded(client, topic: "a", failure: .producerFailure))
        == "info    a topic has failed \(who) topic=a code=producer-failure")
    #expect(
      text(.administered(client, .deleteTopic, topic: "a", refusal: nil))
        == "info    a client has administered a topic \(who) action=delete-topic outcome=done topic=a")
    #expect(
      text(
        .administered(
          client, .moveCursor("c"), topic: "a", refusal: WireError(.unknownCursor, "there is none")))
        == "info    a client couldn't administer a topic \(who) action=move-cursor outcome=refused topic=a cursor=c code=unknown-cursor cause=\"there is none\""
    )
    #expect(
      text(.administered(client, .setTopic, topic: "a", refusal: nil))
        == "info    a client has administered a topic \(who) action=set-topic outcome=done topic=a")
    #expect(
      text(.administered(client, .trimTopic, topic: "a", refusal: nil))
        == "info    a client has administered a topic \(who) action=trim-topic outcome=done topic=a")
    #expect(
      text(.administered(client, .closeConnection(7), topic: "", refusal: nil))
        == "info    a client has administered a connection \(who) action=close-connection outcome=done target=7"
    )
    #expect(
      text(.administered(client, .drainNode("n1"), topic: "", refusal: nil))
        == "info    a client has administered the cluster \(who) action=drain-node outcome=done node=n1")
    #expect(
      text(
        .administered(
          client, .moveShard(3, node: "n2"), topic: "", refusal: WireError(.invalidSetting, "no")))
        == "info    a client couldn't administer the cluster \(who) action=move-shard outcome=refused shard=3 node=n2 code=invalid-setting cause=no"
    )
    #expect(
      text(.denied(client, action: "publish", topic: "a"))
        == "warning a client's request was denied \(who) action=publish outcome=denied topic=a")
  }

  @Test("what a limit turned away")
  func limits() {
    #expect(
      text(.refused(nil, peer: .host("::1", port: 1), WireError(.tooManyConnections, "too many")))
        == "warning a limit was reached peer=[::1]:1 code=too-many-connections cause=\"too many\"")
    #expect(
      text(.refused(client, peer: client.peer, WireError(.limitReached, "too many")))
        == "warning a limit was reached \(who) code=limit-reached cause=\"too many\"")
  }

  @Test("audited is what is about who clients are, what they may and administration")
  func audit() {
    let error = WireError(.authenticationFailed, "")
    let audited: [BrokerEvent] = [
      .authenticated(client, by: .password, isRenewal: false),
      .notAuthenticated(client, claim: "", error, isRenewal: false), .expired(client), .revoked(client),
      .denied(client, action: "publish", topic: "a"),
      .administered(client, .createTopic, topic: "a", refusal: nil),
    ]
    for event in audited { #expect(EventLine(event).isAudit) }
    let others: [BrokerEvent] = [
      .opened(client), .topicCreated(client, topic: "a"), .topicAbandoned(topic: "a"),
      .closed(client, reason: "", code: nil, milliseconds: 0),
      .refused(client, peer: client.peer, error), .memoryReached(used: 1, ceiling: 1),
      .deadLettersWait(topic: "a", group: "g", deadLetters: "d", error),
    ]
    for event in others { #expect(!EventLine(event).isAudit) }
  }

  @Test("a name that a client has chosen makes neither another line nor an endless one")
  func names() {
    let hostile = BrokerEvent.Client(
      connection: 1, name: "a\nb audit=true" + String(repeating: "c", count: 10_000), identity: "x y",
      peer: .unix("/tmp/s"))
    for format in [LogFormat.text, .json] {
      let event = EventLine(.opened(hostile))
      let line = LogLine(time: 0, level: event.level, message: event.message, fields: event.fields)
        .rendered(as: format)
      #expect(line.utf8.count < 700)
      #expect(line.count { $0 == "\n" } == 1)
    }
  }

  @Test("so many lines of a kind are written in a second, and the others counted")
  func budget() {
    var budget = LineBudget<String>()
    let verdicts = (0..<5).map { budget.spend(on: "a", atMost: 3, now: 1_000 + $0) }
    #expect(verdicts.map(\.isWritten) == [true, true, true, false, false])
    #expect(verdicts.map(\.isFirstLeftOut) == [false, false, false, true, false])
    #expect(budget.spend(on: "b", atMost: 3, now: 1_005).isWritten)
    #expect(budget.takeLeftOut().map(\.count) == [2])
    #expect(budget.takeLeftOut().isEmpty)
    #expect(!budget.spend(on: "a", atMost: 3, now: 1_999).isWritten)
    #expect(budget.spend(on: "a", atMost: 3, now: 2_000).isWritten)
    // The clock was set back.
    for _ in 0..<5 { _ = budget.spend(on: "a", atMost: 3, now: 2_000) }
    #expect(budget.spend(on: "a", atMost: 3, now: 500).isWritten)
  }

  @Test("audit lines are on where clients are asked, unless that is said otherwise")
  func setting() {
    var access = AccessSettings()
    #expect(!access.isAudited)
    access.files.users = "u"
    #expect(access.isAudited)
    access.audit = false
    #expect(!access.isAudited)
  }
}
