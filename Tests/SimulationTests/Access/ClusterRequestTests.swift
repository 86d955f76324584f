import SluiceSimulation
import SluiceWire
import Synchronization
import Testing

@testable import SluiceBroker

/// CLUSTER_SHOW, CLUSTER_DRAIN and CLUSTER_MOVE: their replies and effects, the permissions they need, and their audit lines.
@Suite struct ClusterRequestTests {
  /// A cluster that records requests, and denies them while `refusal` is set.
  private final class Cluster: ClusterAdministration {
    let info: ClusterInfo
    let wishes = Mutex<[String]>([])
    let refusal = Mutex<String?>(nil)

    init(_ info: ClusterInfo) { self.info = info }

    func clusterInfo(_ body: @escaping @Sendable (ClusterInfo) -> Void) { body(info) }

    func drain(_ node: String, _ isWanted: Bool, _ done: @escaping @Sendable (String?) -> Void) {
      store(isWanted ? "drain \(node)" : "undrain \(node)", done)
    }

    func pin(_ shard: Int, to node: String?, _ done: @escaping @Sendable (String?) -> Void) {
      store("pin \(shard) \(node ?? "-")", done)
    }

    private func store(_ wish: String, _ done: (String?) -> Void) {
      let refusal = refusal.withLock { $0 }
      if refusal == nil { wishes.withLock { $0.append(wish) } }
      done(refusal)
    }
  }

  private final class Audit: Sendable {
    let events = Mutex<[BrokerEvent]>([])
  }

  private let audit = Audit()
  private let small: SmallWorld
  private let cluster: Cluster

  init() throws {
    let audit = audit
    small = try SmallWorld(rules: ["root": "all >", "some": "all p.> admin p.> subscribe >"]) {
      $0.report = { event in audit.events.withLock { $0.append(event) } }
    }
    cluster = Cluster(
      ClusterInfo(
        name: "n1", unreadiness: "", engine: ClusterInfo.Engine(isConnected: true),
        nodes: (100..<190).map {
          ClusterInfo.Node(
            name: "n\($0)", address: "h:\($0)", version: "1", state: .live, shards: 1, silence: 0)
        }, shardCount: 250,
        shards: (0..<250).map {
          ClusterInfo.Shard(
            number: UInt32($0), state: .held, owner: "n100", term: 1, target: "n100", pin: "")
        }))
  }

  private var administered: [(action: BrokerEvent.Administration, client: String, refusal: ErrorCode?)] {
    audit.events.withLock { events in
      events.compactMap {
        guard case .administered(let client, let action, _, let refusal) = $0 else { return nil }
        return (action, client.identity, refusal?.code)
      }
    }
  }

  @Test func aBrokerOutsideOfAClusterSaysHowToMakeOne() throws {
    let root = small.connect(as: "root")
    _ = root.ask(ClusterShow(nodes: 1, shards: 1), stream: 1, in: small)
    let fault = try root.fault(on: 1)
    #expect(fault?.code == .unsupported && fault?.message.contains("--cluster") == true)
    _ = root.ask(ClusterDrain(node: "n1", wanted: true), stream: 2, in: small)
    #expect(try root.fault(on: 2)?.code == .unsupported)
    _ = root.ask(ClusterMove(shard: 0, node: "n1"), stream: 3, in: small)
    #expect(try root.fault(on: 3)?.code == .unsupported)
  }

