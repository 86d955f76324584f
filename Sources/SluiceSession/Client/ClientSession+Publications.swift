import SluiceWire

// Publications: records out, demand and acknowledgements in.
extension ClientSession {
  /// Opens a publication, without any grant at first.
  ///
  /// - Parameters:
  ///   - first: the sequence of its first record.
  ///   - isSource: whether the broker reports when the topic is connected.
  /// - Returns: the stream's number; nil when the broker accepts no more streams.
  package mutating func openPublication(from first: UInt64 = 0, isSource: Bool = false) -> UInt32? {
    open(.publication(Outbound(firstSequence: first, isSource: isSource)))
  }

  /// The number of records that may be published now; ``Credit/unlimited`` for no limit.
  package func available(_ stream: UInt32) -> UInt64 {
    guard case .publication(let outbound) = self[stream], outbound.isOpen, !outbound.isCompleting else {
      return 0
    }
    return outbound.bytesSpent < outbound.bytesGranted ? outbound.credit.available : 0
  }

  /// The number of bytes that may be published now. The first record may be longer.
  package func availableBytes(_ stream: UInt32) -> UInt64 {
    guard case .publication(let outbound) = self[stream] else { return 0 }
    return outbound.bytesGranted - min(outbound.bytesGranted, outbound.bytesSpent)
  }

  /// Spends credit for `count` records of `bytes` bytes. Returns the sequence of the first.
  ///
  /// - Precondition: at least `count` records are available.
  package mutating func publish(_ stream: UInt32, count: UInt32, bytes: Int) -> UInt64 {
    guard case .publication(var outbound) = self[stream] else {
      preconditionFailure("published on a stream that isn't a publication")
    }
    let first = outbound.credit.spent
    let isGranted = outbound.credit.spend(UInt64(count))
    precondition(isGranted, "published beyond the grant")
    outbound.bytesSpent &+= UInt64(bytes)
    self[stream] = .publication(outbound)
    return first
  }

  /// Marks a publication as completing. Returns whether COMPLETE is to be sent: false when the stream is closed or completing.
  package mutating func completePublication(_ stream: UInt32) -> Bool {
    guard case .publication(var outbound) = self[stream], outbound.isOpen, !outbound.isCompleting else {
      return false
    }
    outbound.isCompleting = true
    self[stream] = .publication(outbound)
    return true
  }

  mutating func publishOpened(_ stream: UInt32, _ frame: PublishOpened) throws(WireError) -> ClientAction {
    switch self[stream] {
    case .publication(var outbound) where !outbound.isOpen:
      guard frame.nextSequence >= outbound.firstSequence else {
        throw WireError(
          .malformedFrame,
          "PUBLISH_OPENED goes back to sequence \(frame.nextSequence) on stream \(stream), before \(outbound.firstSequence)"
        )
      }
      outbound.isOpen = true
      outbound.credit = Credit(granted: frame.grantedThrough, spent: frame.nextSequence)
      outbound.bytesGranted = frame.bytesThrough
      outbound.acknowledged = frame.nextSequence
      self[stream] = .publication(outbound)
      return .publicationOpened(stream: stream, frame)
    case .cancelling: return .none
    default: throw misplaced(.publishOpened, stream)
    }
  }

  mutating func demand(_ stream: UInt32, _ frame: Demand) throws(WireError) -> ClientAction {
    guard var outbound = try publication(stream, .demand) else { return .none }
    let isMore = outbound.credit.raise(to: frame.grantedThrough)
    guard isMore || frame.bytesThrough > outbound.bytesGranted else { return .none }
    outbound.bytesGranted = max(outbound.bytesGranted, frame.bytesThrough)
    self[stream] = .publication(outbound)
    return .granted(stream: stream)
  }

  mutating func ack(_ stream: UInt32, _ frame: Ack) throws(WireError) -> ClientAction {
    guard var outbound = try publication(stream, .ack) else { return .none }
    guard frame.through <= outbound.credit.spent else {
      throw WireError(
        .malformedFrame,
        "ACK counts \(frame.through) records on stream \(stream), where \(outbound.credit.spent) were published"
      )
    }
    guard frame.through > outbound.acknowledged else { return .none }
    outbound.acknowledged = frame.through
    self[stream] = .publication(outbound)
    return .acknowledged(stream: stream, frame)
  }

  /// Takes CONNECTED or DISCONNECTED, which alternate and come to sources only.
  mutating func connection(_ stream: UInt32, isConnected: Bool) throws(WireError) -> ClientAction {
    let type = isConnected ? FrameType.connected : .disconnected
    guard var outbound = try publication(stream, type) else { return .none }
    guard outbound.isSource else {
      throw WireError(.unexpectedFrame, "\(type) came on stream \(stream), whose publication isn't a source")
    }
    guard outbound.isConnected != isConnected else {
      throw WireError(.unexpectedFrame, "\(type) came twice in a row on stream \(stream)")
    }
    outbound.isConnected = isConnected
    self[stream] = .publication(outbound)
    return .connection(stream: stream, isConnected: isConnected)
  }

  private func publication(_ stream: UInt32, _ type: FrameType) throws(WireError) -> Outbound? {
    switch self[stream] {
    case .publication(let outbound) where outbound.isOpen: return outbound
    case .cancelling: return nil
    default: throw misplaced(type, stream)
    }
  }
}
