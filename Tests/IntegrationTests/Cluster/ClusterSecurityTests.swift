import Glibc
import SluiceWire
import TestSupport
import Testing

/// A cluster whose clients, nodes and engine authenticate over TLS, as real processes. A client has the same permissions at each node, and no client can
/// act as a node.
@Suite(
  .serialized, .onItsOwnThread, .enabled(if: ClusterStage.hasEngine, Comment(rawValue: ClusterStage.absence)))
struct ClusterSecurityTests {
  @Test func permissionsHoldAtEveryNode() throws {
    let stage = try ClusterStage(users: [
      ("ada", "publish,create orders.>"), ("bob", "subscribe orders.>"), ("eve", "all public.>"),
      ("client", "subscribe orders.>"),
    ])
    // One topic of each node, and each action at each node: at the owner, and through the others.
    for (index, topic) in try stage.topics("orders.").enumerated() {
      let create = try stage.sluice(
        "topic", "create", topic, "--storage", "durable", at: (index + 2) % 3, as: "ada")
      #expect(create.exit == .code(0), "\(create)\(stage.logs)")
      for node in stage.nodes.indices { try tryAll(on: topic, with: node, stage) }
      let read = try stage.sluice(
        "sub", topic, "--from", "earliest", "--until-live", at: (index + 1) % 3, as: "bob")
      #expect(read.text == "ada at 0\nada at 1\nada at 2\n", "\(read)\(stage.logs)")
      let delete = try stage.sluice("topic", "delete", topic, "--yes", at: (index + 1) % 3, as: "admin")
      #expect(delete.exit == .code(0), "\(delete)")
    }
    try checkAudit(stage)
    try checkTheEngine(stage)
  }

