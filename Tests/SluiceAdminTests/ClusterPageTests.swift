import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceWire
import TestSupport
import Testing

@testable import SluiceAdmin

@Suite("A node's cluster in the admin listener")
struct ClusterPageTests {
  private static func snapshot(unreadiness: String = "") -> ClusterSnapshot {
    var cluster = ClusterSnapshot(
      ClusterInfo(
        name: "n1", unreadiness: unreadiness,
        engine: ClusterInfo.Engine(isConnected: unreadiness.isEmpty, server: "e1", commitLatency: 1_500),
        nodes: [
          ClusterInfo.Node(
            name: "n1", address: "h1:7420", version: "1", state: .live, shards: 1, silence: 20),
          ClusterInfo.Node(
            name: "n2", address: "h2:7420", version: "1", state: .ended, shards: 0, silence: 9_000),
        ], shardCount: 2,
        shards: [
          ClusterInfo.Shard(number: 0, state: .held, owner: "n1", term: 5, target: "n1", pin: ""),
          ClusterInfo.Shard(number: 1, state: .free, owner: "", term: 3, target: "n1", pin: "n2"),
        ]), isLeaseValid: unreadiness.isEmpty)
    cluster.causes = [.ownerDied: 2, .first: 1]
    cluster.durations[3] = 2
    cluster.durations[5] = 1
    cluster.totalMilliseconds = 2_100
    cluster.suspensions = 4
    cluster.commits = [0: ClusterSnapshot.Commits(count: 3, recent: 4_200_000, longest: 9_000_000)]
    (cluster.commitBounds, cluster.commitCounts) = ([5_000_000, 10_000_000, .max], [2, 1, 0])
    cluster.commitTotal = 17_000_000
    cluster.recent = [
      ClusterSnapshot.TakeOver(shard: 1, term: 3, cause: .ownerDied, from: "n2", milliseconds: 1_800, time: 7)
    ]
    var link = LinkSnapshot("n2")
    (link.connections, link.streams, link.opened, link.lost, link.failed) = (2, 5, 4, 1, 3)
    (link.bytesReceived, link.bytesSent) = (1_000, 2_000)
    (link.recordsReceived, link.recordsSent) = (10, 20)
    cluster.links = [link]
    return cluster
  }

  private func answer(_ target: String, _ cluster: ClusterSnapshot?) throws -> RawHTTP.Answer {
    let server = try AdminServer(
      at: .host("127.0.0.1", port: 0), FixtureSource { $0.cluster = cluster }, AdminOptions())
    defer { server.stop() }
    return try RawHTTP.get(server.address.description, target)
  }

  @Test("a node that isn't ready says why, with 503")
  func readiness() throws {
    #expect(try answer("/readyz", nil).status == 200)
    #expect(try answer("/readyz", Self.snapshot()).status == 200)
    let response = try answer("/readyz", Self.snapshot(unreadiness: "the lease couldn't be renewed"))
    #expect(response.status == 503)
    #expect(response.text.contains("the lease couldn't be renewed"))
  }

  @Test("the API has nodes, shards and take-overs; a broker of one node has no such resource")
  func api() throws {
    #expect(try answer("/api/cluster", nil).status == 404)
    let response = try answer("/api/cluster", Self.snapshot())
    let text = response.text
    #expect(response.status == 200)
    for part in [
      #""node":"n1","unreadiness":null,"leaseValid":true"#, #""commitLatencySeconds":0.001500"#,
      #"{"name":"n2","address":"h2:7420","version":"1","state":"ended","shards":0,"silenceSeconds":9.000,"problem":null}"#,
      #""target":"n1","pin":null,"commits":3,"commitLatencySeconds":0.004200}"#,
      #"{"number":1,"state":"free","owner":null,"term":3,"target":"n1","pin":"n2","commits":null,"commitLatencySeconds":null}"#,
      #""commits":3,"commitSeconds":0.017000,"takeOvers":3"#,
      #"{"shard":1,"term":3,"cause":"owner-died","from":"n2","seconds":1.800,"time":7}"#,
      #""links":[{"node":"n2","connections":2,"streams":5,"opened":4,"lost":1,"failed":3,"bytesReceived":1000,"bytesSent":2000,"recordsReceived":10,"recordsSent":20}]"#,
    ] {
      #expect(text.contains(part), "\(part) isn't in \(text)")
    }
  }

