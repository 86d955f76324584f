import SluiceLog
import SluiceWire

// Reading what is no longer in memory, from the store: the cursor goes through chunks of it as through the log's segments.
extension Subscription {
  /// A segment in which the cursor may be.
  @inline(__always)
  func hint() -> Segment? {
    guard let storeReader, storeReader.chunk != nil else { return loopState.hint(of: epoch) }
    return storedHint(storeReader)
  }

  @inline(never)
  private func storedHint(_ storeReader: StoreReader) -> Segment? {
    if let chunk = storeReader.chunk, cursor.isPlaced(in: chunk), cursor.nextOffset < chunk.endOffset {
      return chunk
    }
    // A segment of the log may begin where the chunk does: the place in the one means nothing in the other.
    cursor = LogCursor(unplacedAt: cursor.nextOffset)
    if cursor.nextOffset >= epoch.log.oldestOffset { storeReader.drop() }
    return loopState.hint(of: epoch)
  }

  /// Records came from that segment.
  @inline(__always)
  func saw(_ segment: Segment) {
    guard let storeReader, storeReader.chunk === segment else { return loopState.saw(segment, of: epoch) }
    if credit.available > 0 { storeReader.readAhead(before: epoch.log.oldestOffset) }
  }

  /// There is more, and nothing is asked for.
  func starved() -> Outcome {
    if let storeReader, storeReader.isCrowded {
      storeReader.drop()
      cursor = LogCursor(unplacedAt: cursor.nextOffset)
    }
    return .starved
  }

  /// The log doesn't have what is to be read next: the store may. Of what it doesn't have either, the subscriber is told.
  ///
  /// - Returns: nil when the topic isn't durable; `more` when the cursor stands at what is there, at whatever distance.
  func readStored(insteadOf missed: UInt64, _ writes: WriteBatch) -> Outcome? {
    guard let storeReader else { return nil }
    let offset = cursor.nextOffset - missed
    cursor = LogCursor(unplacedAt: offset)
    switch storeReader.seek(offset) {
    case .loading: return .loading
    case .ready(let chunk):
      cursor = LogCursor(at: offset, in: chunk)
      return .more
    case .missed(let next):
      cursor = LogCursor(unplacedAt: next)
      return tellLag(next - offset, writes) ? .more : .ended
    }
  }
}
