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

  @Test("standings take turns, however many addresses one has")
  func standings() {
    var queue = Queue(limit: 1_000, addressLimit: 10)
    for number in 0..<60 {
      #expect(
        queue.add(number, number: UInt64(number), from: "guess \(number % 20)", standing: .failing) == true)
    }
    for (number, standing) in [(100, AttemptStanding.new), (200, .knownIdentity), (300, .knownAddress)] {
      #expect(queue.add(number, number: UInt64(number), from: "a", standing: standing) == true)
    }
    let order = all(&queue)
    #expect(Set(order.prefix(4)).isSuperset(of: [100, 200, 300]))
    #expect(order.count == 63)
  }

  @Test("attempts of an address that has failed wait with those of others that have")
  func failure() {
    var queue = Queue(limit: 1_000, addressLimit: 10)
    for number in 0..<3 { _ = queue.add(number, number: UInt64(number), from: "guess", standing: .new) }
    _ = queue.add(10, number: 10, from: "other", standing: .new)
    _ = queue.add(11, number: 11, from: "other", standing: .new)
    queue.failed("guess")
    #expect(all(&queue) == [10, 0, 11, 1, 2])
    #expect(queue.count == 0)
    _ = queue.add(1, number: 1, from: "guess", standing: .knownAddress)
    queue.failed("guess")
    queue.remove(1, from: "guess")
    #expect(queue.count == 0)
  }

  @Test("attempts of low standing leave room for others")
  func reserved() {
    var queue = Queue(limit: 8, addressLimit: 100)
    func count(_ standing: AttemptStanding) -> Int {
      (0..<20).count { queue.add($0, number: UInt64($0), from: "a", standing: standing) }
    }
    #expect(count(.failing) == 4)
    #expect(count(.new) == 2)
    #expect(count(.knownIdentity) == 2)
    #expect(count(.knownAddress) == 0)
  }
}
