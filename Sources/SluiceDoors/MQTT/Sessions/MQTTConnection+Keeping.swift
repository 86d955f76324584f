import SluiceIO
import SluiceMQTT
import SluiceWire

/// Changes of a session that are being stored, and work that waits for them.
///
/// One record is being written at a time. It covers all changes up to its number; later changes are in the next one.
final class MQTTKeeping {
  /// The number of changes that output waits for, and the last one that is stored.
  private(set) var wanted: UInt64 = 0
  private(set) var kept: UInt64 = 0
  fileprivate var isUnderWay = false
  /// Whether positions have changed. No work waits for that: if the change is lost, records that the client has acknowledged are sent again.
  var isDirty = false
  fileprivate var timer: TimerToken?
  /// When the next record may be written, after a long one.
  fileprivate var pause = MonotonicTime(nanoseconds: 0)

  /// Output that may be sent, and output that waits for changes.
  var sendable: [UInt8] = []
  fileprivate var guarded: [(change: UInt64, bytes: [UInt8])] = []
  /// Records of groups that were acknowledged since the last change, and those that wait for changes.
  var settles: [(number: UInt16, place: MQTTPlace)] = []
  fileprivate var guardedSettles: [(change: UInt64, number: UInt16, place: MQTTPlace)] = []

  /// Bytes of waiting output.
  var heldBytes: Int { guarded.reduce(sendable.count) { $0 + $1.bytes.count } }

  /// Whether all changes are stored, and no work waits for them.
  var isIdle: Bool {
    !isUnderWay && kept == wanted && !isDirty && timer == nil && sendable.isEmpty && guarded.isEmpty
      && settles.isEmpty && guardedSettles.isEmpty
  }

  /// Notes a change. Returns its number.
  @discardableResult
  func want() -> UInt64 {
    wanted += 1
    return wanted
  }

  /// Takes over the output of a turn.
  fileprivate func take(_ output: inout [UInt8]) {
    guard !output.isEmpty else { return }
    if kept < wanted || !guarded.isEmpty {
      guarded.append((wanted, output))
      output = []
    } else if sendable.isEmpty {
      swap(&sendable, &output)
    } else {
      sendable += output
      output = []
    }
  }

  /// Notes that all changes up to that one are stored. Returns the acknowledgements that may now be sent.
  fileprivate func finish(_ change: UInt64) -> [(number: UInt16, place: MQTTPlace)] {
    kept = max(kept, change)
    isUnderWay = false
    let count = guarded.prefix { $0.change <= kept }.count
    for (_, bytes) in guarded[..<count] { sendable += bytes }
    guarded.removeFirst(count)
    let settled = guardedSettles.prefix { $0.change <= kept }.map { ($0.number, $0.place) }
    guardedSettles.removeFirst(settled.count)
    return settled
  }
}

// Stores the session.
extension MQTTConnection {
  /// How long changed positions may remain unstored.
  private static let keepingDelay = Duration.milliseconds(250)
  /// Each record contains the whole session. After a long one, further changes wait for a time in proportion to its bytes, so that a client with many
  /// subscriptions or positions costs the store no more than others.
  private static let shortRecord = 64 << 10
  private static let bytesPerSecond = 8 << 20

  /// Returns the session in its stored form, for a connected client unless the caller sets `leftAt`.
  func keptSession(_ state: [UInt8], expiry: UInt32) -> MQTTKeptSession {
    var used = session.topicsUnderWay
    let positions = progress?.positions ?? [:]
    for place in positions.values { used.formUnion(place.offsets.keys) }
    // Leaves out messages that the client has released without sending them again.
    let open = session.unacknowledgedSequences
    let places = progress.map { $0.formerExact.merging($0.exact) { $1 }.filter { open.contains($0.key) } }
    return MQTTKeptSession(
      state: state, producer: progress?.producer ?? 0, topics: topics.topics(used), positions: positions,
      exact: places ?? [:], expiry: expiry)
  }

