import PortableCombine
import Testing

/// A program that imports this module alone has Combine.
@Suite struct SurfaceTests {
  @Test func aPipelineNeedsNoOtherImport() {
    var received: [Int] = []
    let subject = PassthroughSubject<Int, Never>()
    var bag: Set<AnyCancellable> = []
    subject.map { $0 * 2 }.filter { $0 > 2 }.eraseToAnyPublisher().sink { received.append($0) }.store(
      in: &bag)
    subject.send(1)
    subject.send(2)
    #expect(received == [4])
  }
}
