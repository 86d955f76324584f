import SluiceIO
import Testing

@testable import SluiceNATS

@Suite("Requests of a NATS session, against a model")
struct RequestTableTests {
  @Test("requests come due as in a table that is searched", arguments: 0..<20 as Range<UInt64>)
  func deadlines(seed: UInt64) {
    var random = SluiceIO.SeededRandom(seed: seed)
    var requests = NATSRequests()
    var model: [UInt64: (deadline: MonotonicTime, timeout: Duration)] = [:]
    var now = MonotonicTime(nanoseconds: 0)
    var number: UInt64 = 0
    for _ in 0..<2_000 {
      switch random.next(below: 8) {
      case 0, 1, 2:
        number += 1
        let timeout = random.next(in: .milliseconds(1) ... .milliseconds(50))
        requests.add(
          number, .init(subject: "s", end: 0, timeout: timeout, deadline: now + timeout, isMany: true))
        model[number] = (now + timeout, timeout)
      case 3, 4:
        let which = number == 0 ? 0 : random.next(below: number) + 1
        #expect((requests.remove(which) != nil) == (model.removeValue(forKey: which) != nil))
      case 5:
        let which = number == 0 ? 0 : random.next(below: number) + 1
        requests.prolong(which, at: now)
        if let timeout = model[which]?.timeout { model[which]?.deadline = now + timeout }
      default:
        now = now + random.next(in: .zero ... .milliseconds(5))
        let end = now
        var due: Set<UInt64> = []
        while let (which, entry) = requests.popOverdue(at: end) {
          #expect(entry.deadline <= end)
          due.insert(which)
        }
        #expect(due == Set(model.filter { $0.value.deadline <= end }.keys))
        model = model.filter { $0.value.deadline > end }
      }
      #expect(requests.count == model.count)
      if let earliest = model.values.map(\.deadline).min() {
        // The deadline may be too early, but never too late.
        #expect(requests.nextDeadline.map { $0 <= earliest } ?? false)
      } else {
        #expect(requests.nextDeadline == nil)
      }
    }
    #expect(requests.removeAll().map(\.0) == model.keys.sorted())
  }
}