  private func tryAll(on topic: String, with node: Int, _ stage: ClusterStage) throws {
    func allowed(_ user: String, _ arguments: String...) throws {
      let result = try stage.sluice(arguments, at: node, as: user)
      #expect(result.exit == .code(0), "\(user) at \(node): \(arguments): \(result)\(stage.logs)")
    }
    func refused(_ user: String, _ arguments: String...) throws {
      let result = try stage.sluice(arguments, at: node, as: user)
      #expect(
        result.exit == .code(1) && result.text.isEmpty && result.messages.contains("may not"),
        "\(user) at \(node): \(arguments): \(result)")
    }
    try allowed("ada", "pub", topic, "ada at \(node)", "--ack", "durable")
    try refused("bob", "pub", topic, "no")
    try refused("eve", "pub", topic, "no")
    try allowed("bob", "sub", topic, "--from", "earliest", "--count", "1")
    try refused("ada", "sub", topic, "--from", "earliest", "--count", "1")
    try refused("eve", "sub", topic, "--from", "earliest", "--count", "1")
    // A group delivers each record to one member; with the node's name, each node has a separate group.
    try allowed("bob", "sub", topic, "--group", "g\(node)", "--from", "earliest", "--count", "1")
    try refused("eve", "sub", topic, "--group", "g\(node)", "--from", "earliest", "--count", "1")
    try allowed("bob", "sub", topic, "--cursor", "c\(node)", "--from", "earliest", "--count", "1")
    try refused("ada", "sub", topic, "--cursor", "c\(node)", "--count", "1")
    try allowed("admin", "cursor", "list", topic)
    try refused("ada", "cursor", "move", topic, "c\(node)", "--to", "earliest")
    try refused("bob", "topic", "set", topic, "--replay-records", "10")
    try refused("bob", "topic", "delete", topic, "--yes")
    try refused("eve", "topic", "delete", topic, "--yes")
    try refused("bob", "cluster", "drain", "b1")
    // A pattern selects only topics that the client may subscribe to, whichever node owns them.
    let pattern = try stage.sluice(
      ["sub", "orders.*", "--from", "earliest", "--until-live"], at: node, as: "eve")
    #expect(pattern.exit == .code(0) && pattern.text.isEmpty, "\(pattern)")
    try allowed("bob", "sub", "orders.*", "--from", "earliest", "--count", "1")
    // A client with a certificate.
    let certified = try stage.sluice(
      ["sub", topic, "--from", "earliest", "--count", "1"], at: node, as: nil)
    #expect(certified.exit == .code(0) && !certified.text.isEmpty, "\(certified)")
  }

  /// The owner's audit names clients connected to other nodes, and no node.
  private func checkAudit(_ stage: ClusterStage) throws {
    var lines: [Substring] = []
    for node in stage.nodes { lines += stage.log(of: node.name).filter { $0.contains("audit=true") } }
    let deleted = lines.filter { line in
      ["topic=orders.", "action=delete", "outcome=done"].allSatisfy { line.contains($0) }
    }
    #expect(deleted.count >= 3 && deleted.allSatisfy { $0.contains("identity=admin") }, "\(lines.suffix(20))")
    #expect(lines.contains { $0.contains("identity=eve") && $0.contains("outcome=denied") })
    for node in stage.nodes {
      #expect(!lines.contains { $0.contains("identity=\(node.name) ") }, "\(node.name)")
    }
  }

  /// The engine rejects clients without its credentials, and clients without TLS.
  private func checkTheEngine(_ stage: ClusterStage) throws {
    let engine = stage.engines[0].address
    let parts = engine.split(separator: ":")
    let child = try ChildProcess(
      "/bin/bash", ["-c", "exec 3<>/dev/tcp/\(parts[0])/\(parts[1]); head -n 1 <&3"])
    try child.waitForExit()
    let info = child.standardOutput.text
    #expect(info.contains(#""tls_required":true"#) && info.contains(#""auth_required":true"#), "\(info)")
  }

  @Test func noClientCanActAsANode() throws {
    let stage = try ClusterStage(users: [("eve", "all public.>")])
    try stage.sluice("topic", "create", "orders.eu", at: 0, as: "admin").expectSuccess(stage)
    try stage.makeClientCertificate(named: "b2")
    try stage.makeNodeCertificate(named: "mallory")
    let stranger = try TestCertificates(nodes: ["b2"])
    let asAdmin = Credentials.node(onBehalfOf: "admin")
    let withEverything = Credentials.node(onBehalfOf: "eve", carrying: "=\n15 >")
    for node in stage.nodes {
      func talker(_ certificate: (file: String, key: String)?) throws -> SecureTalker {
        try SecureTalker(node.address, authority: stage.nodeAuthority, certificate: certificate)
      }
      for certificate in [nil, stage.certificate("clients/client"), stage.certificate("nodes/mallory")] {
        for credentials in [asAdmin, withEverything] {
          let talker = try talker(certificate)
          try talker.hello(credentials)
          #expect(
            try talker.refusal(on: 0) == .authenticationFailed,
            "\(certificate?.file ?? "none"): \(talker.frames) \(talker.messages)")
        }
      }
      // The node doesn't trust the certificate's authority, so there isn't even a handshake.
      let unknown = try talker((stranger.path(of: "b2.pem"), stranger.path(of: "b2.key")))
      try? unknown.hello(asAdmin)
      try eventually("the connection ends; \(unknown.messages)") { unknown.hasEnded }
      #expect(unknown.frames.isEmpty)

      // An authenticated client can't become a node either.
      let eve = try talker(stage.certificate("clients/client"))
      try eve.hello(.password(stage.password(of: "eve"), user: "eve"))
      #expect(try eve.answer(on: 0)?.decode(Welcome.self).identity == "eve")
      try eve.send(Authenticate(asAdmin), stream: 1)
      #expect(try eve.refusal(on: 1) == .authenticationFailed)
      try eve.send(TopicDelete(topic: "orders.eu"), stream: 2)
      #expect(try eve.refusal(on: 2) == .permissionDenied)

      // A real node may do everything denied above.
      let real = try talker(stage.certificate("nodes/b2"))
      try real.hello(asAdmin)
      #expect(try real.answer(on: 0)?.decode(Welcome.self).identity == "admin", "\(real.messages)")
    }
    #expect(try stage.sluice("topic", "show", "orders.eu", at: 1, as: "admin").exit == .code(0))
  }

  @Test func aNodeThatIsTakenFromTheListIsDisconnected() throws {
    let stage = try ClusterStage(users: [])
    let node = stage.nodes[0]
    let real = try SecureTalker(
      node.address, authority: stage.nodeAuthority, certificate: stage.certificate("nodes/b9"))
    try real.hello(.node(onBehalfOf: "admin"))
    #expect(try real.answer(on: 0)?.type == .welcome)
    try stage.edit("b1.conf") { $0.replacing(", \"b9\"", with: "") }
    node.signal(SIGHUP)
    try eventually("the connection ends; \(stage.logs)") { real.hasEnded }
    #expect(real.frames.contains { (try? $0.decode(Fault.self).code) == .accessRevoked }, "\(real.frames)")
    // The other nodes continue.
    for node in stage.nodes.indices {
      try stage.sluice("topic", "create", "t.\(node)", at: node, as: "admin").expectSuccess(stage)
      try stage.sluice("pub", "t.\(node)", "x", at: (node + 1) % 3, as: "admin").expectSuccess(stage)
    }
  }
}
