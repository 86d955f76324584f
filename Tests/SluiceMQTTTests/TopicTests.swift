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
    "levels that one side doesn't allow have escapes on the other",
    arguments: [
      ("zigbee2mqtt/Living Room", "zigbee2mqtt.Living%20Room"), ("fw/1.2.3", "fw.1%2E2%2E3"),
      ("spBv1.0/g/NBIRTH/n", "spBv1%2E0.g.NBIRTH.n"), ("$SYS/broker/uptime", "%24SYS.broker.uptime"),
      ("a/$x", "a.$x"), ("/a", "%00.a"), ("a/", "a.%00"), ("a//b", "a.%00.b"), ("/", "%00.%00"),
      ("a/*", "a.%2A"), ("a/>", "a.%3E"), ("a\u{1}", "a%01"), ("a\u{2028}", "a%E2%80%A8"),
      ("cafe\u{301}", "%ucafe%CC%81"), ("\u{212A}", "%u%E2%84%AA"), ("50%", "50%"), ("a%20b", "a%2520b"),
      ("a%2520b", "a%252520b"), ("%00", "%2500"), ("a%2Fb", "a/b"), ("a%252Fb", "a%2Fb"),
      ("x%2By", "x+y"), ("%23", "#"), ("%2e", "%2e"), ("a%24", "a%24"), ("%24", "%2524"),
      ("\u{928}\u{92E}\u{938}\u{94D}\u{924}\u{947}", "\u{928}\u{92E}\u{938}\u{94D}\u{924}\u{947}"),
    ])
  func escapes(_ name: String, _ broker: String) throws {
    #expect(try Array(MQTTTopicName.brokerName(name).utf8) == Array(broker.utf8))
    #expect(Array(MQTTTopicName.name(ofBroker: broker).utf8) == Array(name.utf8))
  }

  @Test(
    "an empty name, and one for which the broker would need too many bytes, are refused with a reason",
    arguments: ["", String(repeating: "x", count: 256), String(repeating: " ", count: 86)])
  func refusedNames(_ name: String) {
    do {
      _ = try MQTTTopicName.brokerName(name)
      Issue.record("it was taken")
    } catch {
      #expect(error.reason == .topicNameInvalid)
      #expect(error.message.contains(name.isEmpty ? "is empty" : "the limit is 255"))
    }
  }

  @Test("every name of MQTT has a name of the broker that no other has, and the reverse")
  func bijection() throws {
    var random = SeededRandom.printed()
    var others = 0
    for _ in 0..<100_000 {
      let name = Self.text(of: Self.levelPieces, between: "/", &random)
      guard !name.isEmpty else { continue }
      let broker = try MQTTTopicName.brokerName(name)
      if broker != name { others += 1 }
      #expect(
        Array(MQTTTopicName.name(ofBroker: broker).utf8) == Array(name.utf8), "\(name.debugDescription)")
      let own = Self.text(of: Self.tokenPieces, between: ".", &random)
      guard own != "%00", (try? TopicName.validate(own)) != nil else { continue }
      let foreign = MQTTTopicName.name(ofBroker: own)
      #expect(try Array(MQTTTopicName.brokerName(foreign).utf8) == Array(own.utf8), "\(own.debugDescription)")
      #expect(!foreign.utf8.contains { "+#\0".utf8.contains($0) })
    }
    #expect(others > 50_000)
  }

  /// Texts that could be mistaken for escapes, and characters that compose.
  private static let pieces = [
    "a", "e", "u", "%", "%", "25", "00", "2", "5", "20", "2E", "2F", "24", "3E", "23", "CC", "81", "E2%80%A8",
    "%CC%81", "%20", "%u", "%00", "$", "é", "\u{301}", "\u{338}", "中",
  ]
  private static let levelPieces =
    pieces + ["", " ", ".", "*", ">", "\u{1}", "\u{A0}", "\u{2000}", "\u{2028}"]
  private static let tokenPieces = pieces + ["/", "+", "#"]

  private static func text(
    of pieces: [String], between separator: String, _ random: inout SeededRandom
  ) -> String {
    (0..<Int.random(in: 1...3, using: &random)).map { _ in
      (0..<Int.random(in: 0...5, using: &random)).map { _ in pieces.randomElement(using: &random)! }.joined()
    }.joined(separator: separator)
  }

  @Test(
    "filters become patterns",
    arguments: [
      ("a/b", ["a.b"]), ("#", [">"]), ("+", ["*"]), ("a/#", ["a", "a.>"]), ("a/+/b", ["a.*.b"]),
      ("+/#", ["*", "*.>"]), ("a/+/#", ["a.*", "a.*.>"]), ("$share/g/a/#", ["a", "a.>"]),
      ("a.b", ["a%2Eb"]), ("/a", ["%00.a"]), ("$SYS/#", ["%24SYS", "%24SYS.>"]), ("a/*/+", ["a.%2A.*"]),
      ("Living Room/#", ["Living%20Room", "Living%20Room.>"]), ("+/", ["*.%00"]),
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

  @Test("random filters match as a naive matcher does, and as their patterns do in the broker")
  func model() throws {
    var random = SeededRandom.printed()
    var found = 0
    for _ in 0..<100_000 {
      let levels = (0..<Int.random(in: 1...4, using: &random)).map { index in
        ["a", "b b", "+", "+", "", "1.5", index == 0 ? "$x" : "c"].randomElement(using: &random)!
      }
      let isOpen = Bool.random(using: &random)
      let text = (levels + (isOpen ? ["#"] : [])).joined(separator: "/")
      guard !text.isEmpty else { continue }
      let filter = try MQTTTopicFilter(text)
      let name = (0..<Int.random(in: 1...5, using: &random)).map { index in
        ["a", "b b", "", "1.5", index == 0 ? "$x" : "c"].randomElement(using: &random)!
      }
      let isReserved = name[0].hasPrefix("$") && (levels[0] == "+" || isOpen && levels.isEmpty)
      let fits = isOpen ? name.count >= levels.count : name.count == levels.count
      let expected = !isReserved && fits && zip(levels, name).allSatisfy { $0 == "+" || $0 == $1 }
      if expected { found += 1 }
      let topic = name.joined(separator: "/")
      guard !topic.isEmpty else { continue }
      #expect(filter.matches(topic) == expected, "\(text) \(topic)")
      let broker = try MQTTTopicName.brokerName(topic)
      let patterns = try filter.brokerPatterns().map { try TopicPattern($0) }
      let selected = filter.isFor(broker: broker) ? patterns.count { $0.selects(broker) } : 0
      #expect(selected == (expected ? 1 : 0), "\(text) \(topic)")
    }
    #expect(found > 2_000)
  }
}
