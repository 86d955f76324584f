import SluiceIO
import SluiceStore
import SluiceWire
import Synchronization

// The states of a durable topic's producers and groups as bytes, for backups. From any loop.
extension Topic {
  /// The number of producers with an ID that the topic keeps.
  package var knownProducerCount: Int { state.withLock { $0.producers.count } }

  /// States of one kind in byte order of their keys, at this moment.
  ///
  /// - Parameters:
  ///   - key: only those behind it; empty for the first ones.
  ///   - bytes: how many bytes they may have together, unless the first one has more.
  ///   - clocks: the present time.
  /// - Throws: ``ErrorCode/unsupported`` for a topic in memory.
  package func states(_ kind: StateEntry.Kind, after key: [UInt8], bytes: Int, at clocks: ClockReading)
    throws(WireError) -> TopicStates
  {
    try requireStorage()
    switch kind {
    case .producer: return try producerStates(after: key, bytes: bytes)
    case .group: return groupStates(after: key, bytes: bytes, at: clocks)
    }
  }

  private func requireStorage() throws(WireError) {
    guard storage == nil else { return }
    throw WireError(
      .unsupported,
      "topic \(name) is kept in memory; the states of durable topics alone can be kept elsewhere")
  }

  private func producerStates(after key: [UInt8], bytes: Int) throws(WireError) -> TopicStates {
    let number: UInt64?
    do throws(StoreError) {
      number = key.isEmpty ? nil : try StoredValue.number(key)
    } catch {
      throw WireError(.unsupported, error.message)
    }
    // Read under one lock, so that a producer's sequence and the topic's next offset agree.
    let limit = bytes / Self.producerStateBytes
    let (page, epoch, next) = state.withLock { state in
      (state.producers.list(after: number, limit: limit), state.epoch.number, state.nextOffset)
    }
    let states = page.producers.map {
      StateEntry(key: StoredValue.key($0.producer), value: StoredProducer(next: $0.next).encoded())
    }
    return TopicStates(epoch: epoch, nextOffset: next, states: states, more: page.more)
  }

  /// The bytes of a producer's state in a page.
  private static let producerStateBytes = 32

  /// The least bytes of a group's state in a page.
  private static let groupStateBytes = 17

  private func groupStates(after key: [UInt8], bytes: Int, at clocks: ClockReading) -> TopicStates {
    let (groups, epoch, next) = state.withLock { state in
      (Array(state.groups.values), state.epoch.number, state.nextOffset)
    }
    let after = String(decoding: key, as: UTF8.self)
    let due = groups.lazy.filter { key.isEmpty || NameSpan.precedes(after, $0.name) }
      .page(atMost: bytes / Self.groupStateBytes) { NameSpan.precedes($0.name, $1.name) }
    var page = TopicStates(epoch: epoch, nextOffset: next, states: [], more: due.more)
    var size = 0
    for group in due.page {
      let (key, value) = (StoredValue.key(group.name), group.stored(at: clocks).encoded())
      size += key.count + value.count + 16
      if size > bytes, !page.states.isEmpty {
        page.more = true
        break
      }
      page.states.append(StateEntry(key: key, value: value))
    }
    return page
  }

  // MARK: Giving them back

  /// Restores producers and groups in the state that they had elsewhere.
  ///
  /// - Parameters:
  ///   - states: the next states of `frame`.
  ///   - account: the account that they are charged to; nil for the broker's own.
  ///   - mayKeepDeadLetters: throws if the client may not publish to a group's dead-letter topic.
  /// - Throws: ``ErrorCode/unsupported`` for a topic in memory, and for states that this version doesn't support; ``ErrorCode/groupMismatch`` if the group,
  ///   or a cursor of that name, exists; ``ErrorCode/limitReached``. The states before the refused one have been restored.
  package func restore(
    _ states: [StateEntry], of frame: StateRestore, by account: KeptAccount? = nil, on loop: TopicLoop,
    _ mayKeepDeadLetters: (String) throws(WireError) -> Void
  ) throws(WireError) {
    try requireStorage()
    defer { groupMoved() }
    for given in states {
      switch frame.kind {
      case .producer: try restoreProducer(given, by: account, now: loop.loop.now)
      case .group:
        let (name, group) = try Self.decode { () throws(StoreError) in
          (try StoredValue.name(given.key), try StoredGroup(decoding: given.value))
        }
        try TopicName.validate(name, as: "group")
        if !group.settings.deadLetters.isEmpty { try mayKeepDeadLetters(group.settings.deadLetters) }
        try restore(group, named: name, from: frame.origin, by: account, on: loop)
      }
    }
  }

  private static func decode<Value>(_ body: () throws(StoreError) -> Value) throws(WireError) -> Value {
    do throws(StoreError) {
      return try body()
    } catch {
      throw WireError(.unsupported, error.message)
    }
  }

  private func restoreProducer(
    _ given: StateEntry, by account: KeptAccount?, now: MonotonicTime
  ) throws(WireError) {
    let (number, next) = try Self.decode { () throws(StoreError) in
      (try StoredValue.number(given.key), try StoredProducer(decoding: given.value).next)
    }
    let refusal: WireError? = state.withLock { state in
      do throws(WireError) {
        let isNew = state.producers.next(of: number) == nil
        let charge = isNew ? try keeper(account)?.charge(KeptMemory.producer, isPlain: true) : nil
        state.producers.raise(number, to: next, charge: charge, now: now)
      } catch {
        return error
      }
      if let next = state.producers.next(of: number) { state.tail?.note(producer: number, next: next) }
      return nil
    }
    if let refusal { throw refusal }
  }

  private func restore(
    _ stored: StoredGroup, named group: String, from origin: UInt64, by account: KeptAccount?,
    on loop: TopicLoop
  ) throws(WireError) {
    var stored = stored
    stored.state.shift(by: origin)
    let (limits, now) = (loop.registry.limits, loop.loop.now)
    let refusal: WireError? = state.withLock { state in
      guard state.groups[group] == nil, !Self.hasCursor(group, state, now: now) else {
        return WireError(
          .groupMismatch, "topic \(name) has a group or a durable cursor \(group) already; delete it first")
      }
      guard state.groups.count + state.cursors.count < limits.cursors else {
        return WireError(
          .limitReached,
          "topic \(name) has \(limits.cursors) cursors and groups, which is its limit; delete some")
      }
      let kept: KeptAccount.Charge?
      do throws(WireError) {
        kept = try keeper(account)?.charge(Group.bytes(of: group, stored.settings))
      } catch {
        return error
      }
      state.groups[group] = Group(
        name: group, restoring: stored, topic: self, epoch: state.epoch, limit: limits.groupRecords,
        kept: kept, at: loop.loop.clocks)
      state.tail?.note(madeGroup: group)
      return nil
    }
    if let refusal { throw refusal }
  }
}
