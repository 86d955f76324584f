import EngineTestSupport
import SluiceNATS
import Synchronization
import TestSupport

/// A shard's records in the engine, read directly from it: the marks in messages that count, and those in void messages.
///
/// A message counts if it was sent under the last fence before it, as the first bytes of a shard's messages show. A mark is the text between `<` and `>`
/// in a record.
struct EngineRecords {
  /// The marks in messages that count, and in those that don't.
  private(set) var counting: Set<String> = []
  private(set) var void: Set<String> = []
  /// The number of messages sent under a fence that was no longer the last one when they were stored.
  private(set) var voidMessages = 0
  /// The terms of the fences that count, in order.
  private(set) var terms: [UInt64] = []
  private var fence: (sequence: UInt64, term: UInt64)?

  init(shard: Int, _ engine: RealClient) throws {
    var next: UInt64 = 1
    while true {
      let messages = Messages()
      let page: ReadPage = try engine.retry { [next] jetStream, completion in
        messages.list.withLock { $0 = [] }
        try jetStream.messages(
          of: "SLUICE_\(shard)", matching: "sl.\(shard).>", from: next, count: 500,
          each: { message in
            messages.list.withLock { $0.append((message.sequence, message.payload.array)) }
          }, completion)
      }
      for (sequence, payload) in messages.list.withLock({ $0 }) { take(sequence, payload) }
      guard page.pending > 0 else { return }
      next = page.lastSequence + 1
    }
  }

  private final class Messages: Sendable {
    let list = Mutex<[(UInt64, [UInt8])]>([])
  }

  private mutating func take(_ sequence: UInt64, _ payload: [UInt8]) {
    guard payload.count >= 24 else { return }
    switch payload[1] {
    case 1:
      let term = Self.integer(payload, at: 24)
      guard term >= fence?.term ?? 0 else { return voidMessages += 1 }
      fence = (sequence, term)
      terms.append(term)
    case 2:
      let found = Self.marks(in: payload[24...])
      if Self.integer(payload, at: 8) == fence?.sequence {
        counting.formUnion(found)
      } else {
        voidMessages += 1
        void.formUnion(found)
      }
    default: break
    }
  }

  private static func integer(_ bytes: [UInt8], at index: Int) -> UInt64 {
    bytes[index..<index + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  private static func marks(in bytes: ArraySlice<UInt8>) -> [String] {
    bytes.split(separator: UInt8(ascii: "<")).dropFirst().compactMap { rest in
      guard let end = rest.firstIndex(of: UInt8(ascii: ">")), end - rest.startIndex < 40 else { return nil }
      return String(decoding: rest[..<end], as: UTF8.self)
    }
  }
}