  /// Ends a turn: output that depends on changes waits until they are stored, as do messages at QoS 2.
  func keep() {
    guard keeping != nil else { return }
    keeping?.take(&output)
    for settle in keeping?.settles ?? [] { settleWhenKept(settle.number, settle.place) }
    keeping?.settles = []
    planExactMessages()
    guard let now = keeping, !now.isUnderWay else { return }
    let time = loop.now
    if now.kept < now.wanted, time >= now.pause { return putSession() }
    guard now.isDirty || now.kept < now.wanted else { return }
    let due = now.kept < now.wanted ? now.pause : max(now.pause, time + Self.keepingDelay)
    if let timer = now.timer {
      guard now.kept < now.wanted else { return }
      loop.cancel(timer)
    }
    keeping?.timer = loop.schedule(at: due) { [weak self] in
      guard let self else { return }
      keeping?.timer = nil
      guard let now = keeping, !now.isUnderWay, now.isDirty || now.kept < now.wanted else { return }
      putSession()
    }
  }

  private func settleWhenKept(_ number: UInt16, _ place: MQTTPlace) {
    guard let now = keeping, now.kept < now.wanted else { return settle(number, place) }
    keeping?.guardedSettles.append((now.wanted, number, place))
  }

  private func putSession() {
    guard let change = keeping?.wanted, phase == .open else { return }
    keeping?.isUnderWay = true
    keeping?.isDirty = false
    var kept = keptSession(session.isLasting ? session.encodedState : [], expiry: session.sessionExpiry)
    kept.will = will
    guard hub.canKeep(kept) else { return outgrow() }
    pauseKeeping(after: kept.approximateSize)
    let loop = loop
    hub.put(kept, of: self) { [weak self] isKept in
      loop.execute { [weak self] in self?.kept(change, isKept) }
    }
  }

  private func pauseKeeping(after bytes: Int) {
    guard bytes > Self.shortRecord else { return }
    let microseconds = Int64(bytes) * 1_000_000 / Int64(Self.bytesPerSecond)
    keeping?.pause = loop.now + .microseconds(microseconds)
  }

  private func kept(_ change: UInt64, _ isKept: Bool) {
    guard phase == .open, keeping != nil else { return }
    guard isKept || !isLasting else { return endUnkept(Self.noRoom) }
    for settled in keeping?.finish(change) ?? [] { settle(settled.number, settled.place) }
    sendOutput()
    endTurn()
  }

  /// No record can contain the session: ends it after the current turn.
  private func outgrow() {
    if let key { hub.note(.mqttSessionEnded(client: key.clientID, identity: key.identity)) }
    _ = loop.schedule(at: loop.now) { [weak self] in
      guard let self, phase == .open else { return }
      endUnkept(Self.tooLong)
    }
  }

  /// Ends the session because there is no room for it or its growth, and sends the reason to the client.
  private func endUnkept(_ error: MQTTError) {
    isForgotten = true
    // CONNACK waits for the first record.
    if keeping?.kept == 0 {
      refuse(error.reason, error.message)
      return endTurn()
    }
    play { session, output, perform in
      session.close(error.reason, error.message, output: &output, perform)
    }
    endTurn()
  }

  private static let tooLong = MQTTError(
    .quotaExceeded,
    "the session has become longer than a record of the broker may be (max-record): it has too many subscriptions, or places in too many topics; subscribe to fewer topics, or at QoS 0"
  )

  static let noRoom = MQTTError(
    .quotaExceeded,
    "the broker's room for sessions that outlive their connections is used up; connect without a session expiry interval, or with fewer subscriptions"
  )

  /// Assigns positions to messages at QoS 2. The positions are stored before the messages are sent, because the position of a repeated message shows whether
  /// it is in the log.
  private func planExactMessages() {
    guard let change = keeping?.wanted, let publishing else { return }
    var isPlanned = false
    for publication in publishing.byStream.values {
      for (message, place) in publication.plan(change: change + 1) {
        progress?.exact[message] = place
        isPlanned = true
      }
    }
    if isPlanned { keeping?.want() }
  }

  func stopKeeping() {
    if let timer = keeping?.timer { loop.cancel(timer) }
    keeping?.timer = nil
  }
}
