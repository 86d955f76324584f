import SluiceIO
import Testing

@testable import SluiceNATS

@Suite("Requests and output of a NATS session, against models")
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
        // It may be looked at too early, and never too late.
        #expect(requests.nextDeadline.map { $0 <= earliest } ?? false)
      } else {
        #expect(requests.nextDeadline == nil)
      }
    }
    #expect(requests.removeAll().map(\.0) == model.keys.sorted())
  }

  @Test(
    "what waits is what was encoded and neither written nor taken back", arguments: 0..<20 as Range<UInt64>)
  func output(seed: UInt64) {
    var random = SluiceIO.SeededRandom(seed: seed)
    var output = NATSOutput()
    var (encoded, written): ([UInt8], Int) = ([], 0)
    for step in 0..<400 {
      switch random.next(below: 4) {
      case 0, 1:
        let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: step), count: random.next(in: 0...20_000))
        output.append { $0 += bytes }
        encoded += bytes
      case 2:
        let count = random.next(in: 0...output.count)
        output.took(count)
        written += count
      default:
        let mark = UInt64(random.next(in: written...encoded.count))
        output.rewind(to: mark)
        encoded.removeLast(encoded.count - Int(mark))
      }
      #expect(output.count == encoded.count - written)
      #expect((output.written, output.encoded) == (UInt64(written), UInt64(encoded.count)))
      #expect(output.waiting.elementsEqual(encoded[written...]))
    }
  }
}
