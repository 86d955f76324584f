import SluiceIO
import SluiceLog
import SluiceSession
import SluiceWire
import Synchronization

extension Topic {
  /// Appends a checked batch of one record for a producer without a number, which attaches before and leaves behind it. On the loop of `topics`.
  ///
  /// - Throws: why nothing can be published, or ``ErrorCode/limitReached`` when producers have no demand now.
  package func publishOne(_ batch: UnsafeRawBufferPointer, on topics: TopicLoop) throws(WireError) {
    let now = topics.loop.now
    let attachment = try attach(0, from: 0, now: now)
    var held = grant(to: PublishingBudget.Allowance(), now: now)
    defer {
      detachPublication(returning: held, nil, now: now)
      failWhenProducersStayLost(on: topics)
    }
    guard held.records > 0, held.bytes > 0 else {
      throw WireError(.limitReached, "producers of topic \(name) have no demand now; try again later")
    }
    // A batch may end beyond what was granted: with its last record.
    let used = PublishingBudget.Allowance(records: 1, bytes: min(UInt64(batch.count), held.bytes))
    held.subtract(used)
    switch unsafe append(batch, count: 1, at: topics.loop.wallClock, in: attachment.epoch, using: used) {
    case .appended:
      state.withLock { state in
        state.traffic.received(1, bytes: batch.count)
        state.traffic.acknowledged(1)
      }
      topics.received(records: 1)
    case .refused(let fault):
      // `used` is spent all the same.
      throw WireError(fault)
    case .unfit(let fault): throw WireError(fault)
    }
  }
}

// Dead letters of groups, each of which is a producer with a number.
extension Topic {
  /// The sequence that the topic expects next of a producer, which attaches and leaves at once: publications that were attached before append nothing more.
  ///
  /// - Parameters:
  ///   - producer: its number.
  ///   - first: the sequence of the first record that it still has.
  ///   - now: the loop's time.
  /// - Throws: why nothing can be published.
  package func next(
    of producer: UInt64, from first: UInt64, now: MonotonicTime
  ) throws(WireError) -> UInt64 {
    if let fault = storageRefusal { throw WireError(fault) }
    let attachment = try attach(producer, from: first, now: now)
    detachPublication(returning: PublishingBudget.Allowance(), attachment.ticket, now: now)
    return attachment.nextSequence
  }

  /// Appends a record under its sequence, unless the topic has it. The topic's flow doesn't hold it up. On the loop of `topics`.
  ///
  /// - Parameters:
  ///   - batch: one record.
  ///   - producer: the number of the producer, which attaches and leaves at once.
  ///   - sequence: the record's.
  ///   - topics: those of the loop.
  /// - Throws: why it can't be published.
  package func append(
    _ batch: BatchBuilder, by producer: UInt64, _ sequence: UInt64, on topics: TopicLoop
  ) throws(WireError) {
    if let fault = storageRefusal { throw WireError(fault) }
    let now = topics.loop.now
    let attachment = try attach(producer, from: sequence, now: now)
    defer { detachPublication(returning: PublishingBudget.Allowance(), attachment.ticket, now: now) }
    guard attachment.nextSequence == sequence else { return }
    let result = unsafe batch.bytes.withUnsafeBytes { bytes in
      unsafe append(
        bytes, count: batch.count, at: topics.loop.wallClock, in: attachment.epoch,
        using: PublishingBudget.Allowance(), by: attachment.ticket)
    }
    switch result {
    case .appended: published(bytes: batch.bytes.count)
    case .refused(let fault), .unfit(let fault): throw WireError(fault)
    }
  }

  /// - Parameter producer: its number; 0 for none.
  private func attach(
    _ producer: UInt64, from first: UInt64, now: MonotonicTime
  ) throws(WireError) -> Attachment {
    let frame = PublishOpen(
      topic: name, acknowledgement: .received, producer: producer, firstSequence: first)
    return try attachPublication(frame, ProducerTable.Holder(connection: nil) { _ in }, now: now)
  }
}
