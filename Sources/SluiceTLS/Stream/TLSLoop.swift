import SluiceIO

/// The shared parts of the TLS streams of one loop: memory that is used within one call, and the way to run again in a
/// later turn.
///
/// Unchecked: used on its loop only.
@safe
final class TLSLoop: @unchecked Sendable {
  /// The most plaintext that one TLS record carries.
  static let recordSize = 16_384
  /// So much ciphertext is given to the transport at once; more than it takes waits in the stream.
  static let blockSize = 128 << 10
  /// A record that is as long as can be, with its head and tag.
  static let largestRecord = recordSize + 512

  let loop: any EventLoop
  /// How long a closed stream waits for a peer that takes nothing.
  let patience: Duration

  /// Where small pieces become one record.
  let staging = UnsafeMutableRawBufferPointer.allocate(byteCount: recordSize, alignment: 64)
  /// Where records become one write.
  private let block = UnsafeMutableRawBufferPointer.allocate(
    byteCount: blockSize + largestRecord, alignment: 64)
  private var blockUsed = 0

  /// Streams with something to read that the transport doesn't know of.
  private var waiting: [TLSStream] = []
  private var signal: (any LoopSignal)?
  private var isRunning = false

  init(_ loop: any EventLoop, patience: Duration) {
    self.loop = loop
    self.patience = patience
  }

  deinit {
    unsafe staging.deallocate()
    unsafe block.deallocate()
  }

  // MARK: Ciphertext

  /// Streams that were added and not taken yet.
  var gathered: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(rebasing: block[..<blockUsed]) }

  var isEmpty: Bool { blockUsed == 0 }

  /// Whether there is so much that it should be given to the transport.
  var isFull: Bool { blockUsed >= Self.blockSize }

  /// - Returns: false when there is no room for it.
  func add(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard unsafe bytes.count <= block.count - blockUsed else { return false }
    unsafe UnsafeMutableRawBufferPointer(rebasing: block[blockUsed...]).copyMemory(from: bytes)
    blockUsed += bytes.count
    return true
  }

  func empty() {
    blockUsed = 0
  }

  // MARK: Coming round

  /// Has the stream's reader called in the next turn.
  func comeRound(_ stream: TLSStream) {
    guard !stream.isWaiting else { return }
    stream.isWaiting = true
    stream.wasServed = !isRunning
    waiting.append(stream)
    fire()
  }

  private func fire() {
    if signal == nil { signal = loop.makeSignal { [weak self] in self?.run() } }
    signal?.fire()
  }

  private func run() {
    isRunning = true
    var due: [TLSStream] = []
    swap(&due, &waiting)
    for stream in due {
      if stream.wasServed {
        // In this turn it had its go already.
        stream.wasServed = false
        waiting.append(stream)
      } else {
        stream.isWaiting = false
        stream.comeRound()
      }
    }
    isRunning = false
    if !waiting.isEmpty { fire() }
  }
}
