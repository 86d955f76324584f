import SluiceWire
import TestSupport
import Testing

/// The fields of JOIN and SETTLE about retries, which end these frames, or are absent.
@Suite struct RetryFrameTests {
  private static let join = (
    short:
      "0100 74 0100 67 00 01 00 00 0000000000000000 00000000 00000000 0000 0900000000000000 04000000 00000000",
    fields: " e8030000 e0930400"
  )
  private static let settle = (
    short: "01 000000 02000000 0500000000000000 03000000", fields: " 10270000"
  )

  private func join(_ backoff: JoinGroup.Backoff) -> JoinGroup {
    JoinGroup(
      topic: "t", group: "g", settings: JoinGroup.Settings(acknowledgement: .explicit, retryBackoff: backoff),
      grantedThrough: 9)
  }

  private func settle(_ delay: UInt32) -> Settle {
    Settle(.retry, delivery: 2, firstOffset: 5, count: 3, delay: delay)
  }

  private func check<F: Frame & Equatable>(
    _ short: F, _ long: F, _ bytes: (short: String, fields: String)
  ) throws {
    let (body, whole) = ([UInt8](hex: bytes.short), [UInt8](hex: bytes.short + bytes.fields))
    #expect(short.encoded(stream: 1)[FrameHeader.size...].elementsEqual(body))
    #expect(long.encoded(stream: 1)[FrameHeader.size...].elementsEqual(whole))
    #expect(try decode(body, like: short) == short)
    #expect(try decode(whole, like: short) == long)
    #expect(try decode(whole + [1, 2, 3], like: short) == long)
    for length in body.count + 1..<whole.count {
      #expect(decodingError(Array(whole[..<length]), like: short)?.code == .malformedFrame, "\(length) bytes")
    }
  }

  @Test func aJoinEndsWithItsBackoff() throws {
    try check(join(.none), join(JoinGroup.Backoff(first: 1_000, longest: 300_000)), Self.join)
  }

  @Test func aSettleEndsWithItsDelay() throws {
    try check(settle(Settle.byBackoff), settle(10_000), Self.settle)
  }

  @Test func aBackoffDoublesToItsLongest() {
    let backoff = JoinGroup.Backoff(first: 1_000, longest: 5_000)
    #expect((0...5).map { backoff.delay(after: $0) } == [1_000, 1_000, 2_000, 4_000, 5_000, 5_000])
    #expect(backoff.delay(after: .max) == 5_000)
    #expect(JoinGroup.Backoff(first: .max, longest: .max).delay(after: 40) == .max)
    #expect(JoinGroup.Backoff.none.delay(after: 3) == 0)
  }
}
