extension Array {
  /// Removes all elements and keeps the memory. Of one element, which is what a list of a turn has where messages come one by one, that costs a tenth of
  /// `removeAll(keepingCapacity:)`, and of none nothing.
  @inlinable package mutating func removeAllInPlace() {
    switch count {
    case 0: break
    case 1: removeLast()
    default: removeAll(keepingCapacity: true)
    }
  }
}

extension [UInt8] {
  /// Appends what `body` writes from the address that it is given, which it moves to the end of that. Together that costs a fraction of appending each part.
  ///
  /// - Parameter room: the most bytes that are written.
  @inlinable package mutating func append(room: Int, _ body: (inout UnsafeMutableRawPointer) -> Void) {
    append(addingCapacity: room) { output in
      unsafe output.withUnsafeMutableBufferPointer { buffer, count in
        guard let base = buffer.baseAddress else { return }
        let start = unsafe UnsafeMutableRawPointer(base) + count
        var end = unsafe start
        unsafe body(&end)
        unsafe count += end - start
      }
    }
  }
}

extension UnsafeMutableRawPointer {
  /// Copies `bytes` to here, and moves behind them.
  @inlinable package mutating func write(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    unsafe copyMemory(from: source, byteCount: bytes.count)
    unsafe self += bytes.count
  }
}
