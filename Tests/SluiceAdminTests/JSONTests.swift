import SluiceAccess
import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceWire
import Testing

@testable import SluiceAdmin

@Suite struct JSONTests {
  @Test func numbersThatWouldBeRoundedAreStrings() {
    #expect(JSON.exact(1 << 53).description == "9007199254740992")
    #expect(JSON.exact((1 << 53) + 1).description == "\"9007199254740993\"")
    #expect(JSON.limit(.max).description == "null")
    #expect(JSON.limit(7).description == "7")
    #expect(JSON.seconds(milliseconds: 1_005).description == "1.005")
    #expect(JSON.seconds(milliseconds: 12).description == "0.012")
  }

  private var topic: TopicSnapshot {
    var topic = TopicSnapshot("orders.\"eu\"") { topic in
      topic.summary.ending = .failure(code: ErrorCode(rawValue: 7), message: "it\nbroke")
      topic.summary.subscriptions = 2
      topic.summary.publications = 1
      topic.settings.flow = .lossless
      topic.settings.replayRecords = TopicSettings.unlimited
      topic.outstanding = nil
      topic.heldUp = 1_500
      topic.holds = [
        TopicInfo.Hold(reason: .subscribers, milliseconds: 1_500, lastMinute: 25, lastFiveMinutes: 5)
      ]
    }
    func subscription(_ connection: UInt64, granted: UInt64, sent: UInt64, holding: UInt64)
      -> SubscriptionSnapshot
    {
      SubscriptionSnapshot(
        info: TopicInfo.Subscription(
          connection: connection, client: "sub", stream: 1, state: .live, nextOffset: 9, granted: granted,
          sent: sent,
          holding: holding, limit: holding > 0 ? .buffer : .none, lastMinute: UInt16(holding / 5),
          lastFiveMinutes: UInt16(holding / 10)), identity: "alice", lag: 4,
        blocked: connection == 2 ? 5_000 : 0)
    }
    topic.subscriptions = [
      subscription(1, granted: .max, sent: 9, holding: 0),
      subscription(2, granted: 10, sent: 8, holding: 1_500),
    ]
    topic.publications = [
      PublicationSnapshot(
        info: TopicInfo.Publication(
          connection: 3, client: "pub", stream: 2, granted: 20, received: 20, waiting: 1_500),
        identity: "bob", door: .mqtt)
    ]
    return topic
  }

