import Glibc
import SluiceStore
import SluiceWire
import TestSupport

/// One owner of a topic that is paused for longer than its lease, with clients of its own, and wakes up when another node owns the topic.
struct StaleOwner {
  /// What was found.
  struct Findings: CustomStringConvertible {
    /// Acknowledgements and records that clients got through the stale node after its successor's term had begun.
    var acknowledgements = 0
    var deliveries = 0
    /// Records that were published to the stale node and got stored, which a node does that forwards them to its successor.
    var forwarded = 0
    /// What must not be. Each is a sentence.
    var violations: [String] = []

    var description: String {
      "\(acknowledgements) acknowledgements and \(deliveries) records through the stale node, \(forwarded) of its clients' records stored"
    }
  }

  let stage: ClusterStage
  let topic: String
  /// Of the try; makes the records' marks unique.
  let number: Int
  /// Subscribers get records of the topic before they are stored.
  let deliversUnsaved: Bool

  private static let subscription: UInt32 = 1
  private static let publications: [UInt32: PublishOpen.Acknowledgement] = [2: .durable, 3: .received]

  /// - Parameter random: how the moment of the pause is chosen.
  func wake(_ random: inout SeededRandom) throws -> Findings {
    var findings = Findings()
    let before = try owner(at: 0) { _ in true }
    let stale = stage.nodes.firstIndex { $0.name == before.owner }!
    let other = (stale + 1 + Int(random.next() % 2)) % 3

    let client = try RawClient(stage.nodes[stale].address)
    try client.shakeHands(name: "at the owner")
    let place = try client.subscribe(topic, stream: Self.subscription, from: .new)
    let delivered = Delivered()
    client.subscriptions[Self.subscription]!.onRecord = { offset, body in
      delivered.records.append((offset, String(decoding: body, as: UTF8.self), delivered.isAwake))
    }
    var sent: [UInt32: [String]] = [:]
    for (stream, acknowledgement) in Self.publications {
      try client.openPublication(topic, stream: stream, acknowledgement: acknowledgement)
      sent[stream] = []
    }
    func publish(_ count: Int) throws {
      for stream in Self.publications.keys {
        for _ in 0..<count {
          let ledger = client.publications[stream]!
          guard ledger.end == nil, ledger.sent < ledger.granted, ledger.bytesSent + 100 < ledger.bytesGranted
          else { break }
          let mark = "<\(number).\(stream).\(sent[stream]!.count)>"
          sent[stream]!.append(mark)
          try client.publish([mark], stream: stream)
        }
      }
    }
    try publish(3)
    for stream in Self.publications.keys { try client.receiveAcknowledgements(stream: stream) }

    // Some are under way when the owner stops, and some arrive while it can't read them.
    try publish(8)
    usleep(UInt32(random.next() % 3_000))
    stage.nodes[stale].signal(SIGSTOP)
    var acknowledgements: [Acknowledgement] = []
    func receive(_ seconds: Double, isAwake: Bool) throws {
      guard let frame = try client.receiveIfAny(within: seconds), frame.type == .ack else { return }
      acknowledgements.append(.init(stream: frame.stream, ack: try frame.decode(Ack.self), isAwake: isAwake))
    }
    try publish(8)
    let successor: ClusterInfo.Shard
    do {
      successor = try owner(at: other) { $0.owner != before.owner && $0.term > before.term }
    } catch {
      stage.nodes[stale].signal(SIGCONT)
      throw error
    }
    // What the owner sent before it stopped.
    for _ in 0..<100 { try receive(0.001, isAwake: false) }
    let published = try publishElsewhere(at: other)

    delivered.isAwake = true
    stage.nodes[stale].signal(SIGCONT)
    // Until it is an ordinary node again and has answered its clients.
    try eventually("\(before.owner) is back\(stage.logs)") {
      try receive(0.02, isAwake: true)
      return try isBack(stale, from: other)
    }
    let deadline = Deadline(in: 2)
    while !client.hasEnded, !deadline.isOver {
      try receive(0.02, isAwake: true)
      let isAnswered = Self.publications.keys.allSatisfy { stream in
        let ledger = client.publications[stream]!
        return ledger.end != nil || ledger.acknowledged == ledger.sent
      }
      if isAnswered { break }
    }
    for _ in 0..<100 { try receive(0.001, isAwake: true) }
    client.close()

    let stored = try records(from: place.nextOffset, at: other)
    let offsets = Dictionary(grouping: stored.indices, by: { stored[$0] })
    findings.violations += offsets.filter { $0.value.count > 1 }.map {
      "\($0.key) is stored \($0.value.count) times"
    }
    func check(_ mark: String?, at offset: UInt64, _ what: String) {
      let index = Int(offset) - Int(place.nextOffset)
      let found = stored.indices.contains(index) ? stored[index] : "nothing"
      if found != mark {
        findings.violations.append(
          "\(topic)@\(offset) is \(found) under term \(successor.term), and \(mark ?? "nothing") was \(what)")
      }
    }
    for (index, mark) in published.marks.enumerated() {
      check(
        mark, at: published.last - UInt64(published.marks.count - 1 - index), "acknowledged by the successor")
    }
    for acknowledgement in acknowledgements {
      // What was only received may be lost with its owner, and what was delivered then, too.
      guard acknowledgement.isAwake || acknowledgement.stream == 2 || !deliversUnsaved else { continue }
      let marks = sent[acknowledgement.stream]!.prefix(Int(acknowledgement.ack.through))
      check(marks.last, at: acknowledgement.ack.lastOffset, "acknowledged by \(before.owner)")
      for mark in marks where offsets[mark] == nil {
        findings.violations.append("\(mark) isn't stored, which \(before.owner) has acknowledged")
      }
    }
    for (offset, mark, isAwake) in delivered.records where isAwake || !deliversUnsaved {
      check(mark, at: offset, "delivered by \(before.owner)")
    }
    findings.acknowledgements = acknowledgements.count { $0.isAwake }
    findings.deliveries = delivered.records.count { $0.2 }
    findings.forwarded = sent.values.joined().count { offsets[$0] != nil }
    return findings
  }

