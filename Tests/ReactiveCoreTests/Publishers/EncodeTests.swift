import ReactiveCore
import ReactiveTestSupport
import Testing

/// Turns numbers into text.
private struct TextCoder: TopLevelEncoder {
  func encode<T: Encodable>(_ value: T) throws -> String {
    guard let number = value as? Int, number >= 0 else { throw Oops(number: 1) }
    return "<\(number)>"
  }
}

@Suite struct EncodeTests {
  @Test func passesOnWhatTheEncoderMakesOfEachValue() {
    let rig = Rig(demand: .max(1), perValue: .max(2)) { $0.encode(encoder: TextCoder()) }
    #expect(rig.source.send(7) == .max(2))
    rig.source.send(completion: .finished)
    #expect(
      rig.take() == [.subscription("Encode"), .requested(.max(1)), .value("<7>"), .finished])
  }

  @Test func failsWithWhatTheEncoderThrows() {
    let rig = Rig { $0.encode(encoder: TextCoder()) }
    #expect(rig.source.send(-1) == .none)
    rig.source.send(2)
    rig.source.send(completion: .finished)
    #expect(
      rig.take() == [
        .subscription("Encode"), .requested(.unlimited), .cancelled, .failed(Oops(number: 1)),
      ])
  }

  @Test func behavesLikeAnyOperator() {
    expectOrderlyStream(named: "Encode") { $0.encode(encoder: TextCoder()) }
  }

  @Test func withstandsReentrancy() {
    expectStreamWithstandsReentrancy(named: "Encode") { $0.encode(encoder: TextCoder()) }
  }
}
