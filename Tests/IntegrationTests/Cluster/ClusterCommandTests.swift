import Glibc
import TestSupport
import Testing

/// A cluster as seen by operators: commands, the admin listener, an orderly shutdown.
@Suite(
  .serialized, .onItsOwnThread, .enabled(if: ClusterStage.hasEngine, Comment(rawValue: ClusterStage.absence)))
struct ClusterCommandTests {
  @Test func aClusterIsShownDrainedAndStopped() throws {
    let stage = try ClusterStage()
    let status = try stage.sluice("cluster", "status")
    #expect(status.exit == .code(0) && status.text.contains("b1, ready"), "\(status)\(stage.logs)")
    #expect(status.text.contains("3 live"))
    let whole = try stage.sluice("status")
    #expect(
      whole.exit == .code(0) && whole.text.contains("b1, ready") && whole.text.contains("64, "), "\(whole)")
    let nodes = try stage.sluice("cluster", "nodes", "--json", at: 1)
    #expect(nodes.text.split(separator: "\n").count == 3)
    let shards = try stage.sluice("cluster", "shards", "--json", at: 2)
    #expect(shards.text.split(separator: "\n").count == 64)

    for (index, node) in stage.nodes.enumerated() {
      let ready = try RawHTTP.get(stage.admin(index), "/readyz")
      #expect(ready.status == 200, "\(node.name)")
    }
    let metrics = try RawHTTP.get(stage.admin(), "/metrics").text
    for line in [
      "sluice_cluster_ready 1", "sluice_cluster_lease_valid 1", "sluice_cluster_engine_connected 1",
      "sluice_cluster_engine_unsafe 0", "sluice_cluster_nodes{state=\"live\"} 3", "sluice_cluster_shards 64",
    ] {
      #expect(metrics.contains(line + "\n"), "\(line)")
    }
    let api = try RawHTTP.get(stage.admin(), "/api/cluster").text
    #expect(api.contains(#""node":"b1""#) && api.contains(#""shardCount":64"#))

    // A record is published through one node and read through another.
    #expect(try stage.sluice("topic", "create", "orders", "--storage", "durable").exit == .code(0))
    #expect(try stage.sluice("pub", "orders", "one", "two", "--ack", "durable", at: 1).exit == .code(0))
    // The owner reports how long the engine took to store it.
    let owner = try stage.owner(of: "orders")
    try eventually("the commit is measured") {
      let metrics = try RawHTTP.get(stage.admin(owner), "/metrics").text
      return metrics.contains("sluice_cluster_shard_commit_latency_seconds{shard=")
        && !metrics.contains("sluice_cluster_commit_seconds_count 0\n")
    }
    #expect(
      try stage.sluice("cluster", "shards", "--node", stage.nodes[owner].name, at: owner).text.contains(
        " ms\n"))
    #expect(try stage.sluice("cluster", "status", at: owner).text.contains("ms each"))
    let read = try stage.sluice("sub", "orders", "--from", "earliest", "--until-live", at: 2)
    #expect(read.text == "one\ntwo\n")
    let shard = try stage.sluice("cluster", "shards", "--topic", "orders", "--json", at: 2)
    #expect(shard.text.hasPrefix("{\"shard\":17,") && shard.text.split(separator: "\n").count == 1)

    let unknown = try stage.sluice("cluster", "drain", "b9")
    #expect(unknown.exit == .code(1))
    #expect(try stage.sluice("cluster", "drain", "b2", "--wait").exit == .code(0))
    let owned = try stage.sluice("cluster", "shards", "--node", "b2")
    #expect(owned.text.isEmpty && owned.exit == .code(0))
    #expect(try stage.sluice("cluster", "nodes").text.contains("drained"))
    #expect(try stage.sluice("cluster", "drain", "b2", "--undo").exit == .code(0))
    #expect(try stage.sluice("cluster", "move", "7", "b2").exit == .code(0))
    try eventually("shard 7 is on b2") {
      try stage.sluice("cluster", "shards", "--node", "b2", "--json").text.contains("\"shard\":7,")
    }
    #expect(try stage.sluice("cluster", "move", "64", "b2").exit == .code(1))

    // An orderly shutdown hands over all shards, and exits with 0.
    stage.nodes[0].signal(SIGTERM)
    try eventually("b1 has left") { stage.log(of: "b1").contains { $0.contains("stopped") } }
    #expect(stage.log(of: "b1").contains { $0.contains("the node has left the cluster") }, "\(stage.logs)")
    let again = try stage.sluice("sub", "orders", "--from", "earliest", "--until-live", at: 2)
    #expect(again.text == "one\ntwo\n")

    // The last node that may own shards can't hand them over, and the waiting command fails.
    #expect(try stage.sluice("cluster", "drain", "b3", "--wait", at: 1).exit == .code(0))
    let last = try ChildProcess.sluice(["cluster", "drain", "b2", "--wait"], server: stage.nodes[1].address)
    #expect(try last.waitForExit() == .code(1))
    #expect(
      last.standardError.text.contains("b2 keeps its shards until another node can own them"),
      "\(last.messages)")
    #expect(try stage.sluice("pub", "orders", "three", "--ack", "durable", at: 1).exit == .code(0))
  }
}
