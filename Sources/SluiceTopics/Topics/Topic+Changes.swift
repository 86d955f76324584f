import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

// Changes that an operator makes to a topic in use: its settings, and its first offset.
extension Topic {
  /// Changes the settings that `changes` names. Attached clients stay attached, and producers keep their grants. From any loop.
  ///
  /// - Throws: ``ErrorCode/invalidSetting`` for a setting that can't be changed while the topic exists; ``ErrorCode/unknownTopic`` when it was deleted.
  package func change(_ changes: TopicSettings, now: MonotonicTime, wallClock: Int64) throws(WireError) {
    let (result, loopStates): (Result<[Group], WireError>, [TopicLoopState]) = state.withLock { state in
      if let departure = state.departure { return (.failure(refusal(of: departure)), []) }
      let present = settings
      if let refusal = changes.changeRefusal(for: name, having: present) { return (.failure(refusal), []) }
      let complete = changes.completed(by: present)
      // Written once, so that a repeated request causes no write to disk.
      if complete == present, state.isStated { return (.success([]), []) }
      take(complete, replacing: present, &state, wallClock: wallClock)
      return (.success(present.flow == .free ? Array(state.groups.values) : []), state.loopStates)
    }
    let groups = try result.get()
    // Until the loop states report, they protect all records.
    if isPaced { for group in groups { group.reportPosition(now: now) } }
    notify(loopStates)
    for loopState in loopStates { loopState.wakeProducers() }
    commit(within: .zero)
  }

  /// With the lock held.
  private func take(
    _ complete: TopicSettings, replacing present: TopicSettings, _ state: inout State, wallClock: Int64
  ) {
    apply(complete, to: &state)
    state.isStated = true
    state.tail?.noteRow()
    state.epoch.retain(complete, now: wallClock)
    if complete.connect != present.connect { connect(by: complete, &state) }
    if present.flow == .free, complete.flow != .free {
      // The buffer for the first subscriber begins at this offset.
      if state.presentSubscriptions == 0 { state.lastSubscriberOffset = state.nextOffset }
      protectReaders(state)
    }
  }

  /// Drops the topic's oldest records, except those that an attached subscriber or group of a lossless topic has yet to get. From any loop.
  ///
  /// - Throws: ``ErrorCode/invalidSetting`` if the topic ends before the offset; ``ErrorCode/unknownTopic`` if it was deleted.
  /// - Returns: how many records late subscribers no longer get.
  @discardableResult
  package func trim(to limit: TrimLimit) throws(WireError) -> UInt64 {
    let (result, loopStates): (Result<UInt64, WireError>, [TopicLoopState]) = state.withLock { state in
      if let departure = state.departure { return (.failure(refusal(of: departure)), []) }
      let head = state.nextOffset
      let first: UInt64
      switch limit {
      case .from(let offset) where offset > head:
        return (.failure(endsBefore(offset, head)), [])
      case .from(let offset): first = offset
      case .newest(let count): first = head - min(count, head)
      }
      return (.success(trim(to: limit, first, &state)), state.loopStates)
    }
    let count = try result.get()
    // Producers have room again, and mirrors on other nodes drop the same records.
    notify(loopStates)
    commit(within: .zero)
    return count
  }

  /// - Parameter first: the offset of the first record to keep, in a topic that isn't compact.
  private func trim(to limit: TrimLimit, _ first: UInt64, _ state: inout State) -> UInt64 {
    // Also drops records that producers have buffered for the first subscriber.
    if state.presentSubscriptions == 0, state.epoch.newest == nil {
      state.lastSubscriberOffset = max(state.lastSubscriberOffset, first)
    }
    let log = state.epoch.log
    let keep = keepFrom(state)
    if storage != nil { state.tail?.noteRow() }
    guard let newest = state.epoch.newest else {
      guard let storage else { return log.trim(to: first, keepingFrom: keep) }
      let before = storage.floor(before: state.nextOffset)
      storage.trim(to: first, keepingFrom: keep)
      // Records that aren't on disk stay in memory.
      log.trim(to: first, keepingFrom: min(keep ?? .max, state.tail?.committed ?? .max))
      return storage.floor(before: state.nextOffset) - before
    }
    let count = newest.trim(to: limit, keepingFrom: keepNewestFrom(state))
    switch limit {
    // Records that wait for the disk aren't among the newest records yet.
    case .from, .newest(0): newest.raise(keptFrom: first)
    case .newest: break
    }
    let floor = newest.trimmedTo
    log.trim(to: floor, keepingFrom: keepInMemoryFrom(state))
    if state.presentSubscriptions == 0 { state.lastSubscriberOffset = max(state.lastSubscriberOffset, floor) }
    return UInt64(count)
  }

  /// Keeps all records until the loop states have reported the positions of their subscriptions. With the lock held.
  func protectReaders(_ state: State) {
    guard state.subscriptions > 0 else { return }
    for loopState in state.loopStates { loopState.protectEverything() }
  }

  /// Connects or disconnects the topic as if it were new, with these settings and the present subscriptions. With the lock held.
  func connect(by settings: TopicSettings, _ state: inout State) {
    switch settings.connect {
    case .auto(let count), .autoStay(let count):
      state.isConnected = state.presentSubscriptions >= Int(count)
    case .manual: state.isConnected = false
    case .immediate, nil: state.isConnected = true
    }
  }

  private func refusal(of departure: TopicDeparture) -> WireError {
    let fault = departure.fault(of: name)
    return departure == .deleted ? unknown : WireError(fault)
  }

  private var unknown: WireError { WireError(.unknownTopic, "there is no topic \(name)") }

  private func endsBefore(_ offset: UInt64, _ head: UInt64) -> WireError {
    WireError(
      .invalidSetting,
      "topic \(name) can't be trimmed to offset \(offset): its next record gets offset \(head); name that one to drop every record"
    )
  }
}

extension TopicSettings {
  /// The reason why an existing topic can't change the settings; nil if it can. Setting the present value is no change.
  fileprivate func changeRefusal(for topic: String, having present: TopicSettings) -> WireError? {
    let fixed: [(isChanged: Bool, name: String, why: String)] = [
      (scope != nil && scope != present.scope, "scope", "it decides when the topic's records go"),
      (
        compact != nil && compact != present.compact, "compact",
        "it decides which records are kept, and whether they have keys"
      ),
      (storage != nil && storage != present.storage, "storage", "it decides where the topic's records are"),
      (
        sync != nil && sync != present.sync, "sync",
        "it decides when subscribers get records that wait for the disk"
      ),
    ]
    guard let (_, name, why) = fixed.first(where: \.isChanged) else { return nil }
    return WireError(
      .invalidSetting,
      "topic \(topic) can't be given another \(name) while it exists: \(why); create another topic, or delete this one and create it anew"
    )
  }
}
