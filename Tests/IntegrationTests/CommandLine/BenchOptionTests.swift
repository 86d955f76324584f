import SluiceWire
import TestSupport
import Testing

/// `sluice bench`: its load on the broker, and its report.
@Suite(.onItsOwnThread) struct BenchOptionTests {
  private let broker: BrokerProcess

  init() throws {
    broker = try BrokerProcess()
  }

  @Test func theFiguresAreOfWhatWasAskedFor() throws {
    let process = try broker.run(
      "bench", "--size", "16B", "--records", "1k", "--publishers", "2", "--subscribers", "3", "--demand",
      "10",
      "--rate", "1k", "--for", "50ms", "--json")
    let figures = try object(process.standardOutput.text)
    #expect(figures["size"] as? Int == 16 && figures["records"] as? Int == 1_000)
    #expect(figures["publishers"] as? Int == 2 && figures["subscribers"] as? Int == 3)
    #expect((figures["broker"] as? String)?.hasPrefix("\(broker.address) (sluiced") == true)
    #expect(figures["published_per_second"] as? Int ?? 0 > 0)
    #expect(figures["delivered_per_second"] as? Int ?? 0 > 0)
    let latency = try #require(figures["latency"] as? [String: Any])
    let times = ["p50_ns", "p90_ns", "p99_ns", "p99.9_ns", "max_ns"].map { latency[$0] as? Int ?? 0 }
    #expect(times[0] > 0 && times == times.sorted(), "\(latency)")
  }

  @Test func peopleGetATable() throws {
    let table = try broker.run("bench", "--records", "1k", "--for", "10ms", "--rate", "1k").standardOutput
      .lines
    let names = table.map { $0.prefix { $0 != " " } }
    #expect(names == ["broker", "load", "published", "delivered", "latency"], "\(table)")
    #expect(table[1].hasSuffix("1,000 records of 128B, 1 × 1"))
    let short = try broker.run("bench", "--records", "1k", "--for", "0").standardOutput.lines
    #expect(short.count == 4, "\(short)")
  }

  /// Measures latency, slowly enough to last for the test.
  @Test(arguments: [("10", 10), ("unlimited", nil)] as [(String, UInt64?)])
  func subscribersAskForAsMuchAsWasSaid(demand: String, outstanding: UInt64?) throws {
    let process = try broker.sluice(
      "bench", "--size", "1KiB", "--records", "20", "--publishers", "3", "--subscribers", "2", "--demand",
      demand,
      "--rate", "20", "--for", "1h")
    var topic = ""
    try eventually("latency is measured", every: 0.05) {
      guard let found = try broker.client().list(limit: 2).topics.first else { return false }
      topic = found.topic
      return found.nextOffset > 20
    }
    try eventually("the demand of both", every: 0.03) {
      let subscriptions = try broker.show(topic).subscriptions
      return subscriptions.count == 2
        && subscriptions.allSatisfy {
          $0.granted == Credit.unlimited ? outstanding == nil : $0.granted - $0.sent == outstanding
        }
    }
    let info = try broker.show(topic)
    #expect(info.publications.count == 3)
    #expect(info.summary.bytes / info.summary.records >= 1024)
    process.stop()
  }
}
