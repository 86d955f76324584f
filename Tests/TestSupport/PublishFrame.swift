import SluiceWire

extension BatchBuilder {
  /// A PUBLISH frame with the batch.
  public func publishFrame(from sequence: UInt64, stream: UInt32, flags: UInt8 = 0) -> [UInt8] {
    var front = [UInt8](repeating: 0, count: FrameHeader.size + PublishHeader.size)
    front.withUnsafeMutableBytes {
      PublishHeader(firstSequence: sequence, count: count)
        .write(at: $0.baseAddress!, stream: stream, batchLength: bytes.count, flags: flags)
    }
    return front + bytes
  }
}
