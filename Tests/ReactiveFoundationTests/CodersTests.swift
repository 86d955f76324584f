import Foundation
import ReactiveCore
import ReactiveFoundation
import Testing

@Suite struct CodersTests {
  struct Point: Codable, Equatable {
    var x = 1
    var y = 2
  }

  func roundTrip<E: TopLevelEncoder<Data>, D: TopLevelDecoder<Data>>(_ encoder: E, _ decoder: D) throws {
    #expect(try decoder.decode(Point.self, from: encoder.encode(Point())) == Point())
  }

  @Test func whatIsEncodedCanBeDecoded() throws {
    try roundTrip(JSONEncoder(), JSONDecoder())
    try roundTrip(PropertyListEncoder(), PropertyListDecoder())
  }
}
