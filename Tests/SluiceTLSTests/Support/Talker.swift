import Glibc
import SluiceIO
import SluiceSimulation

/// One side of a connection in a simulated world: collects arriving bytes, and sends the test's.
final class Talker: ByteStreamHandler {
  let stream: any ByteStream
  let loop: SimulatedLoop
  private(set) var received: [UInt8] = []
  private(set) var ended = false
  private(set) var failure: IOError?
  private(set) var failures = 0
  private(set) var readableCalls = 0
  private(set) var writableCalls = 0
  private(set) var shortWrites = 0
  private(set) var holdsOtherCalls = 0
  private(set) var callsAfterTheEnd = 0
  private var outgoing: ArraySlice<UInt8> = []
  private var isOver = false

  /// The most bytes to read in one call of `streamReadable()`.
  var readSize = 65_536
  /// The length of each piece into which bytes are split for sending.
  var pieceSizes: () -> Int = { 65_536 }
  /// Called instead of reading and writing.
  var onReadable: ((Talker) -> Void)?
  var onWritable: ((Talker) -> Void)?
  var onFailed: ((Talker) -> Void)?

  init(_ stream: any ByteStream, on loop: SimulatedLoop) {
    self.stream = stream
    self.loop = loop
  }

  var unsent: Int { outgoing.count }

  // MARK: From the test

  func send(_ bytes: [UInt8]) {
    loop.perform {
      outgoing += bytes
      flush()
    }
  }

  func close() {
    loop.perform { closeHere() }
  }

  func abort() {
    loop.perform { abortHere() }
  }

  func pause(_ pauses: Bool) {
    loop.perform { stream.readsPaused = pauses }
  }

  // MARK: On the loop

  func closeHere() {
    isOver = true
    stream.close()
  }

  func abortHere() {
    isOver = true
    stream.abort()
  }

  func readAll() {
    while !isOver, !ended, readOnce() {}
  }

  /// Returns whether there were bytes to read.
  @discardableResult
  func readOnce() -> Bool {
    var result = ReadResult.wouldBlock
    received += [UInt8](unsafeUninitializedCapacity: readSize) { buffer, count in
      result = stream.read(into: UnsafeMutableRawBufferPointer(buffer))
      if case .bytes(let read) = result { count = read }
    }
    switch result {
    case .bytes: return true
    case .wouldBlock: return false
    case .end: ended = true
    case .failed(let error): failed(error)
    }
    return false
  }

  private func flush() {
    while !isOver, !outgoing.isEmpty {
      var vectors: [iovec] = []
      let taken = outgoing.withUnsafeBytes { bytes -> WriteResult in
        var offset = 0
        while offset < bytes.count, vectors.count < 300 {
          let length = min(max(0, pieceSizes()), bytes.count - offset)
          vectors.append(
            iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress! + offset), iov_len: length))
          offset += length
        }
        return vectors.withUnsafeBufferPointer { stream.write($0) }
      }
      switch taken {
      case .failed(let error): return failed(error)
      case .wrote(let count):
        outgoing = outgoing.dropFirst(count)
        if count < vectors.reduce(0, { $0 + $1.iov_len }) {
          shortWrites += 1
          return
        }
      }
    }
  }

  func streamReadable() {
    readableCalls += 1
    if isOver { callsAfterTheEnd += 1 }
    if let onReadable { onReadable(self) } else { readOnce() }
  }

  func streamWritable() {
    writableCalls += 1
    if isOver { callsAfterTheEnd += 1 }
    if let onWritable { onWritable(self) } else { flush() }
  }

  func streamHoldsOther() { holdsOtherCalls += 1 }

  func streamFailed(_ error: IOError) {
    if isOver { callsAfterTheEnd += 1 }
    failed(error)
    onFailed?(self)
  }

  private func failed(_ error: IOError) {
    failures += 1
    failure = error
    closeHere()
  }
}
