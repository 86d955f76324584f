/// Numbers as digits, without a string in between.
enum Decimal {
  static func append(_ number: UInt64, to output: inout [UInt8]) {
    unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
      var position = 20
      var rest = number
      repeat {
        position -= 1
        unsafe digits.initializeElement(at: position, to: UInt8(ascii: "0") + UInt8(rest % 10))
        rest /= 10
      } while rest > 0
      unsafe output.append(contentsOf: UnsafeBufferPointer(rebasing: digits[position...]))
    }
  }
}
