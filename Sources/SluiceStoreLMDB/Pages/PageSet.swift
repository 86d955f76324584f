import SluiceStore

/// Numbers of pages: a bit for each page of the file, and those behind its end one by one.
struct PageSet {
  private var bits: [UInt64]
  private var behind: Set<UInt64> = []

  /// - Parameter pages: how many the file has, by its size and not by what is in it.
  init(pages: Int) {
    bits = [UInt64](repeating: 0, count: (pages + 63) / 64)
  }

  /// Returns whether it wasn't there.
  mutating func insert(_ page: UInt64) -> Bool {
    guard page / 64 < UInt64(bits.count) else { return behind.insert(page).inserted }
    let index = Int(page / 64)
    let bit: UInt64 = 1 << (page % 64)
    defer { bits[index] |= bit }
    return bits[index] & bit == 0
  }
}