  @Test("a node that may live or not is silent")
  func silence() throws {
    var cluster = Self.snapshot()
    cluster.info.nodes[1].state = .silent
    #expect(try answer("/api/cluster", cluster).text.contains(#""state":"silent","shards":0,"#))
    var text = MetricsText(.prometheus)
    ClusterMetrics.write(cluster, to: &text)
    #expect(text.text.contains("sluice_cluster_nodes{state=\"silent\"} 1"))
  }

  @Test(
    "a topic whose shard another node owns is looked for there",
    arguments: ["/api/topics/t", "/api/topics/t/records", "/api/consumers?topic=t"])
  func owner(target: String) throws {
    var cluster = Self.snapshot()
    cluster.info.shardCount = 1
    cluster.info.shards = [
      ClusterInfo.Shard(number: 0, state: .held, owner: "n2", term: 5, target: "n2", pin: "")
    ]
    let elsewhere = try answer(target, cluster)
    #expect(elsewhere.status == 404)
    #expect(
      elsewhere.text.contains(
        "topic t isn't at this node: node n2, which clients reach at h2:7420, owns its shard; look at the page or API of that node"
      ), "\(elsewhere.text)")
    // A shard of this node, one without an owner, and one of an unknown node.
    for owner in ["n1", "", "n9"] {
      cluster.info.shards[0].owner = owner
      let here = try answer(target, cluster)
      #expect(here.status == 404 && here.text.contains("there is no topic t"), "\(owner): \(here.text)")
    }
    #expect(try answer(target, nil).text.contains("there is no topic t"))
  }

  @Test("metrics of the cluster")
  func metrics() {
    var text = MetricsText(.prometheus)
    ClusterMetrics.write(Self.snapshot(), to: &text)
    for line in [
      "sluice_cluster_nodes{state=\"live\"} 1", "sluice_cluster_nodes{state=\"ended\"} 1",
      "sluice_cluster_shards 2", "sluice_cluster_shards_owned 1", "sluice_cluster_shards_free 1",
      "sluice_cluster_ready 1", "sluice_cluster_lease_valid 1", "sluice_cluster_engine_connected 1",
      "sluice_cluster_engine_unsafe 0", "sluice_cluster_renewal_latency_seconds 0.0015",
      "sluice_cluster_take_overs_total{cause=\"owner-died\"} 2",
      "sluice_cluster_take_over_seconds_bucket{le=\"0.3\"} 2",
      "sluice_cluster_take_over_seconds_bucket{le=\"2\"} 3", "sluice_cluster_take_over_seconds_count 3",
      "sluice_cluster_suspensions_total 4", "sluice_cluster_commit_seconds_bucket{le=\"0.005\"} 2",
      "sluice_cluster_commit_seconds_bucket{le=\"+Inf\"} 3", "sluice_cluster_commit_seconds_sum 0.017",
      "sluice_cluster_shard_commit_latency_seconds{shard=\"0\"} 0.0042",
      "sluice_cluster_links{peer=\"n2\"} 2", "sluice_cluster_link_streams{peer=\"n2\"} 5",
      "sluice_cluster_links_opened_total{peer=\"n2\"} 4", "sluice_cluster_links_lost_total{peer=\"n2\"} 1",
      "sluice_cluster_links_failed_total{peer=\"n2\"} 3",
      "sluice_cluster_link_received_bytes_total{peer=\"n2\"} 1000",
      "sluice_cluster_link_sent_bytes_total{peer=\"n2\"} 2000",
      "sluice_cluster_link_received_records_total{peer=\"n2\"} 10",
      "sluice_cluster_link_sent_records_total{peer=\"n2\"} 20",
    ] {
      #expect(text.text.contains(line + "\n"), "\(line) isn't in \(text.text)")
    }
  }

  @Test("what is wrong is a problem with a link to the cluster")
  func problems() {
    var finder = ProblemFinder()
    let info = Self.snapshot(unreadiness: "the engine can't be reached").info
    let found = finder.problems(in: BrokerSnapshot(), info)
    #expect(found.map(\.kind) == [.engineUnreachable, .shardsWithoutOwner])
    #expect(found.allSatisfy { $0.place == .cluster })
    #expect(ProblemJSON.object(found[0]).description.contains("#/cluster"))
    var suspended = Self.snapshot().info
    suspended.unreadiness = "the lease couldn't be renewed in time"
    suspended.shards = []
    #expect(finder.problems(in: BrokerSnapshot(), suspended).map(\.kind) == [.nodeNotReady])
    #expect(finder.problems(in: BrokerSnapshot(), nil).isEmpty)
  }
}