  @Test func aTopicSaysWhoHoldsItUp() {
    let text = TopicJSON.object(topic).description
    #expect(text.hasPrefix("{\"name\":\"orders.\\\"eu\\\"\",\"epoch\":1,\"state\":\"failed\""))
    #expect(text.contains("\"failure\":{\"code\":7,\"message\":\"it\\nbroke\"}"))
    #expect(text.contains("\"outstanding\":null"))
    #expect(text.contains("\"heldUpSeconds\":1.500"))
    #expect(text.contains("\"holder\":{\"connection\":2,"))
    #expect(
      text.contains(
        "\"blocked\":true,\"blockedSeconds\":5.000,\"starvedSeconds\":0.000,\"lagSeconds\":0.000,\"slowness\":\"\",\"slowSeconds\":0.000,\"holdingLimit\":\"buffer\",\"heldLastMinute\":0.300,\"heldLastFiveMinutes\":0.150}"
      ))
    #expect(
      text.contains(
        "\"holds\":[{\"reason\":\"subscribers\",\"holdingSeconds\":1.500,\"heldLastMinute\":0.025,\"heldLastFiveMinutes\":0.005}]"
      ))
    #expect(!text.contains("settings"))
    #expect(!TopicJSON.object(TopicSnapshot("a")).description.contains("holder"))
  }

  @Test func detailsHaveStreamsAndSettings() {
    let text = TopicJSON.detailed(topic).description
    #expect(text.contains("\"replay-records\":\"everything\""))
    #expect(text.contains("\"flow\":\"lossless\""))
    #expect(
      text.contains(
        "\"granted\":null,\"sent\":9,\"outstanding\":null,\"holdingSeconds\":0.000,\"blocked\":false"))
    #expect(
      text.contains("\"granted\":10,\"sent\":8,\"outstanding\":2,\"holdingSeconds\":1.500,\"blocked\":true"))
    #expect(text.contains("\"identity\":\"alice\",\"door\":\"native\","))
    #expect(text.contains("\"identity\":\"bob\",\"door\":\"mqtt\","))
    #expect(text.contains("\"granted\":20,\"received\":20,\"open\":0,\"waitingSeconds\":1.500"))
  }

  @Test func detailsHaveTheDefaultsOfTheirStorage() {
    var durable = TopicSnapshot("a")
    durable.summary.storage = .durable
    #expect(TopicJSON.detailed(topic).description.contains("\"defaultSettings\":{"))
    #expect(TopicJSON.detailed(TopicSnapshot("a")).description.contains("\"replay-bytes\":\"64MiB\""))
    #expect(!TopicJSON.detailed(durable).description.contains("\"replay-bytes\":\"64MiB\""))
  }

  @Test func theBrokerHasANameAndAddresses() {
    var broker = BrokerIdentity(version: "1")
    (broker.host, broker.addresses) = ("m", [.host("127.0.0.1", port: 7420), .unix("/run/s")])
    let text = BrokerJSON.object(BrokerSnapshot(), of: broker).description
    #expect(
      text.contains(
        "\"host\":\"m\",\"addresses\":[\"127.0.0.1:7420\",\"unix:/run/s\"],\"authenticatesClients\":false"))
  }

  @Test func settingsAreMarkedWhenTheyDifferFromTheirDefault() {
    func text(_ value: String?, _ standard: String?) -> String {
      SettingsJSON.list([
        AppliedSetting(name: "n", section: "limits", value: value, standard: standard, help: "h")
      ]).description
    }
    #expect(
      text("2", "1")
        == "{\"settings\":[{\"name\":\"n\",\"section\":\"limits\",\"value\":\"2\",\"default\":\"1\",\"changed\":true,\"help\":\"h\"}]}"
    )
    #expect(text("1", "1").contains("\"changed\":false"))
    #expect(text(nil, nil).contains("\"value\":null,\"default\":null,\"changed\":false"))
    #expect(text("/data", nil).contains("\"changed\":true"))
  }

  @Test func usersAreListedByNameWithoutTheirHashes() throws {
    var policy = AccessPolicy()
    policy.users = ["alice": try #require(PasswordHash(of: "open sesame"))]
    policy.permissions["bob"] = Permissions([.init([.publish, .create], on: try TopicPattern("jobs.>"))])
    policy.permissions["carol"] = Permissions([.init(.all, on: try TopicPattern(">"))])
    policy.commonPermissions = Permissions([.init(.subscribe, on: try TopicPattern("public"))])
    let all = AccessJSON.list(policy, filter: "", limit: 2).description
    #expect(
      all
        == "{\"identities\":[{\"name\":\"alice\",\"password\":true,\"permissions\":[]},{\"name\":\"bob\",\"password\":false,\"permissions\":[{\"pattern\":\"jobs.>\",\"rights\":[\"publish\",\"create\"]}]}],\"count\":3,\"selected\":3,\"everyIdentity\":[{\"pattern\":\"public\",\"rights\":[\"subscribe\"]}],\"tokenKeys\":[],\"certificatesMustBeListed\":false}"
    )
    let some = AccessJSON.list(policy, filter: "CAR", limit: 2).description
    #expect(some.contains("\"name\":\"carol\"") && some.contains("\"count\":3,\"selected\":1"))
  }

  private func payload(_ bytes: [UInt8]) -> String {
    let record = RecordSnapshot(offset: 1, time: 2, key: nil, headers: [], payload: bytes)
    return RecordJSON.object(record, limit: 8).description
  }

  @Test func whatIsTextIsShownAsText() {
    #expect(payload(Array("hé\n".utf8)).hasSuffix("\"payload\":{\"size\":4,\"text\":\"hé\\n\"}}"))
    #expect(payload([]).hasSuffix("\"payload\":{\"size\":0,\"text\":\"\"}}"))
    #expect(payload([0x00, 0xFF]).hasSuffix("\"payload\":{\"size\":2,\"hex\":\"00ff\"}}"))
    #expect(payload([0x1B, 0x5B]).contains("\"hex\":\"1b5b\""))
  }

  @Test func whatIsLongIsCutBetweenCharacters() {
    #expect(payload(Array("1234567é9".utf8)).contains("\"size\":10,\"cut\":true,\"text\":\"1234567\""))
    #expect(payload([UInt8](repeating: 0xC3, count: 9)).contains("\"hex\":\"c3c3c3c3c3c3c3c3\""))
  }

  @Test func aRecordHasItsKeyAndHeaders() {
    let record = RecordSnapshot(
      offset: 1 << 60, time: 1_700_000_000_000, key: [1],
      headers: [.init(name: Array("kind".utf8), value: Array("new".utf8))], payload: [])
    let text = RecordJSON.object(record, limit: 8).description
    #expect(
      text.contains(
        "\"offset\":\"1152921504606846976\",\"time\":1700000000000,\"key\":{\"size\":1,\"hex\":\"01\"}"))
    #expect(text.contains("\"headers\":[{\"size\":3,\"text\":\"new\",\"name\":\"kind\"}]"))
  }

  @Test func watchersGetWhatHasChanged() {
    var rows = EventRows(limit: 2)
    var snapshot = BrokerSnapshot()
    snapshot.topics = [TopicSnapshot("a"), TopicSnapshot("b"), TopicSnapshot("c")]
    snapshot.topicCount = 3
    let first = rows.update(snapshot, of: BrokerIdentity(version: "1"))
    #expect(first.changes.contains("\"name\":\"a\"") && first.changes.contains("\"name\":\"b\""))
    #expect(!first.changes.contains("\"name\":\"c\""))
    #expect(first.changes.contains("\"omitted\":1"))
    snapshot.topics = [TopicSnapshot("b") { $0.lag = 1 }]
    let second = rows.update(snapshot, of: BrokerIdentity(version: "1"))
    #expect(second.changes.contains("\"topics\":[{\"name\":\"b\""))
    #expect(second.changes.contains("\"gone\":[\"a\"]"))
    let third = rows.update(snapshot, of: BrokerIdentity(version: "1"))
    #expect(third.changes.contains("\"all\":false") && third.changes.contains("\"topics\":[],\"gone\":[]"))
    #expect(third.all().contains("\"all\":true") && third.all().contains("\"topics\":[{\"name\":\"b\""))
    #expect(third.changes.hasPrefix("event: sample\ndata: {") && third.changes.hasSuffix("}\n\n"))
    #expect(third.changes.split(separator: "\n").count == 2)
  }
}
