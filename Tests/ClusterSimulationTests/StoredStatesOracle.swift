import SluiceEngineModel
import SluiceIO
import SluiceStore
import SluiceWire

@testable import SluiceCluster
@testable import SluiceTopics

/// Records the state of groups and durable cursors that the engine has stored. Reads the messages of all shards as they are committed, and counts those
/// that a next owner would count.
///
/// Groups and cursors are identified by their names, which a test uses once.
final class StoredStatesOracle {
  /// The stored state of a cursor or a group.
  private struct History {
    /// The next offset of a cursor.
    var place: UInt64 = 0
    /// For a group: when each record was first stored as done, by offset; and the records that aren't done.
    var done: [UInt64: MonotonicTime] = [:]
    var open: Set<UInt64> = []
    /// The next delivery of each record that waits for its retry, by offset: its number, and its time by the wall clock.
    var retries: [UInt64: (delivery: Int, time: Int64)] = [:]
    var frontier: UInt64 = 0
  }

  private var names: Set<String> = []
  private var histories: [String: History] = [:]
  private var fences: [String: FenceTable] = [:]
  /// The parts of an incomplete change, by subject.
  private var parts: [String: [UInt8]] = [:]
  private(set) var problems: [String] = []

  /// Watches a group or cursor of that name. Without any, nothing is read.
  func watch(_ name: String) { names.insert(name) }

  /// Whether the engine has stored the group or cursor.
  func isThere(_ name: String) -> Bool { histories[name] != nil }

  /// When a record was stored as done by a group; nil if it wasn't yet.
  func doneTime(of offset: UInt64, in group: String) -> MonotonicTime? { histories[group]?.done[offset] }

  /// Whether all records of the group before `end` are stored as done.
  func isAllDone(in group: String, through end: Int) -> Bool {
    guard let history = histories[group] else { return end == 0 }
    return history.frontier >= UInt64(end) && history.open.isEmpty
  }

  /// The stored state of a group, for messages.
  func summary(of group: String) -> String {
    histories[group].map { "through \($0.frontier) but for \($0.open.sorted())" } ?? "nothing"
  }

  /// The time of a delivery by the wall clock, if it is stored that the record waits for it.
  func retryTime(of offset: UInt64, delivery: Int, in group: String) -> Int64? {
    histories[group]?.retries[offset].flatMap { $0.delivery == delivery ? $0.time : nil }
  }

  /// Where a cursor stood when it was stored last; 0 before it was.
  func place(of cursor: String) -> UInt64 { histories[cursor]?.place ?? 0 }

  func committed(_ stream: String, _ message: StreamContents.Message, at time: MonotonicTime) {
    guard stream.hasPrefix("SLUICE_"), stream != ControlRecord.stream else { return }
    do throws(StoreError) {
      try read(message, of: stream, at: time)
    } catch {
      problems.append("\(stream) has a message that can't be read: \(error)")
    }
  }

  private func read(
    _ message: StreamContents.Message, of stream: String, at time: MonotonicTime
  ) throws(StoreError) {
    let result = message.payload.withUnsafeBytes { bytes -> Result<Void, StoreError> in
      do throws(StoreError) {
        var reader = ByteReader(bytes)
        let envelope = try EngineEnvelope(&reader)
        switch envelope.kind {
        case .fence:
          fences[stream, default: FenceTable()].take(try EngineFence(&reader), at: message.sequence)
        case .change:
          fences[stream]?.note(message.sequence, under: envelope.fence)
          guard !names.isEmpty, fences[stream]?.counts(message.sequence, under: envelope.fence) == true
          else { break }
          let body = UnsafeRawBufferPointer(rebasing: bytes[EngineEnvelope.size...])
          try take(body, envelope, message.subject, at: time)
        default: break
        }
        return .success(())
      } catch {
        return .failure(error)
      }
    }
    try result.get()
  }

  private func take(
    _ body: UnsafeRawBufferPointer, _ envelope: EngineEnvelope, _ subject: String, at time: MonotonicTime
  ) throws(StoreError) {
    if envelope.parts == 1 { return try take(EngineChange(body), at: time) }
    parts[subject] = (envelope.part == 0 ? [] : parts[subject] ?? []) + body
    guard envelope.part == envelope.parts - 1, let whole = parts.removeValue(forKey: subject) else { return }
    let result = whole.withUnsafeBytes { bytes -> Result<EngineChange, StoreError> in
      do throws(StoreError) { return .success(try EngineChange(bytes)) } catch { return .failure(error) }
    }
    try take(result.get(), at: time)
  }

  private func take(_ change: EngineChange, at time: MonotonicTime) throws(StoreError) {
    for state in change.states where state.kind == .group || state.kind == .cursor {
      let name = try StoredValue.name(state.key)
      guard names.contains(name), let value = state.value else { continue }
      if state.kind == .cursor {
        note(place: try StoredCursor(decoding: value).found.place.nextOffset, of: name)
      } else {
        note(try StoredGroup(decoding: value).state, of: name, at: time)
      }
    }
  }

  private func note(place: UInt64, of name: String) {
    let former = self.place(of: name)
    if place < former { problems.append("cursor \(name) is stored at \(place), behind \(former)") }
    histories[name, default: History()].place = max(place, former)
  }

  private func note(_ state: GroupState.Snapshot, of name: String, at time: MonotonicTime) {
    var history = histories[name] ?? History()
    history.open = Set(state.entries.map(\.offset))
    history.retries = [:]
    for entry in state.entries {
      guard let time = entry.retryAt else { continue }
      history.retries[entry.offset] = (Int(entry.deliveries) + 1, time)
    }
    if state.frontier < history.frontier {
      problems.append("group \(name) is stored at \(state.frontier), behind \(history.frontier)")
    }
    history.frontier = max(history.frontier, state.frontier)
    for offset in 0..<state.frontier where history.done[offset] == nil && !history.open.contains(offset) {
      history.done[offset] = time
    }
    for offset in history.open where history.done[offset] != nil {
      problems.append("record \(offset) of group \(name) is stored as open, and was stored as done with")
    }
    histories[name] = history
  }
}
