import Foundation
import SluiceStore
import TestSupport

/// The output of `sluice`, and its exit.
struct ToolResult: CustomStringConvertible {
  var text: String
  var messages: String
  var exit: ChildProcess.Exit

  var description: String { "\(exit): \(text)\(messages)" }

  func expectSuccess(_ stage: ClusterStage) throws {
    try require(exit == .code(0), "\(self)\(stage.logs)")
  }
}

// A cluster whose clients, nodes and servers authenticate over TLS: `scripts/cluster.sh up --secure`.
extension ClusterStage {
  /// Runs `sluice` on a node, which relays topics of other nodes.
  ///
  /// - Parameter user: nil for a client with a certificate.
  func sluice(_ arguments: [String], at node: Int, as user: String?) throws -> ToolResult {
    var proof = ["--tls-ca", nodeAuthority, "--routing", "relay"]
    if let user {
      proof += ["--user", user, "--password-file", path("\(user)-password")]
    } else {
      let certificate = certificate("clients/client")
      proof += ["--tls-cert", certificate.file, "--tls-key", certificate.key]
    }
    let process = try ChildProcess.sluice(arguments + proof, server: nodes[node].address)
    let exit = try process.waitForExit()
    return ToolResult(
      text: process.standardOutput.text, messages: process.standardError.text, exit: exit)
  }

  func sluice(_ arguments: String..., at node: Int, as user: String?) throws -> ToolResult {
    try sluice(arguments, at: node, as: user)
  }

  /// Topic names with this prefix, one owned by each node, in the order of the nodes.
  func topics(_ prefix: String) throws -> [String] {
    let owners = try owners()
    return try nodes.map { node in
      let name = (0..<10_000).lazy.map { "\(prefix)\($0)" }.first { name in
        owners[ShardHash.shard(of: name, of: owners.count)] == node.name
      }
      guard let name else { throw TestFailure("\(node.name) owns no shard: \(owners)") }
      return name
    }
  }

  /// The index of the node that serves a topic.
  func owner(of topic: String) throws -> Int {
    let owners = try owners()
    let name = owners[ShardHash.shard(of: topic, of: owners.count)]
    guard let index = nodes.firstIndex(where: { $0.name == name }) else {
      throw TestFailure("no node serves \(topic): \(owners)")
    }
    return index
  }

  /// The names of the shards' owners.
  private func owners() throws -> [Int: String] {
    let shards =
      try isSecure
      ? sluice("cluster", "shards", "--json", at: 0, as: "admin").text
      : sluice("cluster", "shards", "--json").text
    var owners: [Int: String] = [:]
    for line in shards.split(separator: "\n") {
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      if let shard = object?["shard"] as? Int { owners[shard] = object?["owner"] as? String ?? "" }
    }
    return owners
  }

  /// The authority that signs nodes' certificates.
  var nodeAuthority: String { path("nodes/authority.pem") }

  /// The files of a certificate, for example `nodes/b1`.
  func certificate(_ name: String) -> (file: String, key: String) {
    (path("\(name).pem"), path("\(name).key"))
  }

  func password(of user: String) -> String { "the password of \(user)" }

  /// Replaces the clients' certificate by another one of their authority.
  func makeClientCertificate(named name: String) throws {
    try certify("clients", ["SLUICE_CERTS_CLIENT": name])
  }

  /// Creates one more certificate of the nodes' authority.
  func makeNodeCertificate(named name: String) throws {
    try certify("nodes", ["SLUICE_CERTS_NODES": name])
  }

  private func certify(_ folder: String, _ environment: [String: String]) throws {
    let child = try ChildProcess(
      "/bin/sh", [Self.checkout + "/scripts/certs.sh", path(folder)], environment: environment)
    try require(try child.waitForExit() == .code(0), "\(child.messages)")
  }

  /// Changes a file in the cluster's folder.
  func edit(_ file: String, _ change: (String) -> String) throws {
    let text = String(decoding: try readFile(path(file)), as: UTF8.self)
    try writeFile(path(file), Array(change(text).utf8))
  }
}
