import SluiceCommand
import SluiceWire
import Testing

@testable import SluiceTool

@Suite("What sluice cluster prints")
struct ClusterTableTests {
  private var info = ClusterInfo(
    name: "n1", unreadiness: "",
    engine: ClusterInfo.Engine(isConnected: true, server: "e1 (10.0.0.1:4222)", commitLatency: 1_234),
    nodes: [
      ClusterInfo.Node(
        name: "n1", address: "10.0.0.1:7420", version: "1.2", state: .live, shards: 2, silence: 120),
      ClusterInfo.Node(
        name: "n2", address: "10.0.0.2:7420", version: "1.2", state: .drained, shards: 0, silence: 340),
    ], shardCount: 2,
    shards: [
      ClusterInfo.Shard(number: 0, state: .held, owner: "n1", term: 7, target: "n1", pin: ""),
      ClusterInfo.Shard(number: 1, state: .moving, owner: "n1", term: 9, target: "n2", pin: "n2"),
    ],
    numbers: [
      ("take_overs", 1_000), ("commits", 4), ("commit_microseconds", 10_000),
      (ClusterInfo.shardCommitLatency(0), 2_300),
    ].map { BrokerInfo.Number(name: $0, value: $1) })

  @Test("a cluster in order in one screen")
  func status() {
    #expect(
      ClusterTable.status(info) == """
        node        n1, ready
        engine      connected to e1 (10.0.0.1:4222), stored the last message in 1.2 ms
        nodes       1 live, 1 drained
        shards      2: 2 on n1; 1 moving
        taken over  1,000 shards by this node since its start
        commits     4 by this node since its start, 2.5 ms each
        problems    none

        """)
  }

  @Test("what is wrong is said once")
  mutating func problems() {
    info.unreadiness = "the engine can't be reached: no server answers"
    info.engine = ClusterInfo.Engine(isConnected: false, isUnsafe: true, problems: ["no server answers"])
    info.shards[0].state = .free
    #expect(
      ClusterTable.problems(info) == [
        "the engine can't be reached: no server answers",
        "1 of 2 shards has no owner: its topics can't be used",
      ])
    let text = ClusterTable.status(info)
    #expect(text.contains("n1, not ready") && text.contains("not connected, unsafe: it may lose"))
    #expect(!text.contains("problems  none"))
  }

  @Test("nodes that may live or not are counted apart")
  mutating func silence() {
    info.nodes[1].state = .silent
    info.nodes[1].silence = 25_000
    #expect(ClusterTable.status(info).contains("nodes       1 live, 1 silent\n"))
    #expect(ClusterTable.nodes(info).contains("n2    10.0.0.2:7420  silent  1.2           0    25 s ago\n"))
    #expect(ClusterTable.summaryObject(info).description.contains(#""nodes":2,"live_nodes":1,"#))
  }

  @Test("nodes and shards, for people and for programs")
  func tables() {
    #expect(
      ClusterTable.nodes(info) == """
        NODE  ADDRESS        STATE    VERSION  SHARDS   LAST SEEN
        n1    10.0.0.1:7420  live     1.2           2  120 ms ago
        n2    10.0.0.2:7420  drained  1.2           0  340 ms ago

        """)
    #expect(
      ClusterTable.shards(info.shards, info) == """
        OWNER  STATE   BELONGS TO  MOVED TO  SHARD  TERM  COMMIT
        n1     held    n1                        0     7  2.3 ms
        n1     moving  n2          n2            1     9       -

        """)
    #expect(
      ClusterTable.object(info.shards[1], info).description
        == #"{"shard":1,"owner":"n1","state":"moving","term":9,"target":"n2","pin":"n2","commit_latency_us":null}"#
    )
    #expect(
      ClusterTable.object(info.shards[0], info).description.hasSuffix(
        #""pin":null,"commit_latency_us":2300}"#))
    #expect(
      ClusterTable.object(info.nodes[1]).description
        == #"{"node":"n2","address":"10.0.0.2:7420","version":"1.2","state":"drained","shards":0,"silent_ms":340,"problem":null}"#
    )
    #expect(
      ClusterTable.nodes(
        ClusterInfo(name: "", unreadiness: "", engine: info.engine, nodes: [], shardCount: 0, shards: [])
      ).isEmpty)
  }

  @Test("the last node that may own shards keeps them, and the command that drains it says so")
  func lastNode() {
    #expect(
      ClusterDrainCommand.complaint(about: "n1", in: info)?.hasPrefix("n1 keeps its shards") == true)
    #expect(ClusterDrainCommand.complaint(about: "n2", in: info) == nil)
  }

  @Test("a node that isn't known is refused with the one that was meant")
  func unknownNode() {
    #expect(ClusterCommand.complaint(about: "n1", in: info) == nil)
    #expect(ClusterCommand.complaint(about: "n3", in: info)?.contains("did you mean n") == true)
    #expect(ClusterCommand.complaint(about: "zebra", in: info)?.contains("the nodes are n1, n2") == true)
  }

  @Test(
    "arguments that can't be are refused",
    arguments: [
      (["move", "x", "n1"], "isn't a shard's number"), (["move", "3"], "either NODE"),
      (["move", "3", "n1", "--undo"], "either NODE"), (["move", "3", "n 1"], "can't be the name"),
      (["drain", "n1", "--undo", "--wait"], "--wait"), (["drain", "a.b"], "can't be the name"),
    ])
  func arguments(words: [String], part: String) {
    var name = "sluice"
    let error = #expect(throws: UsageError.self) {
      try CommandLineChoice.read(["cluster"] + words, naming: &name)
    }
    #expect(error?.description.contains(part) == true, "\(error?.description ?? "")")
  }
}
