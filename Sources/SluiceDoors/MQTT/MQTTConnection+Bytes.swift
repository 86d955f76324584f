import SluiceIO
import SluiceMQTT
import SluiceWire

// Bytes from and to the client.
extension MQTTConnection {
  /// Bytes to read at a time; fewer for a client that sends single messages, so that they fit on the stack and need no allocation.
  private static let littleRead = 1024
  private static let muchRead = 65_536

  func streamReadable() {
    guard phase == .open else { return }
    if readsMuch {
      unsafe withUnsafeTemporaryAllocation(byteCount: Self.muchRead, alignment: 16) { unsafe read(into: $0) }
    } else {
      unsafe withUnsafeTemporaryAllocation(byteCount: Self.littleRead, alignment: 16) {
        unsafe read(into: $0)
      }
    }
    // This is an event of the client's stream, not a call of the broker, so the broker can read at once.
    if sendsAhead {
      sendOutput()
      sendPublications()
      link.handOut()
      handle.shared.endTurnLater(self)
    } else {
      endTurn(wakesBroker: false)
      link.handOut()
    }
    link.wake()
  }

  /// Whether a message that has just arrived goes to the broker, and from there to its subscribers, before any other work for its sender. Not if a change
  /// must be stored first.
  private var sendsAhead: Bool { phase == .open && pendingBytes > 0 && keeping == nil && part == nil }

  private func read(into buffer: UnsafeMutableRawBufferPointer) {
    switch unsafe transport.read(into: buffer) {
    case .wouldBlock: return
    case .end: transportEnded()
    case .failed(let error):
      transportIsOpen = false
      self.error = error
      transportEnded()
    case .bytes(let count):
      readsMuch = count >= Self.littleRead
      handle.shared.traffic.bytesReceived.add(count)
      unsafe take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  private func take(_ bytes: UnsafeRawBufferPointer) {
    guard unread.isEmpty else {
      unsafe unread.append(contentsOf: bytes)
      return takeUnread()
    }
    let taken = unsafe receive(bytes)
    if taken < bytes.count { unread = unsafe Array(bytes[taken...]) }
  }

  private func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    let now = loop.now.nanoseconds
    // One access for all, which avoids a copy of the session.
    return play { session, output, perform in
      let received = unsafe session.receive(bytes, now: now, output: &output, perform)
      (marksOwn, partialBytes) = (received.hasNoLocal, received.heldBytes)
      return received.taken
    }
  }

  // Not inlined: otherwise the optimiser would read the mark, with a check of overlapping accesses, before it is known whether the mark is needed.
  @inline(never)
  func makeMark() {
    // The mark is the same for all connections of the client, on every node, because messages from its earlier connections are its own as well.
    if mark == nil, let key {
      mark = String(IdentityDigest.number(of: key.clientID, of: key.identity), radix: 36)
    }
  }

  /// Processes bytes that arrived before the broker's answers.
  func takeUnread() {
    while phase == .open, !unread.isEmpty, pendingBytes <= Self.maximumPending {
      let bytes = unread
      unread = []
      let taken = unsafe bytes.withUnsafeBytes { unsafe receive($0) }
      let rest = bytes[taken...]
      unread = rest + unread
      if taken == 0 { return }
    }
  }

  private func transportEnded() {
    play { session, _, perform in session.transportEnded(perform) }
  }

  func streamWritable() {
    sendOutput()
    if unsent == 0 { endTurn() }
  }

  var obstacle: StreamObstacle? { transport.obstacle }

  var heldBytes: Int {
    let own = unsent + unread.count + pendingBytes + partialBytes + transport.heldBytes
    return held.isEmpty ? own : held.reduce(own) { $0 + $1.bytes.count }
  }

  /// Bytes for the client that wait for it to read, or for the store.
  @inline(__always)
  var unsent: Int { keeping == nil ? output.count : output.count + keptBytes }

  @inline(never)
  private var keptBytes: Int { keeping?.heldBytes ?? 0 }

  func streamFailed(_ error: IOError) {
    dropOutput()
    guard phase == .open else { return }
    self.error = error
    transportEnded()
    endTurn()
  }

  private func dropOutput() {
    transportIsOpen = false
    output = []
    keeping?.sendable = []
  }

  /// Bytes that may be sent.
  private var unsentOutput: Int { keeping == nil ? output.count : keeping?.sendable.count ?? 0 }

  func sendOutput() {
    guard transportIsOpen else { return }
    var isSent = true
    let before = unsentOutput
    defer { handle.shared.traffic.bytesSent.add(before - unsentOutput) }
    if keeping == nil {
      if !output.isEmpty { isSent = output.write(to: transport) }
    } else if let count = keeping?.sendable.count, count > 0 {
      isSent = keeping?.sendable.write(to: transport) ?? true
    }
    if isSent { return }
    dropOutput()
    if phase == .open { transportEnded() }
  }

  /// Pauses reading while earlier messages wait for the broker's grants, or the broker for its own work.
  func updateReading() {
    guard transportIsOpen else { return }
    let pauses =
      phase != .open || !unread.isEmpty || pendingBytes > Self.maximumPending || link.isFull
      || unsent > 4 * Self.maximumOutput
    guard pauses != isReadingPaused else { return }
    isReadingPaused = pauses
    transport.readsPaused = pauses
  }

  /// Closes the client's stream once its output is sent.
  func closeTransport() {
    guard transportIsOpen else { return }
    // Packets that wait for the store are dropped; those at the end of the connection don't depend on it.
    keeping?.sendable += output
    if keeping != nil { output = [] }
    sendOutput()
    guard transportIsOpen else { return }
    transportIsOpen = false
    transport.close()
  }
}
