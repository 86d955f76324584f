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
    let frame = PublishOpen(topic: name, acknowledgement: .received)
    let attachment = try attachPublication(frame, ProducerTable.Holder(connection: 0) { _ in }, now: now)
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
      topics.traffic.recordsReceived &+= 1
    case .refused(let fault):
      // `used` is spent all the same.
      throw WireError(fault.code, fault.message)
    case .unfit(let fault): throw WireError(fault.code, fault.message)
    }
  }
}