  @Test func nodesAndShardsComeInPagesThatFitTheSmallestFrame() throws {
    small.broker.administer(cluster)
    let root = small.connect(as: "root")
    var (nodes, shards): ([ClusterInfo.Node], [ClusterInfo.Shard]) = ([], [])
    var pages = 0
    while true {
      let request = ClusterShow(
        after: nodes.last?.name ?? "", nodes: 1000, firstShard: UInt32(shards.count), shards: 1000)
      let answer = try #require(root.ask(request, stream: 1, in: small).last)
      #expect(answer.header.length <= UInt32(Limits.smallestFrame))
      let page = try answer.decoded(ClusterInfo.self)
      #expect(page.name == "n1" && page.shardCount == 250)
      nodes += page.nodes
      shards += page.shards
      pages += 1
      if !page.moreNodes && !page.moreShards { break }
    }
    #expect(nodes == cluster.info.nodes && shards == cluster.info.shards && pages == 3)
    let few = try #require(
      root.ask(ClusterShow(nodes: 0, firstShard: 248, shards: 1), stream: 1, in: small).last
    )
    .decoded(ClusterInfo.self)
    #expect(few.nodes.isEmpty && few.moreNodes && few.shards.map(\.number) == [248] && few.moreShards)
  }

  @Test func aPageOfTheLongestTextsFitsTheSmallestFrame() throws {
    func long(_ count: Int) -> String { String(repeating: "x", count: count) }
    let info = ClusterInfo(
      name: long(64), unreadiness: long(2000),
      engine: ClusterInfo.Engine(
        isConnected: true, server: long(300), problems: Array(repeating: long(2000), count: 5)),
      nodes: (0..<100).map {
        ClusterInfo.Node(
          name: "\($0 + 100)" + long(61), address: long(300), version: long(300), state: .live, shards: 1,
          silence: 0)
      }, shardCount: 200,
      shards: (0..<200).map {
        ClusterInfo.Shard(
          number: $0, state: .held, owner: long(64), term: .max, target: long(64), pin: long(64))
      }, numbers: (0..<20).map { _ in BrokerInfo.Number(name: long(40), value: .max) })
    let page = info.page(
      for: ClusterShow(nodes: .max, shards: .max), nodes: RequestStream.nodesPerPage,
      shards: RequestStream.shardsPerPage)
    #expect(
      page.nodes.count == RequestStream.nodesPerPage && page.encoded(stream: 1).count <= Limits.smallestFrame)
  }

  @Test func wishesReachTheClusterAndTheAudit() throws {
    small.broker.administer(cluster)
    let root = small.connect(as: "root")
    let frames: [any Frame] = [
      ClusterDrain(node: "n2", wanted: true), ClusterDrain(node: "n2", wanted: false),
      ClusterMove(shard: 249, node: "n3"), ClusterMove(shard: 249, node: ""),
    ]
    for frame in frames {
      #expect(root.ask(frame, stream: 1, in: small).last?.header.type == .done)
    }
    #expect(cluster.wishes.withLock { $0 } == ["drain n2", "undrain n2", "pin 249 n3", "pin 249 -"])
    _ = root.ask(ClusterMove(shard: 250, node: "n3"), stream: 1, in: small)
    #expect(try root.fault(on: 1)?.code == .invalidSetting)
    cluster.refusal.withLock { $0 = "it doesn't answer" }
    _ = root.ask(ClusterDrain(node: "n2", wanted: true), stream: 2, in: small)
    #expect(try root.fault(on: 2)?.code == .storageFailed)
    let told = administered
    #expect(told.allSatisfy { $0.client == "root" })
    #expect(
      told.map(\.action) == [
        .drainNode("n2"), .undrainNode("n2"), .moveShard(249, node: "n3"), .moveShard(249, node: ""),
        .moveShard(250, node: "n3"), .drainNode("n2"),
      ])
    #expect(told.map(\.refusal) == [nil, nil, nil, nil, .invalidSetting, .storageFailed])
  }

  @Test func onlyAClientThatAdministersEverythingMay() throws {
    small.broker.administer(cluster)
    let some = small.connect(as: "some")
    let frames: [any Frame] = [
      ClusterShow(nodes: 1, shards: 1), ClusterDrain(node: "n1", wanted: true),
      ClusterMove(shard: 0, node: "n1"),
    ]
    for (index, frame) in frames.enumerated() {
      let stream = UInt32(index + 1)
      _ = some.ask(frame, stream: stream, in: small)
      #expect(try some.fault(on: stream)?.code == .permissionDenied)
    }
    #expect(administered.isEmpty && cluster.wishes.withLock { $0 }.isEmpty)
    #expect(small.broker.metrics[.deniedPermissions] == 3)
  }
}
