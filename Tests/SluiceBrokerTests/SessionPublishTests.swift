import SluiceSession
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The rules for producers' frames: in sequence, within the grant, and complete batches of records within the limit. The grant is 10 records.
struct SessionPublishTests {
  typealias Outcome = SessionProbe.Outcome

  private func publishing() -> SessionProbe {
    var probe = SessionProbe.open()
    _ = probe.receive(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    #expect(probe.grant(10, to: 1) == Demand(grantedThrough: 10))
    return probe
  }

  private func appended(_ sizes: [Int]) -> Outcome {
    .append(stream: 1, count: UInt32(sizes.count), batch: SessionProbe.batch(sizes).bytes)
  }

  @Test func theWholeGrantMayBeUsed() {
    var probe = publishing()
    #expect(probe.session.publication(1)?.records == Credit(granted: 10))
    #expect(probe.publish([1, 2, 3], from: 0, stream: 1) == appended([1, 2, 3]))
    #expect(
      probe.publish([0, 0, 0, 0, 0, 0, 0], from: 3, stream: 1) == appended([0, 0, 0, 0, 0, 0, 0]))
    #expect(probe.session.publication(1)?.records.available == 0)
    #expect(probe.publish([1], from: 10, stream: 1) == .fault(stream: 1, .demandExceeded))
  }

