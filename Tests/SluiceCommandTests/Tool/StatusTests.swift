import SluiceClient
import SluiceCommand
import SluiceIO
import SluiceWire
import Testing

@testable import SluiceTool

@Suite("What sluice status prints")
struct StatusTests {
  private func status(
    _ problems: [BrokerInfo.Problem], _ kinds: [BrokerInfo.ProblemKind] = [], cluster: ClusterInfo? = nil
  ) -> BrokerStatus {
    BrokerStatus(
      BrokerInfo(
        time: 0, uptime: 0, storage: StorageStatus(), stopped: 0, stoppedTopics: [], numbers: [],
        problems: problems, problemKinds: kinds),
      of: "sluiced/1", at: .host("127.0.0.1", port: 1), cluster: cluster)
  }

  private let missed = BrokerInfo.Problem(
    severity: .critical, since: 7, sentence: "Subscribers of t have missed 1 record.", kind: "missedRecords",
    topic: "t")
  private let lagging = BrokerInfo.Problem(
    severity: .warning, since: 8, sentence: "Cursor c of t is behind.", kind: "consumerLag", topic: "t",
    consumer: "c")

  @Test("what the broker finds critical is wrong, and what is a warning isn't")
  func severity() {
    #expect(status([missed, lagging]).problems == [missed.sentence])
    #expect(status([lagging]).problems.isEmpty)
    let text = status([missed, lagging]).text
    #expect(
      text.contains("problem      \(missed.sentence)") && text.contains("warning      \(lagging.sentence)"))
  }

  @Test("programs are told of every problem and its place")
  func places() {
    let line = status([missed, lagging]).object.line
    #expect(
      line.contains(
        #"{"severity":"critical","since_ms":7,"sentence":"Subscribers of t have missed 1 record.","kind":"missedRecords","topic":"t"}"#
      ), "\(line)")
    #expect(line.contains(#""kind":"consumerLag","topic":"t","consumer":"c"}"#), "\(line)")
  }

  @Test("more than twenty problems are summarised by kind", arguments: [19, 20])
  func summary(_ warnings: UInt32) {
    let text = status(
      [missed] + Array(repeating: lagging, count: 19),
      [
        BrokerInfo.ProblemKind(
          kind: "missedRecords", severity: .critical, since: 7, count: 1, sentence: missed.sentence),
        BrokerInfo.ProblemKind(
          kind: "consumerLag", severity: .warning, since: 8, count: warnings,
          sentence: "\(warnings) cursors are behind."),
      ]
    ).text
    let lines = text.split(separator: "\n").filter { $0.hasPrefix("warning") }
    #expect(lines.count == (warnings == 19 ? 19 : 1), "\(text)")
    #expect(
      text.contains("warning      20 cursors are behind. Cursor c of t is behind.") == (warnings == 20),
      "\(text)")
    #expect(text.contains("problem      \(missed.sentence)\n"))
  }

  @Test("a node of a cluster is shown with its nodes and shards")
  func cluster() {
    let info = ClusterInfo(
      name: "n1", unreadiness: "", engine: ClusterInfo.Engine(isConnected: true),
      nodes: [("n1", ClusterInfo.Node.State.live), ("n2", .ended)].map {
        ClusterInfo.Node(name: $0, address: "", version: "", state: $1, shards: 1, silence: 0)
      }, shardCount: 3,
      shards: [("n1", ClusterInfo.Shard.State.held), ("", .free), ("n2", .held)].enumerated().map {
        ClusterInfo.Shard(number: UInt32($0), state: $1.1, owner: $1.0, term: 1, target: "", pin: "")
      })
    let status = status([], cluster: info)
    for line in [
      "node         n1, ready\n", "nodes        1 live, 1 ended\n",
      "shards       3, 1 owned by this node, 1 without an owner\n",
    ] {
      #expect(status.text.contains(line), "\(line): \(status.text)")
    }
    #expect(
      status.object.line.contains(
        #""cluster":{"node":"n1","ready":true,"nodes":2,"live_nodes":1,"shards":3,"owned_shards":1,"shards_without_owner":1}"#
      ))
  }
}