  private struct Acknowledgement {
    var stream: UInt32
    var ack: Ack
    var isAwake: Bool
  }

  /// What the subscriber at the owner has got, and whether that was after it had woken up.
  private final class Delivered {
    var records: [(UInt64, String, Bool)] = []
    var isAwake = false
  }

  // MARK: The other nodes

  var shard: Int { ShardHash.shard(of: topic, of: 64) }

  private func info(at node: Int) throws -> ClusterInfo {
    let client = try RawClient(stage.nodes[node].address)
    defer { client.close() }
    try client.shakeHands(name: "observer")
    try client.send(ClusterShow(nodes: 10, shards: 64), stream: 1001)
    return try client.answer(ClusterInfo.self, stream: 1001)
  }

  /// Waits until a node knows such an owner of the topic's shard.
  private func owner(
    at node: Int, _ isWanted: (ClusterInfo.Shard) -> Bool
  ) throws -> ClusterInfo.Shard {
    var found: ClusterInfo.Shard?
    try eventually("an owner of \(topic)\(stage.logs)") {
      found = try info(at: node).shards.first { $0.number == shard && $0.state == .held && isWanted($0) }
      return found != nil
    }
    return found!
  }

  /// Whether a node is in the cluster, as it knows itself and as another one does.
  private func isBack(_ node: Int, from other: Int) throws -> Bool {
    guard try info(at: node).unreadiness.isEmpty else { return false }
    return try info(at: other).nodes.contains {
      $0.name == stage.nodes[node].name && $0.state == .live && $0.silence < 1_000
    }
  }

  /// Publishes through another node than the stale one, and waits for the acknowledgement. Returns what, and the offset of the last one.
  private func publishElsewhere(at node: Int) throws -> (marks: [String], last: UInt64) {
    let deadline = Deadline(in: 60)
    var attempt = 0
    while true {
      attempt += 1
      let marks = (0..<5).map { "<\(number).other.\(attempt).\($0)>" }
      do {
        let client = try RawClient(stage.nodes[node].address)
        defer { client.close() }
        try client.shakeHands(name: "elsewhere")
        try client.openPublication(topic, stream: 2, acknowledgement: .durable)
        try client.publish(marks, stream: 2)
        try client.receiveAcknowledgements(stream: 2)
        return (marks, client.publications[2]!.lastOffset!)
      } catch {
        if deadline.isOver { throw error }
        pause(0.05)
      }
    }
  }

  /// The marks of all that is stored.
  func marks() throws -> [String] {
    try records(from: 0, at: 0).map { String($0.dropFirst().dropLast()) }
  }

  /// All that is stored from an offset on.
  private func records(from offset: UInt64, at node: Int) throws -> [String] {
    let client = try RawClient(stage.nodes[node].address)
    defer { client.close() }
    try client.shakeHands(name: "reader")
    let place = try client.subscribe(topic, stream: 1, from: .offset(offset), lag: .fail)
    if place.liveOffset > offset { try client.receiveRecords(place.liveOffset - offset, stream: 1) }
    return client.subscriptions[1]!.texts
  }
}
