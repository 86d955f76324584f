import Foundation
import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct CompletionTests {
  struct Coded: Error, Codable, Hashable {
    var reason: String
  }

  typealias Completion = Subscribers.Completion<Coded>

  @Test func comparesAndHashes() {
    let set: Set<Completion> = [
      .finished, .finished, .failure(Coded(reason: "a")), .failure(Coded(reason: "b")),
    ]
    #expect(set.count == 3)
    #expect(Completion.finished != .failure(Coded(reason: "a")))
  }

  @Test(arguments: [Completion.finished, .failure(Coded(reason: "no luck"))])
  func survivesCoding(completion: Completion) throws {
    let data = try JSONEncoder().encode(completion)
    #expect(try JSONDecoder().decode(Completion.self, from: data) == completion)
  }

  @Test func isWrittenAsCombineWritesIt() throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let finished = try encoder.encode(Completion.finished)
    #expect(String(decoding: finished, as: UTF8.self) == #"{"success":true}"#)
    let failed = try encoder.encode(Completion.failure(Coded(reason: "x")))
    #expect(String(decoding: failed, as: UTF8.self) == #"{"error":{"reason":"x"},"success":false}"#)
  }
}
