import SluiceSession
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A session rejects every frame with an invalid name.
@Suite struct SessionNameTests {
  @Test func everyNameOfEveryFrameIsCheckedBeforeAnythingElse() throws {
    for frame in WireProbe.namedFrames {
      let stream: UInt32 = 3
      for bytes in [frame.encoded(stream: stream)] + WireProbe.misnamed(frame, stream: stream) {
        var probe = SessionProbe.open()
        if frame is Positions {
          // POSITIONS continues the opening of a subscription to a pattern.
          var pattern = SubscribePattern(pattern: "p.*", start: .earliest, grantedThrough: 1)
          pattern.more = true
          #expect(probe.receive(pattern, stream: stream) == .nothing)
        }
        let outcome = probe.receive(raw: bytes)
        if bytes == frame.encoded(stream: stream) {
          if case .fault = outcome { Issue.record("\(frame) is refused: \(outcome)") }
        } else {
          #expect(outcome == .fault(stream: stream, .invalidTopic), "\(frame)")
        }
      }
    }
  }

  @Test(arguments: [0, 256]) func aCursorOfNoLengthThatANameHasIsNotDeleted(length: Int) {
    var probe = SessionProbe.open()
    let frame = CursorDelete(topic: "t", name: String(repeating: "c", count: length))
    #expect(probe.receive(frame, stream: 1) == .fault(stream: 1, .invalidTopic))
  }
}