  @Test func aBatchBeyondTheGrantIsRefusedWhole() {
    var probe = publishing()
    #expect(
      probe.publish([Int](repeating: 1, count: 11), from: 0, stream: 1)
        == .fault(stream: 1, .demandExceeded))
    #expect(probe.session.publication(1) == nil)
  }

  @Test(arguments: [1, 4, 6, UInt64.max])
  func aSequenceThatHasAGapOrGoesBackIsRefused(sequence: UInt64) {
    var probe = publishing()
    if sequence != 1 {
      #expect(probe.publish([1, 1, 1, 1, 1], from: 0, stream: 1) == appended([1, 1, 1, 1, 1]))
    }
    #expect(probe.publish([1], from: sequence, stream: 1) == .fault(stream: 1, .malformedBatch))
  }

  @Test func whatComesAfterARefusalIsDropped() {
    var probe = publishing()
    #expect(probe.publish([1], from: 5, stream: 1) == .fault(stream: 1, .malformedBatch))
    #expect(probe.publish([1], from: 0, stream: 1) == .nothing)
    #expect(probe.receive(Complete(.finished), stream: 1) == .nothing)
    #expect(probe.receive(Cancel(), stream: 1) == .confirmCancel(stream: 1))
  }

  @Test func aRecordMayHaveExactlyTheLimit() {
    var probe = publishing()
    #expect(probe.publish([1000], from: 0, stream: 1) == appended([1000]))
    #expect(probe.publish([0, 1001], from: 1, stream: 1) == .fault(stream: 1, .recordTooLarge))
  }

  @Test func countsMustBeRight() {
    for count: UInt32 in [0, 1, 3] {
      var probe = publishing()
      #expect(
        probe.publish([1, 1], from: 0, count: count, stream: 1) == .fault(stream: 1, .malformedBatch),
        "2 records announced as \(count)")
    }
  }

  @Test func producersSendNoTimeMarks() {
    var probe = publishing()
    var frame = SessionProbe.publishFrame(SessionProbe.batch([8]), from: 0, stream: 1)
    frame[FrameHeader.size + PublishHeader.size + 3] = 0x80
    #expect(probe.receive(raw: frame) == .fault(stream: 1, .malformedBatch))
  }

  @Test func aBatchThatIsCutShortIsTheStreamsError() {
    var probe = publishing()
    let frame = SessionProbe.publishFrame(SessionProbe.batch([5, 5]), from: 0, stream: 1)
    #expect(probe.receive(raw: frame.dropLast()) == .fault(stream: 1, .malformedBatch))
  }

  @Test func aFailureMessageHasALimit() {
    var probe = publishing()
    let longest = String(repeating: "x", count: Int(Limits.message))
    #expect(
      probe.receive(raw: failure(longest))
        == .complete(stream: 1, .failure(code: .producerFailure, message: longest)))

    probe = publishing()
    #expect(probe.receive(raw: failure(longest + "x")) == .fault(stream: 1, .limitReached))
  }

  /// A COMPLETE whose message isn't shortened, as our own encoder would do.
  private func failure(_ message: String) -> [UInt8] {
    var body = ByteWriter()
    body.integer(1 as UInt32)
    body.integer(ErrorCode.producerFailure.rawValue)
    body.integer(UInt16(message.utf8.count))
    var frame = [UInt8](repeating: 0, count: FrameHeader.size) + body.bytes + Array(message.utf8)
    let length = UInt32(frame.count - FrameHeader.size)
    frame.withUnsafeMutableBytes {
      FrameHeader(length: length, type: .complete, stream: 1).write(at: $0.baseAddress!)
    }
    return frame
  }

  // MARK: Producers that return

  @Test func countingBeginsWhereTheProducerIs() {
    var probe = SessionProbe.open()
    let open = PublishOpen(topic: "t", acknowledgement: .received, producer: 7, firstSequence: 100)
    _ = probe.receive(open, stream: 1)
    #expect(probe.grant(10, to: 1) == Demand(grantedThrough: 110))
    #expect(probe.publish([1, 2], from: 100, stream: 1) == appended([1, 2]))
    #expect(probe.publish([1], from: 0, stream: 1) == .fault(stream: 1, .malformedBatch))
  }

  @Test func countingGoesOnWhereTheTopicIs() {
    var probe = SessionProbe.open()
    let open = PublishOpen(topic: "t", acknowledgement: .received, producer: 7, firstSequence: 100)
    _ = probe.receive(open, stream: 1)
    probe.session.publication(1, continuesAt: 103)
    #expect(probe.grant(10, to: 1) == Demand(grantedThrough: 113))
    #expect(probe.publish([1, 2], from: 103, stream: 1) == appended([1, 2]))
    _ = probe.publish([1, 1, 1], from: 105, stream: 1)
    #expect(probe.grant(5, bytes: 0, to: 1) == Demand(grantedThrough: 118))
  }

  @Test func aSequenceThatLeavesNoRoomIsRefused() {
    var probe = SessionProbe.open()
    let open = PublishOpen(topic: "t", acknowledgement: .received, producer: 7, firstSequence: .max)
    #expect(probe.receive(open, stream: 1) == .fault(stream: 1, .unsupported))
  }

  // MARK: Grants

  @Test func nothingIsGrantedToBeginWith() {
    var probe = SessionProbe.open()
    _ = probe.receive(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    #expect(probe.publish([1], from: 0, stream: 1) == .fault(stream: 1, .demandExceeded))
  }

  @Test func grantsAddUpAndAreToldInAll() {
    var probe = publishing()
    #expect(probe.grant(0, bytes: 0, to: 1) == nil)
    #expect(probe.grant(5, bytes: 0, to: 1) == Demand(grantedThrough: 15))
    _ = probe.publish([1], from: 0, stream: 1)
    #expect(probe.grant(1, bytes: 0, to: 1) == Demand(grantedThrough: 16))
  }

  @Test func nothingIsGrantedOnWhatIsNoPublicationOrWhileDraining() {
    var probe = publishing()
    _ = probe.receive(Subscribe(topic: "t", grantedThrough: 1), stream: 2)
    #expect(probe.grant(1, to: 2) == nil)
    #expect(probe.grant(1, to: 7) == nil)
    probe.session.drain()
    #expect(probe.grant(1, to: 1) == nil)
  }

  /// Each record of a batch has 4 bytes more than its payload.
  @Test func bytesMayBeExceededByTheLastRecord() {
    func exhausted() -> SessionProbe {
      var probe = SessionProbe.open()
      _ = probe.receive(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
      #expect(probe.grant(100, bytes: 50, to: 1) == Demand(grantedThrough: 100, bytesThrough: 50))
      #expect(probe.publish([6, 30], from: 0, stream: 1) == appended([6, 30]))
      #expect(probe.session.publication(1)?.bytesAvailable == 6)
      #expect(probe.publish([1000], from: 2, stream: 1) == appended([1000]))
      #expect(probe.session.publication(1)?.bytesAvailable == 0)
      return probe
    }
    // With no bytes left, no record may follow.
    var other = exhausted()
    #expect(other.publish([1], from: 3, stream: 1) == .fault(stream: 1, .demandExceeded))
    var probe = exhausted()
    // Bytes of the last record beyond the grant aren't deducted from the next grant.
    #expect(probe.grant(0, bytes: 10, to: 1) == Demand(grantedThrough: 100, bytesThrough: 1058))
    #expect(probe.session.publication(1)?.bytesAvailable == 10)
    #expect(probe.publish([996, 20], from: 3, stream: 1) == .fault(stream: 1, .demandExceeded))
  }

  /// With 1,000 bytes granted: the last record has to start below the limit, all others have to end at or below it.
  @Test(arguments: [
    ([996], true), ([997], true), ([1_000], true), ([992, 0], true), ([995, 1_000], true),
    ([996, 0], false), ([500, 492, 0], false), ([500, 491, 1_000], true), ([500, 500, 0], false),
  ])
  func onlyTheLastRecordOfABatchMayGoBeyondTheBytes(_ sizes: [Int], _ isTaken: Bool) {
    var probe = SessionProbe.open()
    _ = probe.receive(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    _ = probe.grant(100, bytes: 1_000, to: 1)
    #expect(
      probe.publish(sizes, from: 0, stream: 1)
        == (isTaken ? appended(sizes) : .fault(stream: 1, .demandExceeded)))
  }

  @Test func whatABatchHasUsedUpIsNoMoreThanWasGranted() {
    var credit = PublicationCredit(startingAt: 7)
    let hasMore = credit.add(PublishingBudget.Allowance(records: 3, bytes: 50))
    #expect(hasMore && credit.records == Credit(granted: 10, spent: 7))
    let first = credit.spend(records: 1, bytes: 40, beforeLast: 0)
    #expect(first && credit.used(records: 1, bytes: 40) == PublishingBudget.Allowance(records: 1, bytes: 40))
    let second = credit.spend(records: 1, bytes: 40, beforeLast: 0)
    #expect(second && credit.used(records: 1, bytes: 40) == PublishingBudget.Allowance(records: 1, bytes: 10))
    #expect(credit.held == PublishingBudget.Allowance(records: 1, bytes: 0))
    let third = credit.spend(records: 2, bytes: 1, beforeLast: 0)
    #expect(!third)
  }
}
