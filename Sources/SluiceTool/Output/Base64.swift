/// Base 64 of RFC 4648, with padding.
enum Base64 {
  private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func append(_ bytes: UnsafeRawBufferPointer, to output: inout [UInt8]) {
    output.reserveCapacity(output.count + (bytes.count + 2) / 3 * 4)
    var position = 0
    while position < bytes.count {
      let count = min(3, bytes.count - position)
      var group: UInt32 = 0
      for index in 0..<3 {
        group = unsafe group << 8 | (index < count ? UInt32(bytes[position + index]) : 0)
      }
      for index in 0..<4 {
        let letter = letters[Int(group >> (18 - 6 * UInt32(index)) & 63)]
        output.append(index <= count ? letter : UInt8(ascii: "="))
      }
      position += 3
    }
  }
}
