import ReactiveCore
import ReactiveTestSupport
import Testing

/// Turns numbers into text.
private struct TextCoder: TopLevelDecoder {
  func decode<T: Decodable>(_ type: T.Type, from input: Int) throws -> T {
    guard input >= 0, let value = "<\(input)>" as? T else { throw Oops(number: 2) }
    return value
  }
}

@Suite struct DecodeTests {
  @Test func passesOnWhatTheDecoderMakesOfEachValue() {
    let rig = Rig(demand: .max(1), perValue: .max(2)) {
      $0.decode(type: String.self, decoder: TextCoder())
    }
    #expect(rig.source.send(7) == .max(2))
    rig.source.send(completion: .finished)
    #expect(
      rig.take() == [.subscription("Decode"), .requested(.max(1)), .value("<7>"), .finished])
  }

  @Test func failsWithWhatTheDecoderThrows() {
    let rig = Rig { $0.decode(type: String.self, decoder: TextCoder()) }
    #expect(rig.source.send(-1) == .none)
    rig.source.send(2)
    #expect(
      rig.take() == [
        .subscription("Decode"), .requested(.unlimited), .cancelled, .failed(Oops(number: 2)),
      ])
  }

  @Test func behavesLikeAnyOperator() {
    expectOrderlyStream(named: "Decode") { $0.decode(type: String.self, decoder: TextCoder()) }
  }

  @Test func withstandsReentrancy() {
    expectStreamWithstandsReentrancy(named: "Decode") { $0.decode(type: String.self, decoder: TextCoder()) }
  }
}
