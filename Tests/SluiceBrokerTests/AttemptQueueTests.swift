import Testing

@testable import SluiceBroker
@testable import SluiceTopics

@Suite("Whose attempt is next")
struct AttemptQueueTests {
  private typealias Queue = AttemptQueue<String, Int>

  /// The attempts in the order in which they are taken out.
  private func all(_ queue: inout Queue, _ delay: (Int) -> Duration = { _ in .zero }) -> [Int] {
    var taken: [Int] = []
    while case .attempt(let attempt, _) = queue.next(delay) { taken.append(attempt) }
    return taken
  }

  @Test("addresses take turns, however many attempts one has")
  func turns() {
    var queue = Queue(limit: 100, addressLimit: 50)
    for number in 0..<4 { #expect(queue.add(number, number: UInt64(number), from: "a") == true) }
    #expect(queue.add(10, number: 10, from: "b") == true)
    #expect(queue.add(20, number: 20, from: "c") == true)
    #expect(queue.add(11, number: 11, from: "b") == true)
    #expect(all(&queue) == [0, 10, 20, 1, 11, 2, 3])
    #expect(queue.count == 0)
  }

  @Test("there are limits in all and for each address")
  func limits() {
    var queue = Queue(limit: 3, addressLimit: 2)
    #expect(queue.add(0, number: 0, from: "a") == true)
    #expect(queue.add(1, number: 1, from: "a") == true)
    #expect(queue.add(2, number: 2, from: "a") == false)
    #expect(queue.add(3, number: 3, from: "b") == true)
    #expect(queue.add(4, number: 4, from: "c") == false)
    _ = queue.next { _ in .zero }
    #expect(queue.add(5, number: 5, from: "c") == true)
    #expect(all(&queue) == [3, 1, 5])
  }

  @Test("an address that has to wait lets the others by")
  func delay() {
    var queue = Queue(limit: 10, addressLimit: 10)
    for (number, address) in ["a", "b", "c", "a"].enumerated() {
      _ = queue.add(number, number: UInt64(number), from: address)
    }
    let delay = { (attempt: Int) in Duration.seconds([4, 0, 2, 4][attempt]) }
    #expect(all(&queue, delay) == [1])
    guard case .wait(let time) = queue.next(delay) else { return #expect(Bool(false), "no attempt waits") }
    #expect(time == .seconds(2))
    #expect(all(&queue) == [2, 0, 3])
    guard case .none = queue.next(delay) else { return #expect(Bool(false), "an attempt is left") }
  }

  @Test("a removed attempt leaves no trace")
  func removal() {
    var queue = Queue(limit: 10, addressLimit: 10)
    for (number, address) in ["a", "a", "b", "a"].enumerated() {
      _ = queue.add(number, number: UInt64(number), from: address)
    }
    queue.remove(1, from: "a")
    queue.remove(2, from: "b")
    queue.remove(2, from: "b")
    queue.remove(7, from: "z")
    #expect(queue.count == 2)
    #expect(all(&queue) == [0, 3])
    #expect(queue.add(4, number: 4, from: "b") == true)
    #expect(all(&queue) == [4])
  }
}
