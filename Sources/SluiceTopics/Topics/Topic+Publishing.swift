import SluiceIO
import SluiceLog
import SluiceSession
import SluiceWire
import Synchronization

extension Topic {
  /// Appends a checked batch of one record for a producer without an ID, which is attached for this call only. On the loop of `topics`.
  ///
  /// - Throws: why nothing can be published, or ``ErrorCode/limitReached`` if producers have no demand now.
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
    // A batch may exceed the granted bytes with its last record.
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
      // `used` is spent even so.
      throw WireError(fault)
    case .unfit(let fault): throw WireError(fault)
    }
  }
}

// Dead letters of groups. Each group is a producer with an ID.
extension Topic {
  /// Returns the sequence that the topic expects next of a producer, which is attached for this call only. Publications attached earlier with the same ID
  /// can't append any more.
  ///
  /// - Parameters:
  ///   - producer: the producer's ID.
  ///   - first: the sequence of the first record that the producer still has.
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

  /// Appends a record under its sequence, unless the topic already has it. The topic's flow control doesn't apply. On the loop of `topics`.
  ///
  /// - Parameters:
  ///   - batch: a batch of one record.
  ///   - producer: the ID of the producer, which is attached for this call only.
  ///   - sequence: the record's sequence.
  ///   - topics: the topics of the loop.
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

  /// - Parameter producer: the producer's ID; 0 for none.
  private func attach(
    _ producer: UInt64, from first: UInt64, now: MonotonicTime
  ) throws(WireError) -> Attachment {
    let frame = PublishOpen(
      topic: name, acknowledgement: .received, producer: producer, firstSequence: first)
    return try attachPublication(frame, ProducerTable.Holder(connection: nil) { _ in }, now: now)
  }
}
