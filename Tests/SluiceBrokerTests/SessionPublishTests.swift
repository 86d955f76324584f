import SluiceWire
import Testing

@testable import SluiceBroker

/// What a producer may send: in sequence, within its grant, whole batches of records within the limit. The window is 10 records.
struct SessionPublishTests {
  typealias Outcome = SessionProbe.Outcome

  private func publishing() -> SessionProbe {
    var probe = SessionProbe.open()
    _ = probe.receive(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    return probe
  }

  private func appended(_ sizes: [Int]) -> Outcome {
    .append(stream: 1, count: UInt32(sizes.count), batch: SessionProbe.batch(sizes).bytes)
  }

  @Test func theWholeGrantMayBeUsed() {
    var probe = publishing()
    #expect(probe.session.publication(1) == Credit(granted: 10))
    #expect(probe.publish([1, 2, 3], from: 0, stream: 1) == appended([1, 2, 3]))
    #expect(
      probe.publish([0, 0, 0, 0, 0, 0, 0], from: 3, stream: 1) == appended([0, 0, 0, 0, 0, 0, 0]))
    #expect(probe.session.publication(1)?.available == 0)
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

  /// A COMPLETE whose message isn't cut, as our own encoder would.
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

  // MARK: Grants

  @Test func aGrantFollowsWhenHalfTheWindowIsUsed() {
    var probe = publishing()
    #expect(probe.replenish(1) == nil)
    _ = probe.publish([1, 1, 1, 1], from: 0, stream: 1)
    #expect(probe.replenish(1) == nil)
    _ = probe.publish([1], from: 4, stream: 1)
    #expect(probe.replenish(1) == 15)
    #expect(probe.replenish(1) == nil)
    _ = probe.publish([Int](repeating: 0, count: 10), from: 5, stream: 1)
    #expect(probe.replenish(1) == 25)
  }

  @Test func nothingIsGrantedOnWhatIsNoPublicationOrWhileDraining() {
    var probe = publishing()
    _ = probe.receive(Subscribe(topic: "t", grantedThrough: 1), stream: 2)
    #expect(probe.replenish(2) == nil)
    #expect(probe.replenish(7) == nil)
    _ = probe.publish([Int](repeating: 0, count: 10), from: 0, stream: 1)
    probe.session.drain()
    #expect(probe.replenish(1) == nil)
  }
}
