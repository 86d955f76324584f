import Testing

@testable import SluiceIO

/// Compared with a sorted array, over random histories.
@Suite struct MinHeapTests {
  private struct Number: HeapElement, Hashable {
    var heapKey: Int
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func theFirstElementHasTheLeastKey(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var heap = MinHeap<Number>()
    var model: [Int] = []
    for _ in 0..<2_000 {
      switch random.next(in: 0...9) {
      case 0...5:
        let key = random.next(in: 0...99)
        heap.insert(Number(heapKey: key))
        model.append(key)
      case 6...7: #expect(heap.popFirst()?.heapKey == (model.isEmpty ? nil : model.removeFirst()))
      case 8:
        heap.updateFirst { $0.heapKey -= 1 }
        if !model.isEmpty { model[0] -= 1 }
      default:
        let divisor = random.next(in: 2...5)
        var passed: [Int] = []
        heap.keep {
          passed.append($0.heapKey)
          return $0.heapKey % divisor != 0
        }
        #expect(passed == model)
        model.removeAll { $0 % divisor == 0 }
      }
      model.sort()
      #expect(heap.count == model.count && heap.isEmpty == model.isEmpty)
      #expect(heap.first?.heapKey == model.first)
    }
  }
}
