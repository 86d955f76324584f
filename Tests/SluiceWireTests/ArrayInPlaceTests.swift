import SluiceWire
import Testing

/// Arrays that are filled and emptied each turn.
struct ArrayInPlaceTests {
  @Test(arguments: 0...3)
  func emptyingKeepsTheMemory(count: Int) {
    var list = (0..<count).map { "\($0)" }
    list.reserveCapacity(10)
    list.removeAllInPlace()
    #expect(list.isEmpty)
    #expect(list.capacity >= 10)
  }

  @Test func whatIsWrittenStandsBehindWhatWasThere() {
    var bytes: [UInt8] = [1]
    let parts: [[UInt8]] = [[2, 3], [], [4]]
    bytes.append(room: 20) { end in
      for part in parts { unsafe part.withUnsafeBytes { unsafe end.write($0) } }
    }
    #expect(bytes == [1, 2, 3, 4])
    bytes.append(room: 0) { _ in }
    bytes.append(room: 8) { _ in }
    #expect(bytes == [1, 2, 3, 4])
  }

  @Test func memoryIsGrownByFactors() {
    var bytes: [UInt8] = []
    var capacities: Set<Int> = []
    for byte in 0..<100_000 {
      unsafe withUnsafeBytes(of: UInt8(truncatingIfNeeded: byte)) { one in
        unsafe bytes.append(room: one.count) { unsafe $0.write(one) }
      }
      capacities.insert(bytes.capacity)
    }
    #expect(bytes.count == 100_000)
    #expect(bytes.indices.allSatisfy { bytes[$0] == UInt8(truncatingIfNeeded: $0) })
    #expect(capacities.count < 40)
  }
}
