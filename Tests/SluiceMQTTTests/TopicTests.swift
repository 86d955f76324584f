import SluiceMQTT
import SluiceWire
import TestSupport
import Testing

@Suite("MQTT topics")
struct TopicTests {
  @Test(
    "names are the broker's names with other separators",
    arguments: [("a", "a"), ("a/b/c", "a.b.c"), ("Ä/ö", "Ä.ö"), ("_inbox/x", "_inbox.x")])
  func names(_ name: String, _ broker: String) throws {
    #expect(try MQTTTopicName.brokerName(name) == broker)
    #expect(MQTTTopicName.name(ofBroker: broker) == name)
  }

  @Test(
    "names that the broker can't have are refused with a reason",
    arguments: [
      "", "/", "/a", "a/", "a//b", "a.b", "cafe\u{301}", "a/\u{212A}", "a b", "a/*", "a/>", "$SYS/x",
      "a\u{1}", "a\u{2028}",
      String(repeating: "x", count: 256),
    ])
  func refusedNames(_ name: String) {
    do {
      _ = try MQTTTopicName.brokerName(name)
      Issue.record("it was taken")
    } catch {
      #expect(error.reason == .topicNameInvalid)
      #expect(error.message.utf8.count > 20)
    }
  }

  @Test(
    "names of the broker that MQTT can't express have no topic name", arguments: ["a/b", "a+.b", "#", ""])
  func inexpressible(_ name: String) {
    #expect(MQTTTopicName.name(ofBroker: name) == nil)
  }

  @Test(
    "filters become patterns",
    arguments: [
      ("a/b", ["a.b"]), ("#", [">"]), ("+", ["*"]), ("a/#", ["a", "a.>"]), ("a/+/b", ["a.*.b"]),
      ("+/#", ["*", "*.>"]), ("a/+/#", ["a.*", "a.*.>"]), ("$share/g/a/#", ["a", "a.>"]),
    ] as [(String, [String])])
  func patterns(_ filter: String, _ patterns: [String]) throws {
    #expect(try MQTTTopicFilter(filter).brokerPatterns() == patterns)
    #expect(try MQTTTopicFilter(filter).description == filter)
  }

  @Test(
    "filters that aren't valid are refused",
    arguments: [
      "", "a#", "a/#/b", "#/a", "a/b#", "a+", "+a", "a/+b/c", "$share", "$share/g", "$share//a", "$share/g/",
      "$share/g+/a", "$share/#/a", "$share/g/a#",
    ])
  func refusedFilters(_ filter: String) {
    do {
      _ = try MQTTTopicFilter(filter)
      Issue.record("it was taken")
    } catch { #expect(error.reason == .topicFilterInvalid) }
  }

  @Test(
    "filters that no pattern can express are refused",
    arguments: ["a.b", "/a", "a//b", "a/", "$SYS/#", "a/*", ">", "a b", "+/e\u{301}"])
  func refusedPatterns(_ filter: String) throws {
    let filter = try MQTTTopicFilter(filter)
    do {
      _ = try filter.brokerPatterns()
      Issue.record("it was taken")
    } catch { #expect(error.reason == .topicFilterInvalid) }
  }

  /// The examples of MQTT 5, section 4.7.
  @Test(
    "filters match what the standard says",
    arguments: [
      ("sport/tennis/player1/#", "sport/tennis/player1", true),
      ("sport/tennis/player1/#", "sport/tennis/player1/ranking", true),
      ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true), ("sport/#", "sport", true),
      ("#", "anything/at/all", true), ("sport/tennis/+", "sport/tennis/player1", true),
      ("sport/tennis/+", "sport/tennis/player1/ranking", false), ("sport/+", "sport", false),
      ("sport/+", "sport/", true), ("+/+", "/finance", true), ("/+", "/finance", true),
      ("+", "/finance", false), ("#", "$SYS/x", false), ("+/monitor/Clients", "$SYS/monitor/Clients", false),
      ("$SYS/#", "$SYS/x", true), ("$SYS/monitor/+", "$SYS/monitor/Clients", true),
      ("ACCOUNTS", "Accounts", false),
      ("a", "/a", false), ("\u{e9}", "e\u{301}", false),
    ] as [(String, String, Bool)])
  func matching(_ filter: String, _ name: String, _ matches: Bool) throws {
    #expect(try MQTTTopicFilter(filter).matches(name) == matches)
  }

  @Test("random filters match as a model does, and as their patterns do in the broker")
  func model() throws {
    var random = SeededRandom.printed()
    var found = 0
    for _ in 0..<5000 {
      let levels = (0..<Int.random(in: 1...4, using: &random)).map { _ in
        ["a", "b", "+", "+"].randomElement(using: &random)!
      }
      let isOpen = Bool.random(using: &random)
      let filter = try MQTTTopicFilter((levels + (isOpen ? ["#"] : [])).joined(separator: "/"))
      let name = (0..<Int.random(in: 1...5, using: &random)).map { _ in
        ["a", "b"].randomElement(using: &random)!
      }
      let expected =
        isOpen
        ? name.count >= levels.count && zip(levels, name).allSatisfy { $0 == "+" || $0 == $1 }
        : name.count == levels.count && zip(levels, name).allSatisfy { $0 == "+" || $0 == $1 }
      if expected { found += 1 }
      let text = name.joined(separator: "/")
      #expect(filter.matches(text) == expected)
      let broker = try MQTTTopicName.brokerName(text)
      let patterns = try filter.brokerPatterns().map { try TopicPattern($0) }
      #expect(patterns.filter { $0.selects(broker) }.count == (expected ? 1 : 0))
    }
    #expect(found > 100)
  }
}
