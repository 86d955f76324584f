import SluiceIO

/// One direction of a simulated connection: what was written and not read yet, on its way or arrived.
///
/// Nothing overtakes anything in a pipe. While its connection is cut nothing arrives and no room is reported; all of it
/// does some time after the connection has healed, as if it had been sent again. Only a reset is lost for good:
/// it isn't sent again.
final class SimulatedPipe {
  enum Packet {
    case bytes([UInt8])
    /// The sender sends no more.
    case end
    case reset
  }

  private let scheduler: SimulatedScheduler
  private let settings: SimulatedSettings
  private let name: String
  weak var sender: SimulatedStream?
  weak var receiver: SimulatedStream?

  private var underway: [(arrival: MonotonicTime, packet: Packet)] = []
  private var lastArrival: MonotonicTime
  private var isCut = false
  /// Room whose report was lost in a cut.
  private var unreportedRoom = 0

  /// Bytes that the sender counts as not read.
  private(set) var outstanding = 0
  private var arrived: [UInt8] = []
  private var arrivedStart = 0
  private(set) var hasEnded = false
  private(set) var wasReset = false

  init(name: String, scheduler: SimulatedScheduler, settings: SimulatedSettings) {
    self.name = name
    self.scheduler = scheduler
    self.settings = settings
    lastArrival = scheduler.now
  }

  // MARK: The sender's end

  var room: Int { max(0, settings.conditions.bufferSize - outstanding) }

  func send(_ bytes: [UInt8]) {
    outstanding += bytes.count
    guard bytes.count > 1, scheduler.random.oneIn(settings.conditions.splitOneIn) else {
      return enqueue(.bytes(bytes), size: bytes.count)
    }
    let cut = scheduler.random.next(in: 1...bytes.count - 1)
    enqueue(.bytes(Array(bytes[..<cut])), size: cut)
    enqueue(.bytes(Array(bytes[cut...])), size: bytes.count - cut)
  }

  func sendEnd() {
    enqueue(.end, size: 0)
  }

  /// Bytes on the way may still arrive in part: nothing is sent again.
  func sendReset() {
    let kept = scheduler.random.next(in: 0...underway.count)
    for (_, packet) in underway[kept...] {
      if case .bytes(let bytes) = packet { outstanding -= bytes.count }
    }
    underway.removeLast(underway.count - kept)
    enqueue(.reset, size: 0)
  }

  private func enqueue(_ packet: Packet, size: Int) {
    var arrival = max(lastArrival, scheduler.now + scheduler.random.next(in: settings.conditions.latency))
    if let rate = settings.conditions.bytesPerSecond {
      arrival = arrival + .nanoseconds(Int(Double(size) / Double(rate) * 1e9))
    }
    lastArrival = arrival
    underway.append((arrival, packet))
    expect(at: arrival)
  }

  // MARK: The way

  private func expect(at time: MonotonicTime) {
    // The network drops connections that have ended, with their bytes on the way.
    scheduler.schedule(at: time) { [weak self] in self?.arrive() }
  }

  private func arrive() {
    while !isCut, let (arrival, packet) = underway.first, arrival <= scheduler.now {
      underway.removeFirst()
      arrive(packet)
    }
    if isCut {
      underway.removeAll { arrival, packet in
        guard arrival <= scheduler.now, case .reset = packet else { return false }
        scheduler.note("\(name): reset lost")
        return true
      }
    }
  }

  private func arrive(_ packet: Packet) {
    switch packet {
    case .bytes(let bytes):
      scheduler.note("\(name): \(bytes.count) bytes arrive")
      guard let receiver, receiver.takesBytes else {
        reportRoom(bytes.count)
        receiver?.bytesArrivedTooLate()
        return
      }
      arrived += bytes
      receiver.somethingArrived()
    case .end:
      scheduler.note("\(name): end arrives")
      hasEnded = true
      receiver?.somethingArrived()
    case .reset:
      scheduler.note("\(name): reset arrives")
      wasReset = true
      receiver?.somethingArrived()
    }
  }

  func cut() {
    isCut = true
  }

  /// The receiver learns at once that the connection is gone; what was on its way is lost.
  func tear() {
    underway = []
    wasReset = true
    receiver?.somethingArrived()
  }

  func heal() {
    isCut = false
    let again = scheduler.now + scheduler.random.next(in: settings.conditions.retransmission)
    for index in underway.indices { underway[index].arrival = max(underway[index].arrival, again) }
    lastArrival = max(lastArrival, again)
    for entry in underway { expect(at: entry.arrival) }
    if unreportedRoom > 0 {
      let room = unreportedRoom
      unreportedRoom = 0
      reportRoom(room)
    }
  }

  // MARK: The receiver's end

  var unread: Int { arrived.count - arrivedStart }

  /// Gives as many bytes as there are, or as fit; at times fewer.
  func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    var count = min(unread, buffer.count)
    if count > 1, scheduler.random.oneIn(settings.conditions.partialReadOneIn) {
      count = scheduler.random.next(in: 1...count)
    }
    unsafe arrived.withUnsafeBytes { bytes in
      unsafe buffer.copyMemory(
        from: UnsafeRawBufferPointer(rebasing: bytes[arrivedStart..<arrivedStart + count]))
    }
    arrivedStart += count
    if arrivedStart == arrived.count {
      if settings.conditions.freesBuffers { arrived = [] } else { arrived.removeAll(keepingCapacity: true) }
      arrivedStart = 0
    }
    reportRoom(count)
    return count
  }

  /// Forgets what has arrived.
  func discard() {
    let count = unread
    arrived = []
    arrivedStart = 0
    if count > 0 { reportRoom(count) }
  }

  private func reportRoom(_ count: Int) {
    scheduler.schedule(after: scheduler.random.next(in: settings.conditions.latency)) { [weak self] in
      guard let self else { return }
      if isCut {
        unreportedRoom += count
      } else {
        outstanding -= count
        sender?.roomAppeared()
      }
    }
  }
}
