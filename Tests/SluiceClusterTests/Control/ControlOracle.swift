import SluiceEngineModel

@testable import SluiceCluster

/// Checks each message of the stream `SLUICE_CTL` as it is committed: sessions and terms follow the rules, whatever nodes believe.
final class ControlOracle {
  private(set) var violations: [String] = []
  private var nodes: [String: NodeRecord] = [:]
  private var shards: [Int: ShardRecord] = [:]
  private(set) var takes = 0
  /// The number of terms that an owner handed over to the next one.
  private(set) var gifts = 0

  func committed(_ stored: StreamContents.Message) {
    guard
      let record = ControlRecord(
        subject: stored.subject, payload: String(decoding: stored.payload, as: UTF8.self),
        sequence: stored.sequence)
    else { return fault("\(stored.subject) can't be read") }
    switch record {
    case .node(let name, let record?): check(name, record, stored.sequence)
    case .shard(let shard, let record?): check(shard, record, stored.sequence)
    default: break
    }
  }

  private func fault(_ text: String) { violations.append(text) }

  private func check(_ name: String, _ record: NodeRecord, _ sequence: UInt64) {
    let before = nodes[name]
    if record.session != sequence {
      // A renewal or an end must belong to the present session. Ending it again changes nothing.
      if before?.session != record.session || (before?.state == .ended && record.state != .ended) {
        fault("\(sequence): \(name) goes on with session \(record.session), which is over")
      }
    }
    nodes[name] = record
  }

  private func check(_ shard: Int, _ record: ShardRecord, _ sequence: UInt64) {
    let before = shards[shard]
    if record.term == sequence {
      takes += 1
      let isGiven = before.map { $0.state != .free && record.giver == $0.owner } ?? false
      if isGiven { gifts += 1 }
      if let before, before.state != .free, isLive(before), !isGiven {
        fault("\(sequence): shard \(shard) was taken by \(record.owner) while \(before.owner) had it")
      }
    } else if before?.term != record.term {
      fault("\(sequence): \(record.owner) writes about shard \(shard) in a term that is over")
    }
    shards[shard] = record
  }

  private func isLive(_ record: ShardRecord) -> Bool {
    guard let node = nodes[record.owner] else { return false }
    return node.session == record.session && node.state != .ended
  }
}
