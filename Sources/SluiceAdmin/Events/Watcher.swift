import Glibc
import SluiceAccess

/// Somebody who watches the events: bytes that wait for the connection to take them.
///
/// Unchecked: belongs to the admin listener's loop.
final class Watcher: @unchecked Sendable {
  let identity: Identity
  /// The topic whose details are watched; nil for none.
  let topic: String?
  /// Whether the next sample must be whole: it is the first, or the one before wasn't taken in time.
  var needsAll = true
  private(set) var hasEnded = false
  /// Has the connection look for bytes again. Called when there are some, and at the end.
  var wake: (() -> Void)?
  /// Arrays that several watchers share, and how much of the first was taken.
  private var parts: [[UInt8]] = []
  private var taken = 0

  init(identity: Identity, topic: String?) {
    self.identity = identity
    self.topic = topic
  }

  /// Whether it hasn't taken yet what it was given.
  var isBehind: Bool { !parts.isEmpty }

  func give(_ bytes: [UInt8]) {
    guard !hasEnded, !bytes.isEmpty else { return }
    parts.append(bytes)
    wake?()
  }

  /// Nothing comes any more.
  func end() {
    hasEnded = true
    wake?()
  }

  /// Takes the next bytes; 0 when there are none now.
  func take(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard let first = parts.first else { return 0 }
    let count = min(buffer.count, first.count - taken)
    unsafe buffer.copyBytes(from: first[taken..<taken + count])
    taken += count
    if taken == first.count {
      parts.removeFirst()
      taken = 0
    }
    return count
  }
}
